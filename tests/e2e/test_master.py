"""The master after crashes, and with very many files."""
import os
import signal

from conftest import wait_for


def kill_master(regatta):
    for pid in regatta.pids("master"):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not regatta.pids("master"), what="the master to be dead")


def test_records_that_a_crash_lost_are_written_at_the_next_start(regatta):
    first, second = (regatta.json("run", "--", "echo", str(i))["id"] for i in range(2))
    kill_master(regatta)
    where = regatta.home / "runs"
    before = {name: (where / first / name).read_text() for name in ("summary.json", "events.jsonl")}
    untouched = (where / second / "summary.json").stat()
    for name in before:
        (where / first / name).unlink()
    regatta("ps")
    wait_for(lambda: (where / first / "events.jsonl").exists(), 20, "the records")
    after = {name: (where / first / name).read_text() for name in before}
    assert after["events.jsonl"] == before["events.jsonl"]
    assert '"verdict":"succeeded"' in after["summary.json"]
    assert (where / second / "summary.json").stat().st_mtime_ns == untouched.st_mtime_ns


def test_a_removed_run_leaves_its_place_at_once_and_the_disk_soon(regatta):
    busy = regatta.submit("--", "sleep", "1000")  # the trash is not kept until nothing runs
    (regatta.cwd / "src").mkdir()
    (regatta.cwd / "src" / "a").write_text("a")
    job = regatta.job('name = "gone"\nsource = "src"\ncommand = ["cat", "a"]\n')
    run = regatta.json("run", job)["id"]
    place = regatta.home / "runs" / run
    assert len(list((regatta.home / "blobs").iterdir())) == 1
    for k in range(20):
        (place / "outputs" / str(k)).mkdir(parents=True)
        for i in range(100):
            (place / "outputs" / str(k) / str(i)).touch()
    regatta("cleanup", run)
    assert not place.exists() and not list((regatta.home / "blobs").iterdir())
    trash = regatta.home / "trash"
    wait_for(lambda: not trash.exists() or not [n for n in os.listdir(trash) if run in n], 20, "the trash to be emptied")
    assert regatta.status(busy)["state"] == "running"
    regatta("kill", "--now", busy)
