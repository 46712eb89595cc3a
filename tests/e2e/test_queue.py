"""Runs with resources: who waits, in which order, and what each node gets."""
import contextlib
import fcntl
import json
import os
import tempfile

from conftest import wait_for

CPUS = os.cpu_count()
SLEEPS = 'command = ["sh", "-c", "echo up; exec sleep 120"]\n'


def job(regatta, name, more, command=SLEEPS):
    return regatta.job(f'name = "{name}"\n{command}{more}\ntimeouts = {{ grace = "1s" }}\n', name=f"{name}.toml")


def state(regatta, run):
    return regatta.status(run)["state"]


def test_a_run_waits_for_what_another_holds_and_nobody_overtakes(regatta):
    first = regatta.submit(job(regatta, "first", f"resources = {{ cpus = {CPUS - 0.5} }}"))
    wait_for(lambda: state(regatta, first) == "running", what="the first run")
    second = regatta.submit(job(regatta, "second", "resources = { cpus = 1 }"))
    third = regatta.submit(job(regatta, "third", "resources = { cpus = 0.25 }"))  # would fit
    urgent = regatta.submit(job(regatta, "urgent", "resources = { cpus = 1 }\npriority = 5"))
    free = regatta.json("run", "--output", "json", "--", "true")  # asks for nothing
    assert free["verdict"] == "succeeded"
    got = {run: regatta.status(run) for run in (second, third, urgent)}
    assert [got[run]["queue"]["place"] for run in (urgent, second, third)] == [1, 2, 3]
    assert all(got[run]["state"] == "accepted" for run in got)
    why = "1 node with 1 cpu in all: 0.5 cpus free on 1 machine"
    assert got[urgent]["queue"]["why"] == why
    assert got[third]["queue"]["why"] == "2 runs before it"
    assert f"place 1 in the queue: {why}" in regatta("ps").out
    assert f"place 1 in the queue: {why}" in regatta("status", urgent).out
    refused = regatta("run", "--no-wait", job(regatta, "hasty", "resources = { cpus = 1 }"), code=5)
    assert "it would have to wait: 3 runs before it" in refused.err
    assert "the run waits in the queue" in regatta("exec", urgent, "worker-0", "--", "true", code=2).err
    regatta("master", "--stop")  # the next master finds them waiting
    assert regatta.status(urgent)["queue"]["place"] == 1 and state(regatta, first) == "running"
    assert regatta("kill", third).out == f"{third} has ended: cancelled\n"
    assert regatta.wait(third)["verdict"] == "cancelled"
    regatta("kill", first)
    wait_for(lambda: state(regatta, urgent) == "running", what="the urgent run")
    regatta("kill", urgent)
    wait_for(lambda: state(regatta, second) == "running", what="the second run")
    assert regatta.status(second)["queue"] is None
    regatta("kill", second)


def test_what_can_never_run_is_refused_at_once(regatta):
    done = regatta("run", job(regatta, "huge", f"resources = {{ cpus = {CPUS + 1} }}"), code=5)
    assert f"this can never run here: 1 node with {CPUS + 1} cpus in all: {CPUS} cpus there on 1 machine" in done.err
    done = regatta("run", job(regatta, "gpus", "resources = { gpus = 64 }"), code=5)
    assert "this can never run here" in done.err
    assert regatta.json("ps", "-a") == []


def fake_gpus(regatta, n):
    tools = regatta.cwd / "tools"
    tools.mkdir()
    lines = "".join(f"echo 'GPU {i}: NVIDIA A100 (UUID: GPU-{i})'\n" for i in range(n))
    (tools / "nvidia-smi").write_text(f'#!/bin/sh\n[ "$1" = -L ] || exit 1\n{lines}')
    (tools / "nvidia-smi").chmod(0o755)
    return {"PATH": f"{tools}:{os.environ['PATH']}"}


@contextlib.contextmanager
def alone():
    """Claims are those of the machine: this test does not run twice at once."""
    with open(os.path.join(tempfile.gettempdir(), "regatta-test-gpus.lock"), "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def test_two_runs_never_share_a_gpu(regatta):
    with alone():
        share_gpus(regatta)


def share_gpus(regatta):
    env = fake_gpus(regatta, 4)
    says = 'command = ["sh", "-c", "echo $LOCAL_RANK of $REGATTA_WORLD_SIZE sees $CUDA_VISIBLE_DEVICES is $NVIDIA_VISIBLE_DEVICES; exec sleep 120"]\n'
    regatta("ps", env=env)  # starts the master
    # What the submitting shell says of all GPUs is not for runs that get some of them.
    first = json.loads(regatta("run", "-d", "--output", "json", job(
        regatta, "first", 'resources = { gpus = 1 }\ncount = 2', says), env={**env, "CUDA_VISIBLE_DEVICES": "3"}).out)["id"]
    second = json.loads(regatta("run", "-d", "--output", "json", job(
        regatta, "second", 'resources = { gpus = 2 }\nprocesses_per_node = "gpus"', says), env=env).out)["id"]
    wait_for(lambda: state(regatta, second) == "running", what="both runs")

    def sees(run, name):
        *said, _, again = wait_for(lambda: regatta.log(run, name), what=f"the line of {name}").split()
        assert again == said[-1]  # NVIDIA_VISIBLE_DEVICES
        return said

    ours = [sees(first, f"worker-{i}")[-1] for i in range(2)]
    theirs = sees(second, "worker-0.p0")[-1].split(b",")
    assert sorted(ours + theirs) == [b"0", b"1", b"2", b"3"]
    assert sees(second, "worker-0.p1") == [b"1", b"of", b"2", b"sees", b",".join(theirs)]
    assert "it would have to wait: 1 node with 1 gpu in all" in regatta(
        "run", "--no-wait", job(regatta, "third", "resources = { gpus = 1 }"), code=5, env=env).err
    regatta("kill", first, second)
    for run in (first, second):
        regatta.wait(run)


def test_processes_are_counted_on_the_machine(regatta):
    run = regatta.json("run", "--output", "json", "--set", 'processes_per_node="cpus"', "--", "sh", "-c",
                       "echo $REGATTA_RANK of $REGATTA_WORLD_SIZE")
    assert run["verdict"] == "succeeded" and len(run["nodes"][0].get("processes", [0])) == CPUS
    log = "worker-0.p0" if CPUS > 1 else "worker-0"
    assert regatta.log(run["id"], log) == f"0 of {CPUS}\n".encode()
    done = regatta("run", "--set", 'processes_per_node="gpus"', "--", "true", code=5, env={"PATH": "/usr/bin:/bin"})
    assert 'processes_per_node = "gpus": this machine has 0 for 1 node: write a number' in done.err


def test_a_run_waits_for_a_host_that_another_has(regatta, fleet):
    fleet.join("alpha")
    first = regatta.submit(job(regatta, "first", 'engine = "hosts"\nresources = { cpus = 1 }'))
    wait_for(lambda: state(regatta, first) == "running", what="the first run")
    second = regatta.submit(job(regatta, "second", 'engine = "hosts"\nresources = { cpus = 0.5 }'))
    assert regatta.status(second)["queue"] == {"place": 1, "why": "1 node with 0.5 cpus in all: nothing free on 0 machines"}
    done = regatta("run", job(regatta, "huge", f'engine = "hosts"\nresources = {{ cpus = {CPUS + 1} }}'), code=5)
    assert "this can never run here" in done.err
    fleet.start("beta")  # is taken at once
    wait_for(lambda: state(regatta, second) == "running", what="the second run")
    regatta("kill", first, second)
    for run in (first, second):
        regatta.wait(run)
