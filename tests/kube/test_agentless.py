"""Engine kubernetes without the agent: foreign images run their own command, and the cluster tells how they do."""
import base64
import json
import os
import re
import signal

import pytest
import yaml

from .cluster import wait_for
from .conftest import ROOT

BUSYBOX, PYTHON = "bench.test/busybox:1", "bench.test/python:1"
HEAD = """engine = "kubernetes"
master = "here"
max_runtime = "10m"
name = "plain"
"""


METRIC = """[metrics.loss]
pattern = 'step (?<step>\\d+)/(?<total>\\d+) loss=(?<value>[.0-9]+)'
"""


def plain(command, more="", table="", count=2, image=BUSYBOX):
    return HEAD + f"count = {count}\ncommand = {json.dumps(command)}\n{more}\n[kubernetes]\nimage = \"{image}\"\nagent = false\n{table}\n"


def log_of(user, run, node="worker-0"):
    return (user.directory / "home/runs" / run / "logs" / f"{node}.log").read_bytes()


def kill_master(user):
    os.kill(int((user.directory / "home/lock").read_text()), signal.SIGKILL)


def test_pods_run_their_own_command_and_know_each_other(user, namespace, decoys):
    script = ("echo rank=$RANK of $WORLD_SIZE; echo step 1/2 loss=0.5; "
              "until python3 -c 'import os, socket; socket.gethostbyname(os.environ[\"MASTER_ADDR\"])' 2>/dev/null; do sleep 0.2; done; "
              "echo found; echo step 2/2 loss=0.25")
    job = plain(["sh", "-c", script], "strategy = \"torch\"", image=PYTHON) + METRIC
    run = user.submit(user.job(job))
    ended = user.ends(run)
    assert ended["verdict"] == "succeeded", ended["cause"]
    for i in range(2):
        assert log_of(user, run, f"worker-{i}").startswith(f"rank={i} of 2\n".encode()) and b"found\n" in log_of(user, run, f"worker-{i}")
    loss = json.loads(user("metrics", run, "loss", "--output", "json").stdout)["metrics"]["loss"]["all"]
    assert loss["count"] == 4 and loss["last"] == 0.25
    namespace.nothing_left()


def test_the_log_is_exact_and_the_exit_code_is_the_containers(user, namespace):
    # A line longer than what the node keeps in one piece, bytes that are no text, and no newline at the end.  The node
    # reads stdout and stderr by two pipes and keeps no order between them: a pause before and after what goes to stderr.
    script = "printf 'a\\000\\377b\\n\\n'; head -c 40000 /dev/zero | tr '\\000' x; echo; sleep 1; echo err >&2; sleep 1; printf 'no end'; exit 7"
    run = user.submit(user.job(plain(["sh", "-c", script], count=1)))
    ended = user.ends(run)
    assert ended["verdict"] == "failed" and "exit code 7" in ended["cause"] and ended["exit_code"] == 1
    assert log_of(user, run) == b"a\0\xffb\n\n" + b"x" * 40000 + b"\nerr\nno end"
    namespace.nothing_left()


def test_credentials_that_expire_are_made_anew_by_their_program(user, namespace):
    config = yaml.safe_load(user.kubeconfig.read_text())
    certificate, key = (base64.b64decode(config["users"][0]["user"][name]).decode() for name in ("client-certificate-data", "client-key-data"))
    (user.directory / "answer").write_text(json.dumps({"kind": "ExecCredential", "status": {
        "clientCertificateData": certificate, "clientKeyData": key, "expirationTimestamp": "2020-01-01T00:00:00Z"}}))
    plugin = user.directory / "plugin"
    plugin.write_text(f"#!/bin/sh\necho $PPID >>{user.directory}/parents\ncat {user.directory}/answer\n")
    plugin.chmod(0o755)
    config["users"][0]["user"] = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin"}}
    user.kubeconfig.write_text(yaml.safe_dump(config))
    run = user.submit(user.job(plain(["echo", "done"], count=1)))
    master = (user.directory / "home/lock").read_text().strip()
    ended = user.ends(run)
    assert ended["verdict"] == "succeeded", ended["cause"]
    assert master in (user.directory / "parents").read_text().split() and log_of(user, run) == b"done\n"
    namespace.nothing_left()


@pytest.mark.long
def test_a_run_whose_credentials_hold_no_more_says_so_and_ends_with_those_of_kill(user, namespace):
    good = user.kubeconfig.read_text()
    namespace.kubectl("create", "serviceaccount", "who")
    namespace.kubectl("create", "rolebinding", "who", "--clusterrole=admin", f"--serviceaccount={namespace.name}:who")
    config = yaml.safe_load(good)
    config["users"][0]["user"] = {"token": namespace.kubectl("create", "token", "who").strip()}
    user.kubeconfig.write_text(yaml.safe_dump(config))
    run = user.submit(user.job(plain(["sh", "-c", "trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.1; done"], count=1)))
    wait_for(lambda: user("logs", run, "worker-0", code=None).stdout == "up\n", "the job to run")
    namespace.kubectl("delete", "serviceaccount", "who")  # its token is refused from now on
    try:
        says = wait_for(lambda: user.status(run)["waiting"], "the words of the cluster", 60)[0]
        assert says["why_kind"] == "denied" and "does not take these credentials" in says["why"], says
    finally:
        user.kubeconfig.write_text(good)
        said = user("kill", run)
    assert "with your credentials" in said.stderr, said.stderr
    assert user.ends(run, 90)["verdict"] == "cancelled"
    assert log_of(user, run) == b"up\nasked\n"
    namespace.kubectl("delete", "rolebinding", "who")
    namespace.nothing_left()


