"""The hosts engine as a script tries it: a master on 127.0.0.1 and several hosts of this machine, each a user of its own."""
import json
import subprocess

import pytest

from conftest import Regatta, wait_for
from hosts_fleet import Fleet

KEYS = {"name": str, "address": str, "state": str, "cpus": int, "memory": int, "gpus": int, "labels": dict,
        "version": str, "run": (str, type(None))}


@pytest.fixture
def loopback(regatta):
    """A master on 127.0.0.1."""
    f = Fleet(regatta, "127.0.0.1")
    yield f
    regatta("master", "--stop", "--cancel", code=None, timeout=30)
    f.close()


@pytest.fixture
def hosts(loopback, tmp_path):
    """Three daemons with homes of their own."""
    said = loopback.said
    for i, name in enumerate(("alpha", "beta", "gamma")):
        (tmp_path / name).mkdir()
        user = Regatta(tmp_path / name / "home", tmp_path / name)
        log = open(loopback.log(name), "ab")
        loopback.daemons[name] = user.start("agent", "--join", said["url"], "--pin", said["pin"], "--token", said["join"],
                                            "--name", name, "--labels", f"place={i},kind=test",
                                            stdout=subprocess.DEVNULL, stderr=log)
        log.close()
    loopback.wait(["alpha", "beta", "gamma"], "free")
    return loopback


def test_hosts_are_listed_with_exactly_these_keys(regatta, hosts):
    listed = json.loads(regatta("hosts", "--output", "json").out)
    assert [h["name"] for h in listed] == ["alpha", "beta", "gamma"]
    for i, h in enumerate(listed):
        assert set(h) == set(KEYS) and all(isinstance(h[k], KEYS[k]) for k in KEYS), h
        assert h["address"] == "127.0.0.1" and h["state"] == "free" and h["run"] is None
        assert h["labels"] == {"place": str(i), "kind": "test"} and h["cpus"] > 0 and h["memory"] > 0
    assert regatta("hosts").out.count("free") == 3


def test_a_run_is_carried_by_them(regatta, hosts):
    run = regatta.submit("-n", "3", "--engine", "hosts", "--", "sh", "-c",
                         "echo $REGATTA_RANK of $REGATTA_NODES; touch $REGATTA_OUTPUT/made; sleep 1")
    busy = wait_for(lambda: [h for h in regatta.json("hosts") if h["state"] == "busy"], what="a busy host")
    assert {h["run"] for h in busy} == {run}
    assert regatta.wait(run)["verdict"] == "succeeded"
    for i in range(3):
        assert regatta.log(run, f"worker-{i}") == b"%d of 3\n" % i
        assert (regatta.home / "runs" / run / "outputs" / f"worker-{i}" / "made").exists()
    hosts.wait(["alpha", "beta", "gamma"], "free")


def test_other_clients_come_over_tls(regatta, hosts, tmp_path):
    said = hosts.said
    other = Regatta(tmp_path / "other", regatta.cwd)
    env = {"REGATTA_MASTER": said["url"], "REGATTA_TOKEN": said["token"], "REGATTA_PIN": said["pin"]}
    assert len(other.json("hosts", env=env)) == 3
    run = other("run", "-d", "--engine", "hosts", "--", "echo", "hello", env=env).out.split()[-1]
    assert other("logs", "-f", run, env=env).out.endswith("hello\n")
    other("context", "add", "lab", said["url"], "--pin", said["pin"], "--token", said["token"])
    assert len(other.json("hosts", "--master", "lab")) == 3
    assert len(other.json("hosts", env={"REGATTA_MASTER": "lab"})) == 3
    other("context", "use", "lab")
    assert len(other.json("hosts")) == 3
    assert other.pids("master") == []  # none was started here


def test_a_stopped_host_is_gone_and_the_others_go_on(regatta, hosts):
    hosts.daemons["beta"].terminate()
    assert hosts.daemons["beta"].wait(30) == 0
    hosts.wait(["beta"], "gone")
    assert regatta("run", "-n", "2", "--engine", "hosts", "--", "true").returncode == 0
    done = regatta("run", "-n", "3", "--engine", "hosts", "--set", "timeouts.launch=2s", "--", "true", code=5)
    assert "no host for 3 nodes: 3 fit, of which 2 free, 0 busy, 1 gone" in done.out


def test_a_host_that_is_gone_can_be_forgotten(regatta, hosts, tmp_path):
    done = regatta("hosts", "--forget", "beta", code=2)
    assert done.err == "regatta: host 'beta' is connected: stop its 'regatta agent' first\n"
    assert "no host 'delta' has joined" in regatta("hosts", "--forget", "delta", code=3).err
    assert regatta("hosts", "--forget", "../alpha", code=3).err.count("\n") == 1
    run = regatta.submit("--engine", "hosts", "--set", 'hosts.names=["beta"]', "--", "sleep", "100")
    regatta.wait(run, state="running")
    hosts.daemons["beta"].terminate()
    hosts.wait(["beta"], "gone")
    assert f"may still have node 'worker-0' of run '{run}'" in regatta("hosts", "--forget", "beta", code=2).err
    hosts.daemons["alpha"].terminate()
    hosts.wait(["alpha"], "gone")
    assert regatta.json("hosts", "--forget", "alpha") == {"forgotten": True, "name": "alpha"}
    assert [h["name"] for h in regatta.json("hosts")] == ["beta", "gamma"]
    hosts.kill_master()
    hosts.start_master()
    assert [h["name"] for h in regatta.json("hosts")] == ["beta", "gamma"]
    # It may join again, as if it had never been here.
    said, user = hosts.said, Regatta(tmp_path / "alpha" / "home", tmp_path / "alpha")
    hosts.daemons["alpha"] = user.start("agent", "--join", said["url"], "--pin", said["pin"], "--token", said["join"],
                                        "--name", "alpha", stderr=subprocess.DEVNULL)
    hosts.wait(["alpha"], "free")
    # The node ends on its own host when its daemon is back.
    home = tmp_path / "beta"
    hosts.daemons["beta"] = Regatta(home / "home", home).start(
        "agent", "--join", said["url"], "--pin", said["pin"], "--token", said["join"], "--name", "beta",
        stderr=subprocess.DEVNULL)
    hosts.wait(["beta"], "busy")
    regatta("kill", "--now", run)
    regatta.wait(run)


def test_a_run_that_waits_says_for_what(regatta, hosts):
    for name in ("alpha", "beta"):
        hosts.daemons[name].terminate()
        hosts.daemons[name].wait(30)
    hosts.wait(["alpha", "beta"], "gone")
    child = regatta.start("run", "-n", "3", "--engine", "hosts", "--", "true")
    for line in iter(child.stderr.readline, b""):
        if b"waiting" in line:
            break
    assert line.endswith(b": waiting: no host for 3 nodes: 3 fit, of which 1 free, 0 busy, 2 gone\n")
    child.terminate()
    child.wait(30)
    assert child.stderr.read().count(b"waiting") == 0


def test_a_second_master_is_told_what_to_do(regatta, loopback, tmp_path):
    done = regatta("master", "--listen", "127.0.0.1:0", "--output", "json", code=2)
    assert "is already running on" in done.err and "'regatta master --stop' stops it" in done.err and not done.out
    other = Regatta(tmp_path / "other", regatta.cwd)
    done = other("master", "--listen", f"127.0.0.1:{loopback.port}", "--output", "json", code=2)
    assert f"port {loopback.port} on 127.0.0.1 is taken: choose another one" in done.err and not done.out
    assert done.err.count("\n") == 1
