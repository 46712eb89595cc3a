"""A run keeps the plan that it was given, whatever the next master would plan.  What cannot be read is cleaned up only."""
import contextlib
import json
import os
import signal
import sqlite3

from conftest import wait_for

WAITER = """import os, sys, time
print("begun", os.environ["REGATTA_RANK"], os.environ["REGATTA_ADDRESS"], flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
print("done", flush=True)
"""


@contextlib.contextmanager
def master_away(regatta):
    """No master, and no agent that starts one, until the end of the block."""
    agents = regatta.pids("node-agent")
    for pid in agents:
        os.kill(pid, signal.SIGSTOP)
    for pid in regatta.pids("master"):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not regatta.pids("master"), what="the master to be dead")
    with contextlib.closing(sqlite3.connect(regatta.home / "regatta.db")) as db:
        yield db
        db.commit()
    for pid in agents:
        os.kill(pid, signal.SIGCONT)


def start(regatta, nodes=2):
    go = regatta.cwd / "go"
    regatta.script(WAITER)
    run = regatta.submit("-n", str(nodes), "--name", "kept", "--", "python3", "job.py", str(go))
    wait_for(lambda: all(b"begun" in regatta.log(run, f"worker-{i}") for i in range(nodes)
                         if (regatta.home / "runs" / run / "logs" / f"worker-{i}.log").exists()) and
             regatta.status(run)["state"] == "running" and
             regatta.status(run)["counts"]["running"] == nodes, what="the nodes to run")
    return run, go


def test_a_run_whose_job_is_no_longer_understood_goes_on_by_its_plan(regatta):
    run, go = start(regatta)
    before = regatta.status(run)
    with master_away(regatta) as db:
        db.execute("UPDATE job SET json = ?", (json.dumps({"engine": "moon", "future": {"key": 1}}),))
    after = regatta.status(run)
    assert after["state"] == "running" and after["unreadable"] is None
    assert [n["address"] for n in after["nodes"]] == [n["address"] for n in before["nodes"]]
    go.touch()
    assert regatta.wait(run)["verdict"] == "succeeded"
    for i in range(2):
        lines = regatta.log(run, f"worker-{i}").split(b"\n")
        assert lines[0].startswith(b"begun") and lines[1:] == [b"done", b""]
    with master_away(regatta) as db:
        pass
    assert regatta.status(run)["verdict"] == "succeeded"


def test_a_run_of_an_older_version_is_planned_once(regatta):
    run, go = start(regatta)
    before = regatta.status(run)
    with master_away(regatta) as db:
        facts = json.loads(db.execute("SELECT facts FROM job").fetchone()[0])
        db.execute("UPDATE job SET plan = NULL, facts = ?", (json.dumps({"first_address": facts["first_address"]}),))
    after = regatta.status(run)
    assert after["state"] == "running"
    assert [n["address"] for n in after["nodes"]] == [n["address"] for n in before["nodes"]]
    with master_away(regatta) as db:
        plan, kept = (json.loads(t) for t in db.execute("SELECT plan, facts FROM job").fetchone())
        assert plan["version"] == 1 and [n["name"] for n in plan["nodes"]] == ["worker-0", "worker-1"]
        assert kept == facts
        db.execute("UPDATE job SET json = '{}'")
    go.touch()
    assert regatta.wait(run)["verdict"] == "succeeded"


def test_a_run_that_cannot_be_read_waits_unharmed_and_can_be_killed(regatta):
    run, go = start(regatta)
    with master_away(regatta) as db:
        plan = db.execute("SELECT plan FROM job").fetchone()[0]
        db.execute("UPDATE job SET plan = ?", (json.dumps({"version": 99}),))
    shown = regatta.json("ps")
    assert [r["id"] for r in shown] == [run] and shown[0]["elapsed_ms"] >= 0 and shown[0]["state"] == "running"
    got = regatta.status(run)
    assert "version" in got["unreadable"] and got["verdict"] is None
    assert [n["name"] for n in got["nodes"]] == ["worker-0", "worker-1"]
    assert regatta("logs", run).out.count("begun") == 2

    # The version that can read it is back: nothing is lost.
    with master_away(regatta) as db:
        db.execute("UPDATE job SET plan = ?", (plan,))
    wait_for(lambda: regatta.status(run)["counts"]["running"] == 2, what="both nodes to be back")
    assert regatta.status(run)["unreadable"] is None

    with master_away(regatta) as db:
        db.execute("UPDATE job SET plan = 'no JSON'")
        db.execute("UPDATE job SET json = 'neither'")
    assert "plan" in regatta.status(run)["unreadable"]
    regatta("kill", run, code=None)
    got = regatta.wait(run)
    assert got["verdict"] == "cancelled" and got["state"] == "cancelled"
    assert not regatta.pids("shim")
    with master_away(regatta) as db:
        assert db.execute("SELECT DISTINCT state FROM resource").fetchall() == [(4,)]
    assert regatta.status(run)["state"] == "cancelled"
    regatta("cleanup", run)
    assert not (regatta.home / "runs" / run).exists()


def test_the_ledger_alone_is_enough_to_clean_up(regatta):
    run, go = start(regatta)
    with master_away(regatta) as db:
        db.execute("UPDATE job SET plan = '{}', facts = 'x', json = 'y', client_env = 'z'")
        db.execute("UPDATE run SET engine = 'moon', strategy = 'moon'")
    regatta("cleanup", run)
    assert not regatta.json("ps", "--all") and not regatta.pids("shim")
