"""`regatta doctor` and `regatta gc` of engine kubernetes: what is needed is enough, and only what is nobody's goes."""
import json
import re

import pytest
import yaml

from . import images
from .cluster import wait_for
from .conftest import ROOT, User
from .test_quickstart import small

ROLE = re.search(r"```yaml\n(apiVersion: rbac.*?)```", (ROOT / "docs/kubernetes.md").read_text(), re.DOTALL).group(1)


def doctor(user, code=0):
    said = json.loads(user("doctor", "--engine", "kubernetes", "--output", "json", code=code).stdout)
    return {check["name"]: check for check in said["checks"]}


def gc(user, *args, code=0):
    """{(kind, id): state}"""
    said = json.loads(user("gc", "--engine", "kubernetes", "--output", "json", *args, code=code).stdout)
    return {(thing["kind"], thing["id"]): thing["state"] for thing in said["resources"]}


def test_doctor_knows_the_cluster(user, namespace, training_operator):
    checks = doctor(user)
    assert {check["state"] for check in checks.values()} == {"fine"}, checks
    assert checks["version"]["what"].startswith("v1.") and checks["namespace"]["what"] == namespace.name
    assert checks["gpus"]["what"] == "no nvidia.com/gpu on 3 nodes" and checks["storage"]["what"] == "bench (default)"
    assert "PyTorchJob" in checks["operators"]["what"]
    namespace.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
    wait_for(lambda: doctor(user, code=None)["quota"]["state"] == "bad", "the quota to count")
    assert doctor(user, code=1)["quota"]["what"] == "none: 0 of 0 pods"


def leave_behind(namespace, install):
    """What a run of the install could have left: an owner with a Job and its pod, and a Secret of nobody."""
    labels = {"regatta/install": install, "regatta/run": "gone-abcd", "regatta/role": "worker"}
    def of(kind, version, **body):
        return {"apiVersion": version, "kind": kind, "metadata": {"name": "gone-abcd", "labels": labels, **body.pop("more", {})}, **body}
    namespace.create(of("ConfigMap", "v1"), of("Secret", "v1"))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone-abcd", "uid": namespace.json("get", "configmap", "gone-abcd")["metadata"]["uid"]}
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
           "containers": [{"name": "main", "image": "bench.test/busybox:1", "command": ["sleep", "86400"]}]}
    namespace.create(of("Job", "batch/v1", more={"ownerReferences": [owner]}, spec={"template": {"metadata": {"labels": labels}, "spec": pod}}))
    wait_for(lambda: len(namespace.pods("regatta/run=gone-abcd")) == 1, "the pod of nobody")


def test_gc_removes_what_no_live_run_has(here, namespace, decoys):
    run = here.submit(here.job(small(["sleep", "1000"], count=1)))
    wait_for(lambda: here.status(run)["state"] == "running", "the job to run")
    mine = namespace.pods(f"regatta/run={run}")[0]["metadata"]
    leave_behind(namespace, mine["labels"]["regatta/install"])
    found = gc(here, "--dry-run", code=1)
    assert {key: found[key] for key in found if found[key] == "left"}.keys() == {
        ("ConfigMap", "gone-abcd"), ("Secret", "gone-abcd"), ("Job", "gone-abcd"), *(key for key in found if key[1].startswith("gone-abcd-"))}
    assert sorted(state for key, state in found.items() if not key[1].startswith("gone-abcd")) == ["in use"] * 5
    found = gc(here, "--all-regions")
    assert {found[key] for key in found if key[1].startswith("gone-abcd")} == {"removed"}
    assert "other install" in found.values()  # the decoys
    assert not namespace.pods("regatta/run=gone-abcd")
    assert namespace.pods(f"regatta/run={run}")[0]["metadata"]["uid"] == mine["uid"] and here.status(run)["state"] == "running"
    here("kill", run)
    assert here.ends(run)["verdict"] == "cancelled"
    namespace.nothing_left()


def test_gc_from_another_machine_removes_what_a_lost_one_had(here, namespace, tmp_path):
    run = here.submit(here.job(small(["sleep", "1000"], count=1)))
    wait_for(lambda: here.status(run)["state"] == "running", "the job to run")
    install = namespace.pods()[0]["metadata"]["labels"]["regatta/install"]
    here.master.kill()
    (tmp_path / "other").mkdir()
    other = User(tmp_path / "other", namespace)
    assert set(gc(other, code=1).values()) == {"other install"} and namespace.pods()
    assert set(gc(other, "--install", install).values()) == {"removed"}
    namespace.nothing_left()
    here.env["REGATTA_HOME"] = other.env["REGATTA_HOME"]  # no master takes the run up again


def kubeconfig(user, **changes):
    """Another configuration: {"users": ...} and the like replace what the user has."""
    config = {**yaml.safe_load(user.kubeconfig.read_text()), **changes}
    path = user.directory / "other"
    path.write_text(yaml.safe_dump(config))
    return str(path)


@pytest.mark.long
@pytest.mark.parametrize("changes, options, words, code", [
    ({"current-context": "nowhere"}, (), "nowhere", 2),
    ({}, ("--kube-context", "nobody"), "nobody", 2),
    ({}, ("--namespace", "of-nobody"), "the cluster has no namespace 'of-nobody'", 3),
    ({"users": {"token": "expired"}}, (), "the cluster does not take these credentials: they have expired", 4),
    ({"users": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin"}}}, (), "no-such-plugin", 2),
], ids=["no-context", "other-context", "no-namespace", "expired", "no-plugin"])
def test_what_cannot_be_asked_is_one_line_and_nothing_is_made(user, namespace, changes, options, words, code):
    if "users" in changes:
        name = yaml.safe_load(user.kubeconfig.read_text())["users"][0]["name"]
        changes = {"users": [{"name": name, "user": changes["users"]}]}
    user.env["KUBECONFIG"] = kubeconfig(user, **changes)
    job = user.job(f"engine = \"kubernetes\"\nname = \"bad\"\ncommand = [\"true\"]\n[kubernetes]\nimage = \"{images.BUSYBOX}\"\n")
    done = user("run", *options, job, code=None)
    said = done.stderr.strip().splitlines()
    assert done.returncode == code and words in said[-1] and len(said) == 1, (done.returncode, said)
    namespace.nothing_left()
