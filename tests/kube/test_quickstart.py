"""Engine kubernetes with a master that the pods reach: a real job, how it fails, and that nothing is left."""
import json
import os
import pathlib
import shutil

import pytest

from .cluster import wait_for
from .conftest import ROOT, User

EXAMPLES = pathlib.Path(os.environ.get("REGATTA_EXAMPLES", ROOT / "build" / "examples"))
IMAGE = "bench.test/python:1"
HEAD = """engine = "kubernetes"
master = "here"
max_runtime = "10m"
"""
QUICKSTART = HEAD + f"""name = "quickstart"
strategy = "pserver"
source = "programs"

[kubernetes]
image = "{IMAGE}"

[roles.pserver]
count = 1
command = ["./pserver"]
port = 5436

[roles.trainer]
count = 2
command = ["sh", "-c", "./trainer; echo done > model-$REGATTA_RANK"]

[output]
keep = "model-*"

[metrics.loss]
pattern = 'step (?<step>\\d+)/(?<total>\\d+) loss=(?<value>[-+.0-9eE]+)'
better = "lower"
"""


def small(command, more="", table="", image=IMAGE, count=2):
    return HEAD + f"name = \"small\"\ncount = {count}\ncommand = {json.dumps(command)}\n{more}\n[kubernetes]\nimage = \"{image}\"\n{table}\n"


def cause_of(user, run, seconds=120):
    ended = user.ends(run, seconds)
    assert ended["verdict"] == "failed"
    return ended


def test_the_quickstart_runs_as_pods_and_nothing_is_left(here, namespace, decoys):
    (here.directory / "programs").mkdir()
    for name in ("pserver", "trainer"):
        shutil.copy(EXAMPLES / name, here.directory / "programs" / name)
    run = here.submit(here.job(QUICKSTART))
    pods = wait_for(lambda: len(found := namespace.pods(f"regatta/run={run}")) == 3 and found, "three pods")
    for pod in pods:
        assert {"regatta/run", "regatta/role", "regatta/install"} <= set(pod["metadata"]["labels"])
    ended = here.ends(run)
    assert ended["verdict"] == "succeeded", ended["cause"]
    loss = json.loads(here("metrics", run, "loss", "--output", "json").stdout)["metrics"]["loss"]["all"]
    assert loss["last"] < loss["first"] / 10 and loss["count"] == 162
    assert "step 8000/8000" in here("logs", run, "trainer-0").stdout
    outputs = here.directory / "home/runs" / run / "outputs"
    assert sorted(path.name for path in outputs.glob("**/model-*")) == ["model-0", "model-1"]
    namespace.nothing_left()


def test_a_teams_master_runs_pods_that_share_a_claim(here, namespace, tmp_path):
    namespace.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "shared"},
                      "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Mi"}}}})
    namespace.before = namespace.things()
    (tmp_path / "member").mkdir()
    member = User(tmp_path / "member", namespace)
    token = json.loads(here("token", "new", "--scope", "submit", "--output", "json").stdout)["token"]
    member("context", "add", "team", here.address["url"], "--pin", here.address["pin"], "--token", token)
    script = "if [ $REGATTA_RANK = 0 ]; then echo of the team >/data/file; fi; until [ -s /data/file ]; do sleep 0.1; done; cat /data/file"
    job = small(["sh", "-c", script], table="[[volumes]]\npath = \"/data\"\npvc = \"shared\"").replace('"here"', '"context:team"')
    run = member.submit(member.job(job))
    member.env["REGATTA_MASTER"] = "team"
    ended = member.ends(run)
    assert ended["verdict"] == "succeeded", ended["cause"]
    assert [member("logs", run, f"worker-{i}").stdout for i in range(2)] == ["of the team\n"] * 2
    assert not (tmp_path / "member/home/regatta.db").exists()  # no master of its own
    namespace.nothing_left()  # but the claim
    kept = [path.read_text() for path in (namespace.cluster.directory / "volumes").glob("*/file")]
    assert "of the team\n" in kept


