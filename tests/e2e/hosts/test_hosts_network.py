"""Engine hosts when the network fails: cut one way and both, reset, slow, moved. The job does not notice, or ends once."""
import hashlib
import os
import signal
import time

import pytest

from conftest import wait_for
from lab import lab, needs_lab  # noqa: F401 (a fixture)

pytestmark = needs_lab

BLIP_SECONDS = 10
ONE_WAY_SECONDS = 40
POLICIES = ["fail", "replace", "shrink", "restart"]

# Writes lines to its output and to a copy of its own until a file is there; its start is on record.
WRITER = """
import os, pathlib, random, sys, time
base, seconds = pathlib.Path(sys.argv[1]), float(sys.argv[2])
node, attempt = os.environ["REGATTA_NODE"], os.environ["REGATTA_ATTEMPT"]
with open(base / f"execs-{os.environ['REGATTA_RUN']}-{node}-{attempt}", "a") as f:
    f.write("x")
copy = os.open(base / f"copy-{os.environ['REGATTA_RUN']}-{node}-{attempt}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
rng = random.Random(node)
end = time.monotonic() + seconds
while time.monotonic() < end and not (base / "go").exists():
    data = rng.randbytes(rng.randrange(1, 3000))
    os.write(copy, data)
    while data:
        data = data[os.write(1, data):]
    time.sleep(0.01)
"""


def submit(regatta, nodes=1, seconds=60, *args):
    script = regatta.script(WRITER, "writer.py")
    return regatta.submit("-n", nodes, "--engine", "hosts", *args, "--", "python3", script, regatta.cwd, seconds)


def check_exact(regatta, run):
    """Every node ran once, and every byte it wrote is stored."""
    for node in regatta.status(run)["nodes"]:
        name = node["name"]
        assert (regatta.cwd / f"execs-{run}-{name}-1").read_text() == "x"
        assert not (regatta.cwd / f"execs-{run}-{name}-2").exists()
        wrote, stored = (regatta.cwd / f"copy-{run}-{name}-1").read_bytes(), regatta.log(run, name)
        assert len(wrote) > 1000
        assert hashlib.sha256(wrote).digest() == hashlib.sha256(stored).digest(), f"{run} {name}"


def go(regatta):
    (regatta.cwd / "go").touch()


def kill_kind(lab, kind):
    for pid in lab.pids(kind):
        os.kill(pid, signal.SIGKILL)


def test_nodes_have_the_addresses_of_their_hosts(regatta, lab):
    lab.join("a", "b")
    done = regatta("run", "-n", "2", "--engine", "hosts", "--", "sh", "-c", "echo $REGATTA_ADDRESS $MASTER_ADDR $NCCL_SOCKET_IFNAME")
    run = regatta.json("ps", "--all")[0]["id"]
    assert "succeeded" in done.out
    assert regatta.log(run, "worker-0") == b"10.77.0.2 10.77.0.2 eth0\n"
    assert regatta.log(run, "worker-1") == b"10.77.0.3 10.77.0.2 eth0\n"
    assert lab.is_clean()


def test_a_blip_harms_no_job(regatta, lab):
    """Ten seconds without a network, under every policy at once."""
    lab.join(*"abcd")
    runs = [submit(regatta, 1, 90, "--set", f"on_lost={policy}", "--set", f'hosts.names=["{host}"]')
            for policy, host in zip(POLICIES, "abcd")]
    for run in runs:
        regatta.wait(run, state="running")
    lab.cut(*"abcd")
    time.sleep(BLIP_SECONDS)
    lab.heal(*"abcd")
    lab.wait("abcd", "busy")
    go(regatta)
    for run in runs:
        assert regatta.wait(run)["verdict"] == "succeeded"
        check_exact(regatta, run)
    lab.wait("abcd", "free")
    assert lab.is_clean()


def test_hosts_that_only_hear_or_are_only_heard(regatta, lab):
    """Longer than both ends wait for a word: each hangs up by itself, and they find each other again."""
    lab.join("a", "b")
    run = submit(regatta, 2, 90)
    regatta.wait(run, state="running")
    lab.cut("a", ways=["input"])
    lab.cut("b", ways=["output"])
    lab.wait("ab", "gone", ONE_WAY_SECONDS)
    assert regatta.status(run)["state"] == "running"
    lab.heal("a", "b")
    lab.wait("ab", "busy")
    go(regatta)
    assert regatta.wait(run)["verdict"] == "succeeded"
    check_exact(regatta, run)
    assert lab.is_clean()


@pytest.mark.parametrize("way", ["input", "output"])
def test_connections_are_reset_at_random_bytes(regatta, lab, way):
    lab.join("a", "b")
    run = submit(regatta, 2, 120)
    regatta.wait(run, state="running")
    for name in "ab":
        lab.resets(name, way, 60)
    wait_for(lambda: lab.resets_so_far("a") > 3 and lab.resets_so_far("b") > 3, 60, "four resets on each host")
    lab.heal("a", "b")
    go(regatta)
    assert regatta.wait(run)["verdict"] == "succeeded"
    check_exact(regatta, run)
    assert lab.is_clean()


