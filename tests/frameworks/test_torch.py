"""Strategy torch with Debian's PyTorch: the examples as they are, more nodes, isolated nodes, and failures."""
import os
import re

import pytest

from conftest import ROOT, wait_for

EXAMPLE = ROOT / "examples" / "torch-ddp"
SECONDS = 120


def lines(regatta, run, *names):
    return [line for name in names for line in regatta.log(run, name).decode().splitlines()]


def trained(got, size, text):
    """The run succeeded, the loss is as low as the example's README says, and every rank has the same model."""
    assert got["verdict"] == "succeeded", got["cause"]
    losses = [float(x) for x in re.findall(r"step=60/60 loss=(\S+)", text)]
    assert len(losses) == 1 and losses[0] < 0.001
    models = re.findall(r"rank (\d+): weight=(\S+) bias=(\S+)", text)
    assert sorted(int(rank) for rank, _, _ in models) == list(range(size))
    assert len({(w, b) for _, w, b in models}) == 1
    assert abs(float(models[0][1]) - 3) < 0.1 and abs(float(models[0][2]) + 1) < 0.1


@pytest.mark.parametrize("isolate", ["none", "netns"])
def test_ddp_on_four_nodes(regatta, isolate):
    if isolate == "netns" and os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    got = regatta.json("run", EXAMPLE / "job.toml", "--set", "count=4", "--set", "processes_per_node=1",
                       "--set", f"isolate={isolate}", "--set", "env.MASTER_PORT=29511", timeout=SECONDS)
    text = "\n".join(lines(regatta, got["id"], *[f"worker-{i}" for i in range(4)]))
    trained(got, 4, text)
    assert "rank 3 of 4, local rank 0 on node 3" in text


def test_two_processes_on_each_node(regatta):
    got = regatta.json("run", EXAMPLE / "job.toml", "--set", "env.MASTER_PORT=29512", timeout=SECONDS)
    text = "\n".join(lines(regatta, got["id"], "worker-0.p0", "worker-0.p1", "worker-1.p0", "worker-1.p1"))
    trained(got, 4, text)
    assert "rank 3 of 4, local rank 1 on node 1" in text


@pytest.mark.parametrize("nodes", [2, 4])
def test_torchrun_on_each_node_starts_the_ranks(regatta, nodes):
    each = 4 // nodes  # the example has two nodes with two ranks
    got = regatta.json("run", EXAMPLE / "torchrun.toml", "--set", f"count={nodes}", "--set", f"processes_per_node={each}",
                       "--set", "env.MASTER_PORT=29513", timeout=SECONDS)
    text = "\n".join(lines(regatta, got["id"], *[f"worker-{i}" for i in range(nodes)]))
    trained(got, 4, text)
    assert re.search(rf"rank 3 of 4, local rank {each - 1} on node {nodes - 1}$", text, re.M)


def test_a_rank_that_fails_ends_the_run_with_its_reason(regatta):
    regatta.script("import time, torch.distributed as dist\n"
                   "dist.init_process_group('gloo')\n"
                   "if dist.get_rank() == 1:\n"
                   "    raise SystemExit('rank 1 has seen enough')\n"
                   "time.sleep(600)\n")
    regatta.job('strategy = "torch"\ncount = 2\ncommand = ["python3", "job.py"]\nenv = { MASTER_PORT = "29514" }\n')
    got = regatta.json("run", "job.toml", code=1, timeout=SECONDS)
    assert got["cause"] == "worker-1: exit code 1" and got["tail"]["lines"] == ["rank 1 has seen enough"]
    wait_for(lambda: not [c for c in regatta.ours().values() if b"job.py" in c], what="no rank to be left")


def test_a_rank_that_ends_early_is_named(regatta):
    regatta.script("import os, time, torch, torch.distributed as dist\n"
                   "dist.init_process_group('gloo')\n"
                   "while dist.get_rank() == 0 and not os.path.exists('go'):\n"
                   "    time.sleep(0.02)\n"
                   "if dist.get_rank() == 0:\n"
                   "    dist.all_reduce(torch.ones(1))\n")
    regatta.job('strategy = "torch"\ncount = 2\ncommand = ["python3", "job.py"]\nenv = { MASTER_PORT = "29515" }\n')
    run = regatta.submit("job.toml")
    wait_for(lambda: regatta.status(run)["nodes"][1]["state"] == "exited", SECONDS, "rank 1 to end")
    (regatta.cwd / "go").touch()
    got = regatta.wait(run, SECONDS)
    assert got["cause"] == "worker-0: exit code 1; worker-1 had ended with exit code 0 before"
    assert not regatta.left(run)
