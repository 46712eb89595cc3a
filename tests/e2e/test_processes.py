"""Several processes on each node: ranks, logs, the first failure."""
import os
import signal

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


def test_the_ends_of_processes_outlive_the_master(regatta):
    run = regatta.json("run", "--output", "json", "--set", "processes_per_node=3", "--", "sh", "-c",
                       "[ $REGATTA_RANK = 1 ] && exit 5; exec sleep 600", code=1)["id"]
    before = regatta.status(run)
    regatta("master", "--stop")
    assert regatta.status(run)["nodes"] == before["nodes"]
    assert (1, 1, 5, None) in ends(before["nodes"][0])