def test_a_slow_link_brings_every_byte_and_no_loss(regatta, lab):
    """At 400 kbit/s the output waits for seconds, and pings do not wait behind it."""
    lab.join("a")
    lab.slow("a", "400kbit")
    run = submit(regatta, 1, 6)
    got = regatta.wait(run, 90)
    assert got["verdict"] == "succeeded"
    check_exact(regatta, run)
    assert "lost" not in regatta("events", run).out


def test_the_master_moves_to_another_address(regatta, lab):
    lab.join("a", "b", host="master.lab")
    run = submit(regatta, 2)
    regatta.wait(run, state="running")
    lab.move_master("10.77.0.99")
    wait_for(lambda: len(regatta.json("hosts")) == 2, what="hosts")
    time.sleep(2)
    go(regatta)
    assert regatta.wait(run, 90)["verdict"] == "succeeded"
    check_exact(regatta, run)
    lab.wait("ab", "free")
    assert lab.is_clean()


def test_when_the_lease_is_over_the_job_ends_on_its_host_and_the_run_on_the_master(regatta, lab):
    lab.join("a", "b")
    run = submit(regatta, 2, 120, "--set", "timeouts.lease=4s", "--set", "timeouts.grace=1s")
    regatta.wait(run, state="running")
    lab.cut("a")
    wait_for(lambda: not lab.jobs("a"), 30, "the job on the host that was cut off to end")
    got = regatta.wait(run, 60)
    assert got["verdict"] == "failed"
    lab.heal("a")
    lab.wait("ab", "free")
    wait_for(lab.is_clean, what="the host to sweep itself")
    for node in ("worker-0", "worker-1"):
        assert (regatta.cwd / f"execs-{run}-{node}-1").read_text() == "x"


def test_a_node_that_may_be_carried_elsewhere_ends_its_job_in_time(regatta, lab):
    """lost + grace + 2 s after the last word its next attempt may begin; nobody on the host but the shim is alive."""
    lab.join("a")
    run = submit(regatta, 1, 120, "--set", "on_lost=replace", "--set", "timeouts.lost=3s", "--set", "timeouts.grace=1s")
    regatta.wait(run, state="running")
    copy = regatta.cwd / f"copy-{run}-worker-0-1"
    wait_for(copy.exists, what="the job")
    lab.cut("a")
    begin = time.time()
    for kind in ("agent", "node-agent", "forkserver"):
        for pid in lab.pids(kind, ["a"]):
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not lab.jobs("a"), 30, "the job to end")
    assert 1 < copy.stat().st_mtime - begin < 3 + 1 + 2  # its last sign of life, however late this test looks
    lab.daemons["a"].wait()
    lab.heal("a")
    lab.rejoin("a")
    regatta("kill", "--now", run)
    regatta.wait(run)
    wait_for(lab.is_clean, what="the host to be empty")


@pytest.mark.parametrize("killed", [False, True])
def test_the_last_bytes_of_a_job_are_stored_or_said_to_be_missing(regatta, lab, killed):
    """It ends while its pipes are held by nobody but the pipe holder; then that one is killed too, or not."""
    lab.join("a")
    run = submit(regatta, 1, 60)
    regatta.wait(run, state="running")
    wait_for(lambda: len(regatta.log(run, "worker-0")) > 1000, what="output")
    kill_kind(lab, "agent")
    kill_kind(lab, "shim")
    wait_for(lambda: lab.pids("hold"), what="the pipe holder")
    kill_kind(lab, "node-agent")
    time.sleep(0.2)
    go(regatta)
    status = lab.nodes("a")[0] / "status"
    wait_for(lambda: "ended" in status.read_text(), what="the end of the job")
    if killed:
        lab.kill_host("a")
    lab.daemons["a"].wait()
    lab.rejoin("a")
    got = regatta.wait(run, 60)
    if killed:
        assert got["verdict"] == "failed" and "its output may be cut" in got["cause"], got
    else:
        assert got["verdict"] == "succeeded"
        check_exact(regatta, run)
    wait_for(lab.is_clean, what="the host to be empty")


def test_a_host_whose_clock_counts_from_another_boot(regatta, lab):
    """CLOCK_BOOTTIME and CLOCK_MONOTONIC of a host are a day ahead: only differences count."""
    lab.join("a", before=("unshare", "--time", "--boottime", "86400", "--monotonic", "86400"))
    lab.join("b")
    run = submit(regatta, 2, 3)
    assert regatta.wait(run)["verdict"] == "succeeded"
    check_exact(regatta, run)
    lab.wait("ab", "free")
    assert lab.is_clean()
