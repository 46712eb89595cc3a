"""Engine hosts: machines that joined by `regatta agent --join` carry the nodes of a run."""


def test_two_hosts_join_and_run_a_job(regatta, fleet):
    fleet.join("alpha", "beta")
    done = regatta("run", "-n", "2", "--engine", "hosts", "--", "sh", "-c", "echo I am $REGATTA_NODE of $REGATTA_NODES")
    assert "succeeded" in done.out and "on hosts, 2 nodes" in done.out
    run = regatta.json("ps", "--all")[0]["id"]
    for node in regatta.status(run)["nodes"]:
        assert regatta.log(run, node["name"]) == f"I am {node['name']} of 2\n".encode()
        assert node["address"] == "127.0.0.1"
    assert not fleet.nodes("alpha") and not fleet.nodes("beta")
    fleet.wait(["alpha", "beta"], "free")


def test_the_list_of_hosts(regatta, fleet):
    assert regatta.json("hosts") == []
    assert "no host has joined" in regatta("hosts").err
    fleet.start("beta", "--labels", "gpu=a100,room=2")
    fleet.start("alpha")
    fleet.wait(["alpha", "beta"], "free")
    alpha, beta = regatta.json("hosts")
    assert sorted(alpha) == ["address", "cpus", "gpus", "labels", "memory", "name", "run", "state", "version"]
    assert (alpha["name"], beta["name"]) == ("alpha", "beta")
    assert alpha["labels"] == {} and beta["labels"] == {"gpu": "a100", "room": "2"}
    assert alpha["cpus"] >= 1 and alpha["memory"] > 1 << 20 and alpha["gpus"] >= 0 and alpha["run"] is None
    assert alpha["address"] == "127.0.0.1" and alpha["version"] == regatta.json("version")["version"]
    table = regatta("hosts").out.splitlines()
    assert table[0].split()[:3] == ["HOST", "STATE", "RUN"] and table[2].split()[:2] == ["beta", "free"]
    run = regatta.submit("--engine", "hosts", "--", "sleep", "100")
    regatta.wait(run, state="running")
    assert [(h["state"], h["run"]) for h in regatta.json("hosts")] == [("busy", run), ("free", None)]
    fleet.kill("beta")
    fleet.wait(["beta"], "gone")
    regatta("kill", "--now", run)
    regatta.wait(run)
    fleet.wait(["alpha"], "free")


WITH_FILES = """
name = "files"
engine = "hosts"
count = 2
source = "src"
command = ["sh", "-c", "cat hello.txt; mkdir model; echo $REGATTA_RANK > model/weights"]
[output]
keep = ["model/**"]
"""


def test_source_and_kept_files_travel(regatta, fleet):
    fleet.join("alpha", "beta")
    (regatta.cwd / "src").mkdir()
    (regatta.cwd / "src" / "hello.txt").write_text("from the source\n")
    run = regatta.submit(regatta.job(WITH_FILES))
    assert regatta.wait(run)["verdict"] == "succeeded"
    for rank, node in enumerate(regatta.status(run)["nodes"]):
        assert regatta.log(run, node["name"]) == b"from the source\n"
        kept = regatta.home / "runs" / run / "outputs" / node["name"] / "model" / "weights"
        assert kept.read_text() == f"{rank}\n"
