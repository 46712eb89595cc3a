"""Ranks by address (strategy paddle): given when all hosts are here, and kept when a master or a host dies."""
from conftest import wait_for
from lab import lab_of, needs_lab

pytestmark = needs_lab

# The server answers; the trainer writes who it is. Both live until the run is cancelled.
JOB = """
import os, pathlib, socket, sys, time
e = os.environ
if e["TRAINING_ROLE"] == "PSERVER":
    server = socket.create_server((e["REGATTA_ADDRESS"], int(e["CONF_PADDLE_PORT"])))
else:
    base = pathlib.Path(sys.argv[1])
    new = base / f"new-{e['REGATTA_NODE']}"
    new.write_text(f"{e['REGATTA_NODE_RANK']} {e['PADDLE_TRAINER_ID']} {e['REGATTA_ADDRESS']} {e['REGATTA_MEMBERS']}")
    new.rename(base / f"is-{e['REGATTA_NODE']}-{e['REGATTA_ATTEMPT']}")
while True:
    time.sleep(60)
"""


def said(regatta, node, attempt=1):
    path = regatta.cwd / f"is-{node}-{attempt}"
    wait_for(path.exists, 60, f"attempt {attempt} of {node}")
    return path.read_text().split()


def ranks(regatta, run):
    return {n["name"]: n["job_rank"] for n in regatta.status(run)["nodes"]}


def test_ranks_follow_addresses_and_stay(regatta):
    # Nodes take hosts by name: trainer-0 a, trainer-1 b, trainer-2 c, which has the lowest address.
    with lab_of(regatta, "cabd") as lab:
        lab.join(*"abcd")
        run = regatta.submit("-n", 3, "--engine", "hosts", "--set", "strategy=paddle", "--set", "on_lost=replace", "--set",
                             "timeouts.lost=3s", "--set", "timeouts.grace=1s", "--", "python3", regatta.script(JOB),
                             regatta.cwd)
        want = {"trainer-0": 1, "trainer-1": 2, "trainer-2": 0}
        hosts = dict(zip(want, "abc", strict=True))
        members = ",".join(f"{node}={lab.address[hosts[node]]}" for node in sorted(want, key=want.get))
        for node, rank in want.items():
            assert said(regatta, node) == [str(rank), str(rank), lab.address[hosts[node]], members]
        assert ranks(regatta, run) == want
        lab.kill_master()
        lab.start_master()
        assert ranks(regatta, run) == want
        lab.kill_host("c")
        # Its address is the highest now.
        assert said(regatta, "trainer-2", 2)[:3] == ["0", "0", lab.address["d"]]
        assert ranks(regatta, run) == want
        regatta("kill", run)
        assert regatta.wait(run)["verdict"] == "cancelled"
