"""The strategies of frameworks that Debian does not have: roles, gates and names with small programs in their place."""
import json
import re
import shutil

import pytest

from conftest import ROOT


def example(regatta, name):
    shutil.copytree(ROOT / "examples" / name, regatta.cwd, dirs_exist_ok=True)


def out(regatta, run, node):
    return regatta.log(run, node).decode()


def test_paddle_runs_a_server_and_a_trainer_on_every_node(regatta):
    example(regatta, "paddle")
    got = regatta.json("run", "job.toml")
    assert got["verdict"] == "succeeded", got["cause"]
    nodes = [n["address"] for n in got["nodes"]]
    assert len(nodes) == 3
    for i, address in enumerate(sorted(nodes, key=lambda a: [int(x) for x in a.split(".")])):
        node = regatta.cwd / "output" / f"node_{i}"
        assert (node / "server.log").read_text() == f"serving at {address}:7164\n"
        losses = [float(x) for x in re.findall(rf"trainer {i} of 3: step=\d+/200 loss=(\S+)", (node / "train.log").read_text())]
        assert len(losses) == 10 and losses[-1] < 0.1


def test_a_trainer_of_paddle_finds_its_shard(regatta):
    for i in range(2):
        (regatta.cwd / "data" / str(i)).mkdir(parents=True)
        (regatta.cwd / "data" / str(i) / "part").write_text(f"part {i}\n")
    regatta.job('strategy = "paddle"\n[roles.pserver]\ncommand = "python3 -c \'import os, socket, time; s = socket.create_server((os.environ[\\"POD_IP\\"], 7164)); time.sleep(600)\'"\n'
                '[roles.trainer]\ncount = 2\ncommand = ["sh", "-c", "cat $PADDLE_SHARD/part"]\n')
    got = regatta.json("run", "job.toml")
    assert got["verdict"] == "succeeded", got["cause"]
    assert [out(regatta, got["id"], f"trainer-{i}") for i in range(2)] == ["part 0\n", "part 1\n"]


def test_a_server_of_paddle_that_ends_is_one_line(regatta):
    regatta.job('strategy = "paddle"\n[roles.pserver]\ncommand = ["sh", "-c", "echo no license; exit 3"]\n'
                '[roles.trainer]\ncommand = ["true"]\n')
    got = regatta.json("run", "job.toml", code=1)
    assert got["cause"] == "trainer-0: exit code 1"
    assert got["tail"]["lines"] == [f"the server of this node has ended with code 3: see {regatta.cwd}/output/node_0/server.log"]
    assert (regatta.cwd / "output" / "node_0" / "server.log").read_text() == "no license\n"


def test_a_command_of_paddle_that_is_missing_is_one_line(regatta):
    regatta.job('strategy = "paddle"\ncommand = ["no-such-program"]\n')
    got = regatta.json("run", "job.toml", code=1)
    assert got["tail"]["lines"] == ["command 'no-such-program' cannot be run: No such file or directory"]


def test_a_server_of_paddle_that_dies_during_the_training_fails_the_run(regatta):
    server = "import os, socket, sys; s = socket.create_server((os.environ['POD_IP'], 7164)); s.accept(); sys.exit(4)"
    regatta.script(server, "server.py")
    regatta.job('strategy = "paddle"\n[roles.pserver]\ncommand = ["python3", "server.py"]\n'
                '[roles.trainer]\ncommand = ["sleep", "1"]\n')
    got = regatta.json("run", "job.toml", code=1)
    assert got["tail"]["lines"] == [f"the server of this node has ended with code 4: see {regatta.cwd}/output/node_0/server.log"]


def test_a_trainer_of_paddle_that_fails_keeps_its_code(regatta):
    regatta.job('strategy = "paddle"\n[roles.pserver]\ncommand = ["python3", "-m", "http.server", "7164"]\n'
                '[roles.trainer]\ncommand = ["sh", "-c", "echo diverged; exit 9"]\n')
    got = regatta.json("run", "job.toml", code=1)
    assert got["cause"] == "trainer-0: exit code 9" and "diverged" in got["tail"]["lines"]


def test_tf_config_names_every_task(regatta):
    example(regatta, "tf-config")
    got = regatta.json("run", "job.toml")
    assert got["verdict"] == "succeeded", got["cause"]
    line = out(regatta, got["id"], "worker-0").splitlines()[0]
    assert line.startswith("worker 0 of 2: ")
    cluster = json.loads(line.split(": ", 1)[1])
    assert {role: [a.rsplit(":", 1)[1] for a in tasks] for role, tasks in cluster.items()} == {"chief": ["2222"], "worker": ["2223"]}


