"""A full disk: nothing new begins, what runs waits, and can be taken down."""
import contextlib
import os
import subprocess
import time

import pytest

from conftest import wait_for
from test_master import kill_master

MB = 1 << 20


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


def reserve(home):
    path = home / "disk_reserve"
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
        assert reserve(home) == 16 * MB
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
        assert reserve(home) == 16 * MB


@needs_root
def test_a_run_that_fills_the_disk_can_be_killed(regatta, tmp_path):
    with small_home(regatta, tmp_path, "64m") as home:
        job = regatta.job('name = "flood"\ncommand = ["sh", "-c", "yes flood; sleep 1000"]\n[timeouts]\ngrace = "1s"\ncollect = "2s"\n')
        run = regatta.submit(job)
        assert reserve(home) == 16 * MB  # from before its first byte
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
def test_a_home_on_a_tiny_disk_works_without_a_reserve(regatta, tmp_path):
    with small_home(regatta, tmp_path, "6m") as home:
        assert regatta.json("run", "--", "sleep", "1.5")["verdict"] == "succeeded"  # longer than it takes to make one
        assert reserve(home) is None
        # A full disk stops its master, and whoever starts one is told so, even if the log has no room for it.
        regatta("run", regatta.job(f'command = ["true"]\nenv.LONG = "{"x" * 100000}"\n'))
        kill_master(regatta)
        log = home / "master.log"
        with log.open("a") as f:
            f.write("x" * ((-log.stat().st_size - 21) % 4096) + "\n")  # 20 bytes are left of its last page
        fill(home)
        assert "the master did not start: " in (said := regatta("ps", code=8).err) and "the disk is full" in said
        (home / "fill").unlink()
        regatta("ps")


FLOOD = ('name = "flood"\ncommand = ["sh", "-c", "head -c 96M /dev/zero; echo end"]\n'
         '[timeouts]\ngrace = "2s"\n')  # timeouts.collect is five minutes


def free(home):
    fs = os.statvfs(home)
    return fs.f_bavail * fs.f_frsize


def flooded(regatta, home):
    """A run that prints more than the disk can hold, when it cannot go on."""
    run = regatta.submit(regatta.job(FLOOD))  # the first in its home
    wait_for(lambda: regatta.status(run)["disk_full"], what="the disk to be full")
    return run


@needs_root
@pytest.mark.parametrize("how", [["kill"], ["kill", "--now"], ["cleanup"]], ids=" ".join)
def test_a_run_that_waits_for_room_ends_at_once_when_it_is_told_to(regatta, tmp_path, how):
    with small_home(regatta, tmp_path, "64m") as home:
        run = flooded(regatta, home)
        assert regatta.status(run)["state"] == "running"
        assert "disk    full" in regatta("status", run).out
        asked = time.monotonic()
        regatta(*how, run, timeout=30)
        if how[0] == "kill":
            ended = regatta.wait(run, 30)
            assert ended["verdict"] == "cancelled" and not ended["disk_full"]
            log = regatta.log(run, "worker-0")
            assert 0 < len(log) < 96 * MB and not log.strip(b"\0")  # what was stored stays
        assert time.monotonic() - asked < 15
        # What is temporary is gone at once; the log goes with the run.
        wait_for(lambda: not (home / "trash").exists() or not os.listdir(home / "trash"), 20, "the trash to be emptied")
        left = sum(f.stat().st_blocks * 512 for f in home.rglob("*") if f.is_file() and f.name != "disk_reserve")
        logs = sum(f.stat().st_blocks * 512 for f in home.glob("runs/*/logs/*"))
        assert left - logs < 4 * MB
        if how[0] == "cleanup":
            wait_for(lambda: free(home) > 40 * MB, 20, "the space to be free")
            assert regatta.json("run", "--", "true")["verdict"] == "succeeded"


@needs_root
def test_a_run_that_waits_for_room_goes_on_when_there_is_room(regatta, tmp_path):
    with small_home(regatta, tmp_path, "64m") as home:
        run = flooded(regatta, home)
        time.sleep(3)  # longer than an agent waits before it tries again
        assert regatta.status(run)["state"] == "running"
        subprocess.run(["mount", "-o", "remount,size=256m", home], check=True)
        ended = regatta.wait(run, 60)
        assert ended["verdict"] == "succeeded"
        assert regatta.log(run, "worker-0") == bytes(96 * MB) + b"end\n"


@needs_root
def test_an_upload_that_does_not_fit_says_that_the_disk_is_full(regatta, tmp_path):
    (regatta.cwd / "big").mkdir()
    (regatta.cwd / "big" / "file").write_bytes(os.urandom(30 * MB))
    with small_home(regatta, tmp_path, "64m") as home:
        regatta("ps")
        wait_for(lambda: reserve(home) == 16 * MB, 20, "the disk reserve")
        job = regatta.job('source = "big"\ncommand = "true"\n')
        assert "upload the source: the disk where the master keeps its files is full" in regatta("run", job, code=5).err


@needs_root
def test_a_suite_waits_for_room_and_loses_no_run(regatta, tmp_path):
    job = f'command = ["sh", "-c", "until [ -e {tmp_path}/go ]; do sleep 0.02; done"]\n'
    regatta.job(job, "job.toml")
    path = regatta.job('name = "sweep"\n[suite]\njob = "job.toml"\n[matrix]\n"env.N" = ["1", "2", "3"]\n', "suite.toml")
    with small_home(regatta, tmp_path, "64m") as home:
        suite = regatta("suite", "run", "-d", path).out.strip()
        wait_for(lambda: regatta.json("suite", "status", suite)["counts"]["running"], what="the first run")
        fill(home)
        (tmp_path / "go").touch()
        why = wait_for(lambda: regatta.json("suite", "status", suite)["waits_for"], what="the suite to wait")
        assert "disk" in why and "full" in why
        assert why in regatta("suite", "status", suite).out
        assert "full" in regatta("suite", "run", "-d", path, code=5).err  # a second one is not begun
        assert len(regatta.json("suite", "list")["suites"]) == 1
        (home / "fill").unlink()
        done = wait_for(lambda: (s := regatta.json("suite", "status", suite))["exit_code"] is not None and s, what="the end")
        assert done["state"] == "succeeded" and done["waits_for"] is None
        runs = [r for v in done["variants"] for r in v["runs"]]
        assert len({r["run"] for r in runs}) == 3 and len(regatta.json("ps", "--all")) == 3
        assert len((home / "suites" / suite / "table.csv").read_text().splitlines()) == 4
