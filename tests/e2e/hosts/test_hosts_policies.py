"""What on_lost promises when a host is cut off or loses its power, between real machines of a lab."""
import contextlib
import os
import signal

import pytest

from conftest import wait_for
from lab import lab, needs_lab  # noqa: F401 (a fixture)
from namespaces import pids_in

pytestmark = needs_lab

LOST = ["--set", "timeouts.lost=3s", "--set", "timeouts.grace=1s"]
# Says which attempt it is, and lives until it is told to end; no two attempts of a rank hold the lock.
JOB = """
import fcntl, os, pathlib, sys, time
base = pathlib.Path(sys.argv[1])
rank = f"{os.environ['REGATTA_RUN']}-{os.environ['REGATTA_NODE']}"
lock = open(base / f"lock-{rank}", "w")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    (base / "overlap").touch()
with open(base / f"execs-{rank}-{os.environ['REGATTA_ATTEMPT']}", "a") as f:
    f.write("x")
print("attempt", os.environ["REGATTA_ATTEMPT"], flush=True)
while not (base / "go").exists():
    time.sleep(0.05)
"""


def submit(regatta, nodes, policy, *args):
    run = regatta.submit("-n", nodes, "--engine", "hosts", "--set", f"on_lost={policy}", *LOST, *args, "--", "python3",
                         regatta.script(JOB), regatta.cwd)
    regatta.wait(run, state="running")
    wait_for(lambda: all((regatta.cwd / f"execs-{run}-worker-{i}-1").exists() for i in range(nodes)), what="the first attempts")
    return run


def end(regatta, lab, run, verdict="succeeded"):
    (regatta.cwd / "go").touch()
    got = regatta.wait(run)
    assert got["verdict"] == verdict, got
    assert not (regatta.cwd / "overlap").exists(), "two attempts of a rank ran at the same time"
    return got


def attempts(regatta, run, node):
    """How often each attempt of a node was executed."""
    found = {int(p.name.rsplit("-", 1)[1]): len(p.read_text()) for p in regatta.cwd.glob(f"execs-{run}-{node}-*")}
    return [found.get(i + 1, 0) for i in range(max(found, default=0))]


def host_of(lab, regatta, run, node):
    address = next(n["address"] for n in regatta.status(run)["nodes"] if n["name"] == node)
    return next(name for name, at in lab.address.items() if at == address)


def lose(lab, name, how):
    if how == "power":
        lab.kill_host(name)
    else:
        lab.cut(name)


def come_back(lab, name, how):
    """What it still has of its run is removed."""
    if how == "power":
        lab.rejoin(name)
    else:
        lab.heal(name)
    lab.wait([name], "free")
    wait_for(lab.is_clean, what="the host that came back to be empty")


@pytest.mark.parametrize("how", ["cut", "power"])
def test_a_lost_rank_is_replaced_while_the_others_go_on(regatta, lab, how):
    lab.join("a", "b", "c")
    run = submit(regatta, 2, "replace")
    lost = host_of(lab, regatta, run, "worker-1")
    lose(lab, lost, how)
    wait_for(lambda: attempts(regatta, run, "worker-1") == [1, 1], 40, "the second attempt")
    assert host_of(lab, regatta, run, "worker-1") != lost
    end(regatta, lab, run)
    assert attempts(regatta, run, "worker-0") == [1]
    assert attempts(regatta, run, "worker-1") == [1, 1]
    logs = regatta.home / "runs" / run / "logs"
    assert (logs / "worker-1.a2.log").read_text() == "attempt 2\n"
    come_back(lab, lost, how)


def test_a_host_that_comes_back_too_late_is_swept(regatta, lab):
    """Its daemon and agents are killed while it is cut off: nobody but the shim is left to end the job in time."""
    lab.join("a", "b")
    run = submit(regatta, 1, "replace")
    lost = host_of(lab, regatta, run, "worker-0")
    lab.cut(lost)
    for kind in ("agent", "node-agent", "forkserver"):
        for pid in lab.pids(kind, [lost]):
            os.kill(pid, signal.SIGKILL)
    lab.daemons[lost].wait()
    wait_for(lambda: attempts(regatta, run, "worker-0") == [1, 1], 40, "the second attempt")
    lab.heal(lost)
    lab.rejoin(lost)
    end(regatta, lab, run)
    lab.wait("ab", "free")
    wait_for(lab.is_clean, what="the hosts to be empty")


def signal_all(lab, name, number):
    for pid in pids_in(lab.ns(name)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def test_a_host_that_was_suspended_ends_its_job_when_it_goes_on(regatta, lab):
    """A laptop that was closed, a virtual machine that was paused: nobody could end the first attempt in time."""
    lab.join("a", "b")
    run = submit(regatta, 1, "replace")
    lost = host_of(lab, regatta, run, "worker-0")
    signal_all(lab, lost, signal.SIGSTOP)
    wait_for(lambda: attempts(regatta, run, "worker-0") == [1, 1], 40, "the second attempt")
    signal_all(lab, lost, signal.SIGCONT)
    wait_for(lambda: not lab.jobs(lost), 20, "the first attempt to end")
    lab.wait([lost], "free")
    assert regatta.status(run)["state"] == "running"
    (regatta.cwd / "go").touch()
    assert regatta.wait(run)["verdict"] == "succeeded"
    assert attempts(regatta, run, "worker-0") == [1, 1]
    lab.wait("ab", "free")
    wait_for(lab.is_clean, what="the hosts to be empty")


def test_a_gang_starts_again_together(regatta, lab):
    lab.join("a", "b", "c")
    run = submit(regatta, 2, "restart")
    lost = host_of(lab, regatta, run, "worker-1")
    lab.kill_host(lost)
    wait_for(lambda: attempts(regatta, run, "worker-0") == attempts(regatta, run, "worker-1") == [1, 1], 40,
             "the second attempt of both")
    end(regatta, lab, run)
    come_back(lab, lost, "power")


def test_a_run_goes_on_without_the_lost_rank(regatta, lab):
    lab.join("a", "b")
    run = submit(regatta, 2, "shrink", "--set", "min=1")
    lost = host_of(lab, regatta, run, "worker-1")
    lab.cut(lost)
    wait_for(lambda: not lab.jobs(lost), 30, "the job on the host that was cut off to end")
    end(regatta, lab, run)
    assert attempts(regatta, run, "worker-0") == [1] and attempts(regatta, run, "worker-1") == [1]
    come_back(lab, lost, "cut")


def test_without_a_policy_a_lost_host_fails_the_run(regatta, lab):
    lab.join("a", "b")
    run = submit(regatta, 2, "fail", "--set", "timeouts.lease=4s")
    lab.kill_host(host_of(lab, regatta, run, "worker-1"))
    end(regatta, lab, run, "failed")
    assert attempts(regatta, run, "worker-0") == [1] and attempts(regatta, run, "worker-1") == [1]