def test_the_workers_of_a_tf_chief_are_stopped_when_it_is_done(regatta):
    regatta.job('strategy = "tf"\n[roles.chief]\ncommand = ["true"]\n[roles.worker]\ncount = 2\ncommand = ["sleep", "600"]\n'
                '[roles.ps]\nport = 22229\ncommand = ["python3", "-m", "http.server", "22229"]\n')
    got = regatta.json("run", "job.toml")
    assert got["verdict"] == "succeeded", got["cause"]


def test_jax_processes_know_their_coordinator(regatta):
    example(regatta, "jax")
    got = regatta.json("run", "job.toml", "--set", "processes_per_node=2", "--set", "env.JAX_COORDINATOR_PORT=8477")
    assert got["verdict"] == "succeeded", got["cause"]
    first = got["nodes"][0]["address"]
    assert out(regatta, got["id"], "worker-1.p1").splitlines()[0] == f"process 3 of 4, coordinator {first}:8477"


def test_mxnet_gets_its_scheduler_and_servers(regatta):
    script = ("import os, socket, time\n"
              "e = os.environ\n"
              "print(e['DMLC_ROLE'], e['DMLC_NUM_SERVER'], e['DMLC_NUM_WORKER'], flush=True)\n"
              "at = (e['DMLC_PS_ROOT_URI'], int(e['DMLC_PS_ROOT_PORT']))\n"
              "open('there-' + e['REGATTA_NODE'], 'w').close()\n"
              "if e['DMLC_ROLE'] == 'scheduler':\n"
              "    listening = socket.create_server(at)\n"
              "if e['DMLC_ROLE'] == 'worker':\n"
              "    socket.create_connection(at)\n"
              "    while not (os.path.exists('there-server-0') and os.path.exists('there-server-1')):\n"
              "        time.sleep(0.02)\n"
              "else:\n"
              "    time.sleep(600)\n")
    regatta.script(script)
    regatta.job('strategy = "mxnet"\ncount = 2\ncommand = ["python3", "job.py"]\n')
    got = regatta.json("run", "job.toml")
    assert got["verdict"] == "succeeded", got["cause"]
    said = {n["name"]: out(regatta, got["id"], n["name"]).strip() for n in got["nodes"]}
    assert said == {"worker-0": "worker 2 2", "worker-1": "worker 2 2", "server-0": "server 2 2", "server-1": "server 2 2",
                    "scheduler-0": "scheduler 2 2"}


def test_horovods_rendezvous_keeps_what_ranks_put_there(regatta):
    script = ("import os, time, urllib.request, urllib.error\n"
              "e = os.environ\n"
              "base = 'http://%s:%s/global/' % (e['HOROVOD_GLOO_RENDEZVOUS_ADDR'], e['HOROVOD_GLOO_RENDEZVOUS_PORT'])\n"
              "def put(key, value):\n"
              "    urllib.request.urlopen(urllib.request.Request(base + key, value, method='PUT')).close()\n"
              "def get(key):\n"
              "    while True:\n"
              "        try:\n"
              "            return urllib.request.urlopen(base + key).read()\n"
              "        except urllib.error.HTTPError as err:\n"
              "            assert err.code == 404\n"
              "            time.sleep(0.02)\n"
              "put(e['HOROVOD_RANK'], e['HOROVOD_LOCAL_RANK'].encode())\n"
              "print([get(str(i)).decode() for i in range(int(e['HOROVOD_SIZE']))], flush=True)\n")
    regatta.script(script)
    regatta.job('strategy = "horovod"\ncount = 2\nprocesses_per_node = 2\ncommand = ["python3", "job.py"]\n')
    got = regatta.json("run", "job.toml")
    assert got["verdict"] == "succeeded", got["cause"]
    assert out(regatta, got["id"], "worker-1.p1") == "['0', '1', '0', '1']\n"


@pytest.mark.parametrize("strategy,nodes", [("mpi", 2), ("torch", 2), ("elastic", 3), ("tf", 2), ("jax", 2), ("paddle", 2)])
def test_what_init_writes_runs_as_it_is(regatta, strategy, nodes):
    regatta("init", strategy)
    got = regatta.json("run", "job.toml", timeout=180)
    assert got["verdict"] == "succeeded", got["cause"]
    assert len([n for n in got["nodes"] if n["attempt"] > 0]) == nodes