def test_a_master_that_is_killed_goes_on_with_the_log(user, namespace):
    script = "i=0; while [ $i -lt 400 ]; do echo line $i; i=$((i+1)); [ $((i % 8)) -eq 0 ] && sleep 0.1; done; true"
    run = user.submit(user.job(plain(["sh", "-c", script])))
    wait_for(lambda: (user.directory / "home/runs" / run / "logs/worker-0.log").exists() and len(log_of(user, run)) > 300, "some lines")
    kill_master(user)
    ended = wait_for(lambda: (s := user.status(run))["verdict"] and s, "its verdict")
    assert ended["verdict"] == "succeeded", ended["cause"]
    for i in range(2):
        assert log_of(user, run, f"worker-{i}") == b"".join(b"line %d\n" % i for i in range(400))
    kill_master(user)  # what a killed master sent may arrive for half a minute, and so long it would look


@pytest.mark.long
def test_lines_that_the_node_has_rotated_away_are_an_event(user, namespace):
    script = "echo first; while [ ! -e /tmp/go ]; do sleep 0.2; done; i=0; while [ $i -lt 40 ]; do head -c 1000000 /dev/zero | tr '\\000' x; echo; i=$((i+1)); " \
             "sleep 0.5; done; sleep 30; echo last; sleep 1000"
    run = user.submit(user.job(plain(["sh", "-c", script], count=1)))
    wait_for(lambda: (user.directory / "home/runs" / run / "logs/worker-0.log").exists() and log_of(user, run) == b"first\n", "the first line")
    pod = namespace.pods(f"regatta/run={run}")[0]["metadata"]["name"]
    kill_master(user)
    namespace.kubectl("exec", pod, "--", "touch", "/tmp/go")
    wait_for(lambda: not namespace.kubectl("logs", pod, "--limit-bytes=10").startswith("first"), "the first line to be rotated away", 240)
    wait_for(lambda: "log_gap" in user("events", run).stdout, "the event", 120)
    wait_for(lambda: log_of(user, run).endswith(b"last\n"), "the last line", 120)
    assert log_of(user, run).startswith(b"first\n") and log_of(user, run).count(b"last\n") == 1
    user("kill", run)
    assert user.ends(run)["verdict"] == "cancelled"
    namespace.nothing_left()


def test_a_run_that_is_cancelled_ends_its_pods(user, namespace):
    run = user.submit(user.job(plain(["sh", "-c", "trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.1; done"])))
    wait_for(lambda: user.status(run)["state"] == "running" and b"up" in log_of(user, run, "worker-1"), "the job to run")
    user("kill", run)
    assert user.ends(run)["verdict"] == "cancelled"
    assert b"asked" in log_of(user, run)
    namespace.nothing_left()


MEMORY = "pod = { spec = { containers = [{ name = \"main\", resources = { limits = { memory = \"16Mi\" } } }] } }"


@pytest.mark.parametrize("job, words, code", [
    (plain(["sh", "-c", "x=a; while :; do x=$x$x; done"], table=MEMORY, count=1), ("container main of pod", "OOMKilled"), 1),
    (plain(["nowhere"], count=1), ("nowhere", "not found"), 1),
    (plain(["true"], table="pod = { spec = { volumes = [{ name = \"v\", persistentVolumeClaim = { claimName = \"none\" } }] } }"),
     ("persistentvolumeclaim \"none\" not found",), 2),
], ids=["memory", "no-command", "claim"])
def test_the_cause_is_what_the_cluster_says(user, namespace, job, words, code):
    ended = user.ends(user.submit(user.job(job)))
    assert ended["verdict"] == "failed" and all(word in ended["cause"] for word in words), ended["cause"]
    assert code is None or ended["exit_code"] == code
    namespace.nothing_left()


def placement(topic):
    """The example of the docs."""
    text = (ROOT / "docs/kubernetes.md").read_text()
    return re.search(rf"```toml\n# {topic}\n(.*?)```", text, re.DOTALL).group(1)


@pytest.mark.long
@pytest.mark.parametrize("topic, nodes", [("one pod on each machine", 3), ("all pods on one machine", 1)])
def test_pods_of_a_role_are_spread_or_packed(user, namespace, topic, nodes):
    job = HEAD + f"command = [\"sleep\", \"1000\"]\n[kubernetes]\nimage = \"{BUSYBOX}\"\nagent = false\n[roles.worker]\ncount = 3\n" + placement(topic)
    run = user.submit(user.job(job))
    wait_for(lambda: user.status(run)["state"] == "running", "the job to run")
    assert len({pod["spec"]["nodeName"] for pod in namespace.pods(f"regatta/run={run}")}) == nodes
    user("kill", run)
    assert user.ends(run)["verdict"] == "cancelled"
    namespace.nothing_left()


def test_a_pod_that_somebody_deletes_is_a_lost_node(user, namespace):
    run = user.submit(user.job(plain(["sleep", "1000"])))
    wait_for(lambda: user.status(run)["state"] == "running", "the job to run")
    namespace.kubectl("delete", "pods", "--all", "--wait=false", "--grace-period=0", "--force")
    ended = user.ends(run)
    assert ended["verdict"] == "failed" and "its pod was deleted" in ended["cause"], ended["cause"]
    namespace.nothing_left()


def test_what_needs_the_agent_is_refused_by_name(user, namespace):
    for more, words in (("[output]\nkeep = \"*.bin\"", "output.keep"), ("retries = 2", "retries = 2"),
                        ("[env]\nHUB_TOKEN = \"x\"", "the secret variable HUB_TOKEN")):
        done = user("run", user.job(plain(["true"], more=more)), code=2)
        assert words in done.stderr and "agent = false" in done.stderr
    namespace.nothing_left()
