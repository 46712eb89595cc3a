"""Strategy elastic with Debian's torchrun and etcd: grow, lose a node, finish; and what can be missing."""
import json
import os
import re
import shutil
import signal
import socket
import urllib.request

import pytest

from conftest import ROOT, processes, wait_for

EXAMPLE = ROOT / "examples" / "elastic"
SECONDS = 120


@pytest.fixture
def example(regatta):
    """The example in a directory of its own, where its checkpoints go."""
    for name in ("job.toml", "train.py"):
        shutil.copy(EXAMPLE / name, regatta.cwd)
    return regatta


def text(regatta, run):
    return "\n".join(p.read_text() for p in sorted((regatta.home / "runs" / run / "logs").glob("trainer-*.log"))
                     if ".err." not in p.name)


def begins(regatta, run):
    """(step, ranks) of each time that the processes began to train together."""
    return [(int(s), int(r)) for s, r in re.findall(r"begin at step=(\d+) with (\d+) ranks", text(regatta, run))]


def until(regatta, run, ranks, after=0):
    """Until `ranks` ranks train, from a step of at least `after` on; the step at which they began."""
    def there():
        got = regatta.status(run)
        assert got["state"] != "failed", got["cause"]
        found = [s for s, r in begins(regatta, run) if r == ranks and s >= after]
        return found and re.search(rf"step={found[-1] + 1}/\d+ ranks={ranks} ", text(regatta, run)) and found[-1:]
    return wait_for(there, SECONDS, f"{ranks} ranks to train")[0]


def last_step(regatta, run):
    return max(int(s) for s in re.findall(r"step=(\d+)/", text(regatta, run)))


def kill_node(regatta, run, node):
    """Everything of the node's job, as when its machine breaks."""
    marks = (f"REGATTA_RUN={run}\0".encode(), f"REGATTA_NODE={node}\0".encode())
    found = [pid for pid, (cmd, env) in processes().items() if all(m in env for m in marks) and b"train.py" in cmd]
    assert found
    for pid in found:
        os.kill(pid, signal.SIGKILL)


def rendezvous(got):
    """What the trainers have agreed on, as etcd's own API (v2) tells it."""
    address = next(n["address"] for n in got["nodes"] if n["name"] == "rdzv-0")
    with urllib.request.urlopen(f"http://{address}:2379/v2/keys/torchelastic/p2p/run_{got['id']}/rdzv/active_version") as r:
        return json.loads(json.load(r)["node"]["value"])


def test_grow_lose_a_node_and_finish(example):
    run = example.submit("job.toml", "--set", "env.PET_RDZV_CONF=last_call_timeout=1", "--set", "env.STEPS=100000")
    assert until(example, run, 2) == 0
    assert rendezvous(example.status(run))["participants"] == [0, 1]
    example("resize", run, "trainer=4")
    grown = until(example, run, 4, after=1)
    assert rendezvous(example.status(run))["participants"] == [0, 1, 2, 3]
    at_loss = last_step(example, run)
    kill_node(example, run, "trainer-3")
    resumed = until(example, run, 4, after=max(at_loss, grown + 1))
    assert resumed > grown
    (example.cwd / "stop").touch()
    got = example.wait(run, SECONDS)
    assert got["verdict"] == "succeeded", got["cause"]
    ends = re.findall(r"rank (\d) of 4 ends at step=(\d+)", text(example, run))
    assert sorted(rank for rank, _ in ends) == list("0123") and len({step for _, step in ends}) == 1
    assert [n["attempt"] for n in got["nodes"] if n["name"] == "trainer-3"] == [2]


def test_c10d_is_a_place_to_meet_without_etcd(example):
    with socket.create_server(("0.0.0.0", 0)) as free:  # torch's store takes its port on every address
        port = free.getsockname()[1]
    job = example.cwd / "job.toml"
    job.write_text(job.read_text() + f"\n[roles.rdzv]\nport = {port}\n")
    run = example.submit("job.toml", "--set", "rendezvous=c10d", "--set",
                         "env.PET_RDZV_CONF=last_call_timeout=1,is_host=0", "--set", "env.STEPS=100000")
    assert until(example, run, 2) == 0
    (example.cwd / "stop").touch()
    got = example.wait(run, SECONDS)
    assert got["verdict"] == "succeeded", got["cause"]


def test_without_etcd_there_is_one_line_that_says_so(example, tmp_path):
    for name in ("sh", "cat"):
        (tmp_path / name).symlink_to(shutil.which(name))
    job = example.cwd / "job.toml"
    job.write_text(job.read_text() + f'\n[roles.rdzv]\nenv = {{ PATH = "{tmp_path}" }}\n')
    got = example.json("run", "job.toml", code=1)
    what_next = 'install it (Debian: etcd-server), or write rendezvous = "c10d"'
    assert got["cause"] == f"rdzv-0: exit code 127: there is no etcd on its path: {what_next}"
    assert got["tail"]["lines"] == [f"there is no etcd on the path of rdzv-0: {what_next}"]
    assert not example.left(got["id"])


def test_a_port_in_use_is_one_line(example):
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]
        job = example.cwd / "job.toml"
        job.write_text(job.read_text() + f"\n[roles.rdzv]\nport = {port}\n")
        got = example.json("run", "job.toml", code=None)
    assert got["verdict"] == "failed" and re.search(rf"rdzv-0: port {port} on \S+ is taken by process {os.getpid()} ", got["cause"]), got["cause"]
    assert not example.left(got["id"])


def test_fewer_nodes_than_min_is_one_line(example):
    done = example("run", "job.toml", "--set", "roles.trainer.count=1", code=2)
    assert "roles.trainer.count is 1, but roles.trainer.min is 2" in done.err
