"""The number of nodes of a role changes while the run goes on."""
from conftest import wait_for

WORKER = """
import os, sys, time
print("rank", os.environ["REGATTA_RANK"], "of", os.environ["WORLD_SIZE"], flush=True)
while not os.path.exists("done"):
    time.sleep(0.02)
"""


def states(regatta, run):
    return [n["state"] for n in regatta.status(run)["nodes"]]


def test_a_run_grows_and_shrinks(regatta):
    regatta.script(WORKER)
    regatta.job('command = ["python3", "job.py"]\ncount = 2\nmin = 1\nmax = 3\n')
    run = regatta.submit("job.toml")
    wait_for(lambda: states(regatta, run)[:2] == ["running"] * 2, what="two nodes")
    assert f"{run}: worker=3 is asked for" in regatta("resize", run, "worker=3").out
    wait_for(lambda: states(regatta, run) == ["running"] * 3, what="three nodes")
    wait_for(lambda: regatta.log(run, "worker-2"), what="its first line")
    regatta("resize", run, "worker=1")
    wait_for(lambda: states(regatta, run) == ["running", "wanted", "wanted"], what="one node")
    rows = [line.split()[:2] for line in regatta("status", run).out.splitlines() if line.startswith("worker-")]
    assert rows == [["worker-0", "running"], ["worker-1", "dormant"], ["worker-2", "dormant"]]
    assert regatta.json("status", run)["counts"]["dormant"] == 2
    (regatta.cwd / "done").write_text("")
    assert regatta.wait(run)["verdict"] == "succeeded"
    assert regatta("logs", "--stdout", run, "worker-0").out == "rank 0 of 2\n"
    assert regatta("logs", "--stdout", run, "worker-2").out == "rank 2 of 3\n"


def test_a_size_out_of_bounds_is_one_line(regatta):
    regatta.script(WORKER)
    regatta.job('command = ["python3", "job.py"]\nmax = 2\n')
    run = regatta.submit("job.toml")
    done = regatta("resize", run, "worker=3", code=2)
    assert "role worker can have at most 2 nodes (max): not 3" in done.err and done.err.count("\n") == 1
    assert "needs at least 1 node (min)" in regatta("resize", run, "worker=0", code=2).err
    assert "has no role 'trainer'" in regatta("resize", run, "trainer=1", code=3).err
    assert "write ROLE=N" in regatta("resize", run, "worker", code=2).err
    (regatta.cwd / "done").write_text("")
    regatta.wait(run)
    assert "it can be resized only until its job has ended" in regatta("resize", run, "worker=2", code=None).err


TWO_ROLES = """
strategy = "roles"
[roles.trainer]
command = ["python3", "job.py"]
count = 1
max = 2
[roles.reader]
command = ["python3", "job.py"]
count = 1
max = 2
"""


def test_several_sizes_are_taken_together_or_not_at_all(regatta):
    regatta.script(WORKER)
    regatta.job(TWO_ROLES)
    run = regatta.submit("job.toml")
    wait_for(lambda: sorted(states(regatta, run)) == ["running"] * 2 + ["wanted"] * 2, what="one node of each role")
    for wrong, code in (("reader=3", 2), ("reader", 2), ("nobody=1", 3), ("trainer=1", 2)):
        regatta("resize", run, "trainer=2", wrong, code=code)
    assert "role 'trainer' is given twice" in regatta("resize", run, "trainer=2", "trainer=1", code=2).err
    assert sorted(states(regatta, run)) == ["running"] * 2 + ["wanted"] * 2
    assert not [line for line in regatta("events", run).out.splitlines() if "resize" in line]
    regatta("resize", run, "trainer=2", "reader=2")
    wait_for(lambda: states(regatta, run) == ["running"] * 4, what="two nodes of each role")
    (regatta.cwd / "done").write_text("")
    assert regatta.wait(run)["verdict"] == "succeeded"
