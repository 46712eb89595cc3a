"""Several processes on each node: ranks, logs, the first failure."""
import os
import signal

import pytest

from conftest import wait_for

SAY = "echo $REGATTA_NODE_RANK.$REGATTA_LOCAL_RANK is $REGATTA_RANK of $REGATTA_WORLD_SIZE; echo err $RANK >&2"


def ends(node):
    return [(p["rank"], p["local_rank"], p["exit_code"], p["signal"]) for p in node["processes"]]


def test_each_process_has_its_rank_and_its_logs(regatta):
    run = regatta.json("run", "--output", "json", "-n", "2", "--set", "processes_per_node=2", "--", "sh", "-c", SAY)
    assert run["verdict"] == "succeeded"
    assert [ends(n) for n in run["nodes"]] == [[(0, 0, 0, None), (1, 1, 0, None)], [(2, 0, 0, None), (3, 1, 0, None)]]
    assert regatta.log(run["id"], "worker-1.p0") == b"1.0 is 2 of 4\n"
    assert regatta.log(run["id"], "worker-1.p1") == b"1.1 is 3 of 4\n"
    assert regatta.log(run["id"], "worker-1.p1", err=True) == b"err 3\n"
    assert run["nodes"][0]["log_bytes"] == 2 * len("0.0 is 0 of 4\n")
    lines = regatta("logs", run["id"]).out.splitlines()
    assert len(lines) == 8 and "worker-0.p1 | 0.1 is 1 of 4" in lines
    assert regatta("logs", run["id"], "worker-1.p0", "--stdout").out == "1.0 is 2 of 4\n"
    assert len(regatta("logs", run["id"], "worker-1").out.splitlines()) == 4
    assert "has no node 'worker-1.p2'" in regatta("logs", run["id"], "worker-1.p2", code=3).err


def test_a_killed_process_ends_the_run_with_its_rank_and_signal(regatta):
    run = regatta.submit("-n", "2", "--set", "processes_per_node=2", "--", "sh", "-c",
                         "echo $$ > pid-$REGATTA_RANK; echo last words $REGATTA_RANK; exec sleep 600")
    pid = wait_for(lambda: (regatta.cwd / "pid-3").exists() and (regatta.cwd / "pid-3").read_text().strip(), what="rank 3")
    for rank in range(3):
        wait_for(lambda: (regatta.cwd / f"pid-{rank}").exists(), what=f"rank {rank}")
    os.kill(int(pid), signal.SIGKILL)
    got = regatta.wait(run)
    assert got["verdict"] == "failed"
    assert got["cause"] == "worker-1: killed by SIGKILL: process 1 of 2 failed first"
    assert ends(got["nodes"][1]) == [(2, 0, None, signal.SIGTERM), (3, 1, None, signal.SIGKILL)]
    assert got["tail"]["lines"] == ["last words 3"]


CPUS = "grep Cpus_allowed_list /proc/self/status"


def allowed(text):
    return {cpu for part in text.split(":")[1].strip().split(",")
            for cpu in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)}


def cpus_of_processes(regatta, processes, *words, nodes=1):
    run = regatta.json("run", "--output", "json", "-n", str(nodes), "--set", f"processes_per_node={processes}", *words, "--",
                       "sh", "-c", CPUS)
    names = [f"worker-{n}.p{p}" if processes > 1 else f"worker-{n}" for n in range(nodes) for p in range(processes)]
    return [allowed(regatta.log(run["id"], name).decode()) for name in names]


def says_nvidia_smi(regatta, tmp_path, answer):
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{answer}\n")
    tool.chmod(0o755)
    regatta.env["PATH"] = f"{tool.parent}:{os.environ['PATH']}"


without_driver = pytest.mark.skipif(os.path.exists("/proc/driver/nvidia/gpus"), reason="the driver says what GPUs there are")


@without_driver
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU cannot be shared")
def test_processes_of_a_node_share_its_cpus(regatta, tmp_path):
    says_nvidia_smi(regatta, tmp_path, "exit 9")
    every = os.sched_getaffinity(0)
    of = cpus_of_processes(regatta, 2, nodes=2)
    assert of[0] | of[1] == every and not of[0] & of[1] and max(of[0]) < min(of[1])
    assert of[2:] == of[:2] and abs(len(of[0]) - len(of[1])) <= 1
    assert cpus_of_processes(regatta, 2, "--set", "bind_cpus=false") == [every, every]
    assert cpus_of_processes(regatta, 1) == [every]


def test_more_processes_than_cpus_are_not_bound(regatta):
    every = os.sched_getaffinity(0)
    if len(every) > 16:
        pytest.skip("as many processes as this are too many here")
    assert cpus_of_processes(regatta, len(every) + 1) == [every] * (len(every) + 1)


@without_driver
def test_processes_of_a_machine_with_gpus_are_not_bound(regatta, tmp_path):
    says_nvidia_smi(regatta, tmp_path, 'echo "GPU 0: x"')
    assert cpus_of_processes(regatta, 2) == [os.sched_getaffinity(0)] * 2


def test_the_ends_of_processes_outlive_the_master(regatta):
    run = regatta.json("run", "--output", "json", "--set", "processes_per_node=3", "--", "sh", "-c",
                       "[ $REGATTA_RANK = 1 ] && exit 5; exec sleep 600", code=1)["id"]
    before = regatta.status(run)
    regatta("master", "--stop")
    assert regatta.status(run)["nodes"] == before["nodes"]
    assert (1, 1, 5, None) in ends(before["nodes"][0])