def test_logs_are_exact_and_the_exit_code_is_the_jobs(here, namespace):
    here.job(small(["sh", "-c", "printf 'a\\000b\\n'; printf 'last line without its end'; exit 7"], count=1))
    run = here("run", "-d", "job.toml").stdout.split()[-1]
    ended = cause_of(here, run)
    assert "exit code 7" in ended["cause"] and ended["exit_code"] == 1
    log = here.directory / "home/runs" / run / "logs/worker-0.log"
    assert log.read_bytes() == b"a\0b\nlast line without its end"
    namespace.nothing_left()


def test_a_cancelled_run_leaves_nothing(here, namespace):
    run = here.submit(here.job(small(["sleep", "1000"])))
    wait_for(lambda: here.status(run)["state"] == "running", "the job to run")
    # Somebody's finalizer: the run is not over before it is gone.
    hold = ("patch", "job", f"{run}-worker", "--type=merge", "--patch")
    namespace.kubectl(*hold, json.dumps({"metadata": {"finalizers": ["bench.test/hold"]}}))
    here("kill", run)
    wait_for(lambda: "is being deleted" in here("events", run).stdout, "what holds it")
    assert here.status(run)["state"] == "cleaning" and namespace.json("get", "jobs")["items"]
    namespace.kubectl(*hold, json.dumps({"metadata": {"finalizers": None}}))
    assert here.ends(run)["verdict"] == "cancelled"
    namespace.nothing_left()


@pytest.mark.parametrize("job, words, code", [
    (small(["true"], image="bench.test/nowhere:1"), ("its image cannot be pulled", "bench.test/nowhere:1"), 2),
    (small(["true"], more="[timeouts]\nboot = \"5s\"", table="node_selector = { nowhere = \"yes\" }"), ("Unschedulable", "0/3 nodes"), 6),
    (small(["true"], table="pod = { spec = { volumes = [{ name = \"v\", persistentVolumeClaim = { claimName = \"none\" } }] } }"),
     ("persistentvolumeclaim \"none\" not found",), 2),
    (small(["true"], table="pod = { spec = { volumes = [{ name = \"v\", configMap = { name = \"none\" } }], "
                           "containers = [{ name = \"main\", volumeMounts = [{ name = \"v\", mountPath = \"/v\" }] }] } }"),
     ("configmap \"none\" not found",), 2),
], ids=["image", "unschedulable", "claim", "config-map"])
def test_the_cause_is_what_the_cluster_says(here, namespace, job, words, code):
    run = here.submit(here.job(job))
    ended = cause_of(here, run)
    assert all(word in ended["cause"] for word in words), ended["cause"]
    assert ended["exit_code"] == code
    namespace.nothing_left()


def test_a_quota_that_is_used_up_ends_the_run(here, namespace):
    namespace.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}})
    namespace.before = namespace.things()
    ended = cause_of(here, here.submit(here.job(small(["true"]))))
    assert "exceeded quota: few" in ended["cause"] and ended["exit_code"] == 5
    wait_for(lambda: not namespace.pods(), "the pods to be gone")


def test_a_pod_that_somebody_deletes_is_a_lost_node(here, namespace):
    run = here.submit(here.job(small(["sleep", "1000"], count=1)))
    wait_for(lambda: here.status(run)["state"] == "running", "the job to run")
    namespace.kubectl("delete", "pods", "--all", "--wait=false", "--grace-period=0", "--force")
    ended = cause_of(here, run)
    assert "its machine is gone" in ended["cause"], ended["cause"]
    namespace.nothing_left()


def test_an_agent_from_its_own_image_needs_nothing_of_the_jobs(here, namespace, agent_image):
    job = small(["sh", "-c", "echo hello from $REGATTA_RANK"], table=f"agent_image = \"{agent_image}\"", image="bench.test/busybox:1")
    run = here.submit(here.job(job))
    ended = here.ends(run)
    assert ended["verdict"] == "succeeded", ended["cause"]
    assert "hello from 1" in here("logs", run, "worker-1").stdout
    namespace.nothing_left()
