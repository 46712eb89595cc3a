"""The master between a crash, a full disk and a great many files."""
import contextlib
import os
import signal
import subprocess

import pytest

from conftest import wait_for

MB = 1 << 20


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


@contextlib.contextmanager
def small_home(regatta, tmp_path, size):
    home = tmp_path / "small"
    home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "regatta-test", home], check=True)
    try:
        regatta.home = home
        regatta.env["REGATTA_HOME"] = str(home)
        yield home
        regatta("master", "--stop", "--cancel", code=None)
        wait_for(lambda: not regatta.ours(), 20, "everything to leave")
    finally:
        regatta.kill_all()
        subprocess.run(["umount", "-l", home], check=False)


def ballast(home):
    path = home / "ballast"
    return path.stat().st_blocks * 512 if path.exists() else None


def fill(home):
    with open(home / "fill", "ab", buffering=0) as f:
        with contextlib.suppress(OSError):
            while f.write(b"x" * 65536):
                pass
        with contextlib.suppress(OSError):
            while f.write(b"x" * 512):
                pass


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small tmpfs needs root")


@needs_root
@pytest.mark.parametrize("restart", [False, True], ids=["the master stays", "the master was killed"])
def test_on_a_full_disk_runs_are_taken_down_and_none_is_begun(regatta, tmp_path, restart):
    with small_home(regatta, tmp_path, "64m") as home:
        runs = [regatta.submit("-n", "2", "--", "sleep", "1000") for _ in range(3)]
        for run in runs:
            regatta.wait(run, state="running")
        wait_for(lambda: ballast(home) == 16 * MB, 20, "the ballast")
        if restart:
            kill_master(regatta)
        fill(home)
        refused = regatta("run", "-d", "--", "true", code=5)
        assert "disk" in refused.err and "full" in refused.err and len(refused.err.splitlines()) == 1
        for run in runs:
            regatta("kill", run)
            fill(home)  # whoever filled it takes what was given up
        for run in runs:
            assert regatta.wait(run, 90)["verdict"] == "cancelled"
        assert len(regatta.json("ps", "-a")) == 3
        regatta("run", "-d", "--", "true", code=5)
        (home / "fill").unlink()
        got = regatta.json("run", "--", "echo", "again")
        assert got["verdict"] == "succeeded"
        assert ballast(home) == 16 * MB


@needs_root
def test_a_run_that_fills_the_disk_can_be_killed(regatta, tmp_path):
    with small_home(regatta, tmp_path, "64m") as home:
        job = regatta.job('name = "flood"\ncommand = ["sh", "-c", "yes flood; sleep 1000"]\n[timeouts]\ngrace = "1s"\ncollect = "2s"\n')
        regatta("ps")
        wait_for(lambda: ballast(home) == 16 * MB, 20, "the ballast")
        run = regatta.submit(job)
        wait_for(lambda: os.statvfs(home).f_bavail * 4096 < 300_000, what="the disk to be full")
        regatta("kill", "--now", run)
        assert regatta.wait(run, 90)["verdict"] == "cancelled"
        # An agent that cannot get rid of its bytes does not knock all the time.
        assert len(regatta("events", "--output", "json", run).out.splitlines()) < 60
        for name in ("summary.json", "events.jsonl"):
            assert (home / "runs" / run / name).stat().st_size > 0
        regatta("cleanup", run)
        wait_for(lambda: os.statvfs(home).f_bavail * 4096 > 32 * MB, 20, "the space to be free")
        assert regatta.json("run", "--", "true")["verdict"] == "succeeded"


@needs_root
def test_a_home_on_a_tiny_disk_works_without_ballast(regatta, tmp_path):
    with small_home(regatta, tmp_path, "6m") as home:
        assert regatta.json("run", "--", "sleep", "1.5")["verdict"] == "succeeded"  # longer than it takes to make one
        assert ballast(home) is None
