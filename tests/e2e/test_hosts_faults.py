"""Engine hosts when something dies: the job goes on, nothing runs twice, nothing is left."""
import os
import signal
import subprocess

from conftest import Regatta, processes, wait_for

# Says when it runs, waits for a file, says that it is done.
WAITER = "echo begin $REGATTA_NODE; until [ -e {go} ]; do sleep 0.05; done; echo end $REGATTA_NODE"


def submit(regatta, tmp_path, nodes=2, *args):
    run = regatta.submit("-n", nodes, "--engine", "hosts", *args, "--", "sh", "-c", WAITER.format(go=tmp_path / "go"))
    regatta.wait(run, state="running")
    return run


def check_output(regatta, run):
    for node in regatta.status(run)["nodes"]:
        assert regatta.log(run, node["name"]).decode() == f"begin {node['name']}\nend {node['name']}\n"


def test_a_gang_of_three(regatta, fleet, tmp_path):
    fleet.join("a", "b", "c")
    run = submit(regatta, tmp_path, 3)
    assert {h["run"] for h in fleet.list().values()} == {run}
    (tmp_path / "go").touch()
    assert regatta.wait(run)["verdict"] == "succeeded"
    check_output(regatta, run)
    fleet.wait(["a", "b", "c"], "free")


def test_a_killed_run_leaves_nothing(regatta, fleet, tmp_path):
    fleet.join("a", "b")
    run = submit(regatta, tmp_path)
    regatta("kill", "--now", run)
    assert regatta.wait(run)["verdict"] == "cancelled"
    assert not fleet.nodes("a") and not fleet.nodes("b")
    fleet.wait(["a", "b"], "free")
    assert not [path for name in "ab" for path in (fleet.dir(name) / "runs").iterdir()]


def test_somebody_else_answers_in_place_of_the_master(regatta, fleet, tmp_path):
    """A host that has joined once does not end: it says so and waits for its master."""
    fleet.join("a")
    run = submit(regatta, tmp_path, 1)
    fleet.kill_master()
    (tmp_path / "work2").mkdir()
    other = Regatta(tmp_path / "home2", tmp_path / "work2")
    stranger = other.start("master", "--listen", f"0.0.0.0:{fleet.port}", "--output", "json", stderr=subprocess.DEVNULL)
    assert stranger.stdout.readline()
    wait_for(lambda: "the server's key is" in fleet.log("a").read_text(), what="the wrong key to be noticed")
    assert fleet.daemons["a"].poll() is None and other.json("hosts") == []
    other("master", "--stop")
    stranger.wait(30)
    fleet.start_master()
    fleet.wait(["a"], "busy")
    (tmp_path / "go").touch()
    assert regatta.wait(run)["verdict"] == "succeeded"
    check_output(regatta, run)


def test_the_daemon_of_a_host_is_killed_and_comes_back(regatta, fleet, tmp_path):
    fleet.join("a", "b")
    run = submit(regatta, tmp_path)
    fleet.kill("a")
    fleet.wait(["a"], "gone")
    assert regatta.status(run)["state"] == "running"
    fleet.start("a")
    fleet.wait(["a"], "busy")
    assert fleet.list()["a"]["run"] == run
    (tmp_path / "go").touch()
    assert regatta.wait(run)["verdict"] == "succeeded"
    check_output(regatta, run)
    assert not fleet.nodes("a")


def test_a_run_that_ends_without_the_daemon_waits_for_it(regatta, fleet, tmp_path):
    fleet.join("a")
    run = submit(regatta, tmp_path, 1)
    fleet.kill("a")
    (tmp_path / "go").touch()
    got = regatta.wait(run, state="cleaning")
    assert got["verdict"] == "succeeded"
    fleet.start("a")
    assert regatta.wait(run)["verdict"] == "succeeded"
    assert not fleet.nodes("a")


def test_the_master_is_killed_and_comes_back(regatta, fleet, tmp_path):
    fleet.join("a", "b", "c")
    run = submit(regatta, tmp_path)
    fleet.kill_master()
    fleet.start_master()
    fleet.wait(["a", "b"], "busy")
    fleet.wait(["c"], "free")
    assert regatta.status(run)["state"] == "running"
    (tmp_path / "go").touch()
    assert regatta.wait(run)["verdict"] == "succeeded"
    check_output(regatta, run)
    fleet.wait(["a", "b", "c"], "free")


def test_hosts_are_known_after_a_restart_of_the_master(regatta, fleet):
    fleet.join("a", labels="gpu=x")
    fleet.kill("a")
    fleet.kill_master()
    fleet.start_master()
    got = fleet.list()["a"]
    assert got["state"] == "gone" and got["labels"] == {"gpu": "x"} and got["run"] is None


def test_a_busy_host_is_waited_for(regatta, fleet, tmp_path):
    fleet.join("a")
    first = submit(regatta, tmp_path, 1)
    second = regatta.submit("--engine", "hosts", "--", "echo", "second")
    wait_for(lambda: "1 fits, of which 0 free, 1 busy, 0 gone" in regatta("events", second).out, what="the reason")
    assert regatta.status(second)["state"] == "provisioning"
    (tmp_path / "go").touch()
    assert regatta.wait(first)["verdict"] == "succeeded"
    assert regatta.wait(second)["verdict"] == "succeeded"


def test_the_agent_of_a_node_is_killed(regatta, fleet, tmp_path):
    fleet.join("a")
    run = submit(regatta, tmp_path, 1)
    (pid,) = regatta.pids("node-agent")
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: [p for p in regatta.pids("node-agent") if p != pid], what="another agent")
    (tmp_path / "go").touch()
    assert regatta.wait(run)["verdict"] == "succeeded"
    check_output(regatta, run)


def test_a_run_that_the_master_forgot_is_swept_when_the_host_joins(regatta, fleet, tmp_path):
    fleet.join("a")
    run = submit(regatta, tmp_path, 1)
    fleet.kill("a")
    assert fleet.nodes("a")
    fleet.kill_master()
    for name in os.listdir(regatta.home):  # a new database
        if name.startswith("regatta.db"):
            (regatta.home / name).unlink()
    fleet.start_master()
    fleet.start("a")
    fleet.wait(["a"], "free")
    assert not fleet.nodes("a")
    assert not [c for c, _ in processes().values() if str(fleet.dir("a")).encode() in c and b"node-agent" in c]
    assert run not in regatta("ps", "--all").out


def test_what_no_host_can_do_is_refused_at_once(regatta, fleet):
    done = regatta("run", "--engine", "hosts", "--", "true", code=5)
    assert "no host has joined this master" in done.err
    fleet.join("a", labels="gpu=x")
    done = regatta("run", "--engine", "hosts", "--set", "hosts.labels.gpu=y", "--", "true", code=2)
    assert "no host has the names and labels of [hosts] (1 joined this master): 'regatta hosts' lists theirs" in done.err
    assert "succeeded" in regatta("run", "--engine", "hosts", "--set", "hosts.labels.gpu=x", "--", "true").out
    regatta("run", "--engine", "hosts", "--set", 'hosts.names=["b"]', "--", "true", code=2)
    done = regatta("run", "-n", "3", "--engine", "hosts", "--set", "hosts.slots=2", "--", "true", code=5)
    assert "3 nodes do not fit on 1 host with 2 nodes each" in done.err
    done = regatta("run", "-n", "2", "--engine", "hosts", "--set", "hosts.slots=2", "--", "true")
    assert "succeeded" in done.out
    assert regatta.json("ps") == []
