"""Engine hosts when a host or the master is away for longer than a job may go on alone."""
import os
import signal

import pytest

from conftest import processes, wait_for

JOB = """
name = "alone"
engine = "hosts"
command = ["sh", "-c", "echo begin; sleep 1000"]
[timeouts]
lease = "8s"
grace = "1s"
"""


def of_host(fleet, name):
    """Every process of a host: the daemon, and what belongs to its nodes."""
    mark = str(fleet.dir(name)).encode()
    nodes = [p for p, (cmd, env) in processes().items() if mark in cmd or mark in env]
    return {fleet.daemons[name].pid, *nodes}


def kill_host(fleet, name):
    """Like a power cut: kills every process of the host, and none can react to the end of another."""
    for sign in [signal.SIGSTOP] * 5 + [signal.SIGKILL] * 5:  # a process may start another one meanwhile
        for pid in of_host(fleet, name):
            try:
                os.kill(pid, sign)
            except ProcessLookupError:
                pass
    fleet.daemons[name].wait()
    wait_for(lambda: not of_host(fleet, name) - {fleet.daemons[name].pid}, 10, "the end of the host")


def test_a_host_that_dies_is_believed_gone_after_its_lease_only(regatta, fleet):
    fleet.join("a", "b")
    run = regatta.submit(regatta.job(JOB))
    regatta.wait(run, state="running")
    kill_host(fleet, "a")
    fleet.wait(["a"], "gone")
    assert fleet.list()["a"]["run"] == run  # it cannot be given to another run
    got = regatta.wait(run, 60)
    assert got["verdict"] == "failed" and got["exit_code"] != 0
    assert "lost" in got["cause"], got["cause"]
    assert regatta.log(run, "worker-0") == b"begin\n"
    assert fleet.list()["a"] == {**fleet.list()["a"], "state": "gone", "run": None}
    # It comes back, with the directory of a node that nobody wants any more.
    assert fleet.nodes("a")
    fleet.start("a")
    fleet.wait(["a"], "free")
    assert not fleet.nodes("a")


def test_without_a_master_a_job_ends_with_its_lease_and_its_output_is_kept(regatta, fleet):
    fleet.join("a")
    run = regatta.submit(regatta.job(JOB))
    regatta.wait(run, state="running")
    wait_for(lambda: regatta.log(run, "worker-0") == b"begin\n", what="output")
    fleet.kill_master()
    wait_for(lambda: not regatta.pids("node-agent") and not regatta.pids("shim"), 30, "the lease to be over")
    assert fleet.nodes("a")
    fleet.start_master()
    got = regatta.wait(run, 60)
    assert got["verdict"] == "failed", got
    assert "lease" in got["cause"] or "lease" in str(got["nodes"]), got
    assert regatta.log(run, "worker-0") == b"begin\n"
    fleet.wait(["a"], "free")
    assert not fleet.nodes("a")


REPLACED = """
name = "again"
engine = "hosts"
count = 2
on_lost = "replace"
command = ["sh", "-c", "echo attempt $REGATTA_ATTEMPT; until [ -e {go} ]; do sleep 0.05; done"]
[timeouts]
lost = "3s"
grace = "1s"
"""


def test_the_node_of_a_host_that_dies_goes_on_elsewhere(regatta, fleet, tmp_path):
    fleet.join("a", "b", "c")
    run = regatta.submit(regatta.job(REPLACED.format(go=tmp_path / "go")))
    regatta.wait(run, state="running")
    assert [h["run"] for h in regatta.json("hosts")] == [run, run, None]
    # What a host has not sent yet dies with it.
    wait_for(lambda: regatta.log(run, "worker-0").startswith(b"attempt 1"), what="the output of the first attempt")
    kill_host(fleet, "a")
    wait_for(lambda: fleet.list()["c"]["run"] == run, 40, "the spare host to be taken")
    wait_for(lambda: [n["attempt"] for n in regatta.status(run)["nodes"]] == [2, 1], 40, "the second attempt")
    # The next agent there goes on with that attempt, though it is the first on its machine.
    for pid, (cmd, _) in processes().items():
        if cmd.startswith(b"regatta\0node-agent\0" + str(fleet.dir("c")).encode()):
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: "broken" in regatta("events", run).out, 30, "the master to miss the agent")
    (tmp_path / "go").touch()
    got = regatta.wait(run, 60)
    assert got["verdict"] == "succeeded" and [n["attempt"] for n in got["nodes"]] == [2, 1]
    assert regatta.log(run, "worker-0").startswith(b"attempt 1")
    fleet.start("a")
    fleet.wait(["a", "b", "c"], "free")
    assert not fleet.nodes("a") and not fleet.nodes("c")


# Attempt 1 leaves a checkpoint and fails, attempt 2 is lost with its host, the last one finds the checkpoint elsewhere.
CHECKPOINT = """
name = "checkpoint"
engine = "hosts"
count = 2
retries = 1
on_lost = "{policy}"
command = ["sh", "-c", '''
echo attempt $REGATTA_ATTEMPT previous: $(cat $REGATTA_PREVIOUS/deep/state $REGATTA_PREVIOUS/model 2>/dev/null)
if [ $REGATTA_ATTEMPT = 1 ] && [ $REGATTA_RANK = 0 ]; then
    mkdir $REGATTA_OUTPUT/deep; echo step 7 > $REGATTA_OUTPUT/deep/state; echo weights > model; exit 3
fi
until [ -e {go} ]; do sleep 0.05; done
''']
[output]
keep = ["model"]
[timeouts]
lost = "3s"
grace = "1s"
"""


@pytest.mark.parametrize("policy", ["replace", "restart"])
def test_the_next_attempt_finds_on_another_host_what_an_earlier_one_left(regatta, fleet, tmp_path, policy):
    fleet.join("a", "b", "c")
    run = regatta.submit(regatta.job(CHECKPOINT.format(go=tmp_path / "go", policy=policy)))
    attempts = lambda: [n["attempt"] for n in regatta.status(run)["nodes"]]
    logs = regatta.home / "runs" / run / "logs"
    second, third = logs / "worker-0.a2.log", logs / "worker-0.a3.log"
    said = b"previous: step 7 weights\n"
    wait_for(lambda: second.exists() and second.read_bytes(), 40, "the second attempt")
    assert second.read_bytes() == b"attempt 2 " + said  # on the same host
    kill_host(fleet, "a")
    wait_for(lambda: attempts()[0] == 3, 40, "the third attempt")
    wait_for(lambda: third.exists() and third.read_bytes(), 40, "its output")
    assert third.read_bytes() == b"attempt 3 " + said  # on another one
    if policy == "restart":
        wait_for(lambda: attempts() == [3, 2], 40, "the other node")
        again = logs / "worker-1.a2.log"
        wait_for(lambda: again.exists() and again.read_bytes(), 40, "its output")
        assert again.read_bytes() == b"attempt 2 previous:\n"
    (tmp_path / "go").touch()
    assert regatta.wait(run, 60)["verdict"] == "succeeded"
    fleet.start("a")
    fleet.wait(["a", "b", "c"], "free")
