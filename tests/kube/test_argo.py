"""A run as a step of an Argo workflow: `regatta run` in a pod, with the rights of the pod's account and the Role of the docs."""
import re

import pytest

from . import images
from .cluster import wait_for
from .test_master import apart
from .test_tools import ROLE

SECONDS = 300
# What the executor of Argo itself needs.
REPORTS = """apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reports}
rules:
- {apiGroups: [argoproj.io], resources: [workflowtaskresults], verbs: [create, patch]}
"""


@pytest.fixture
def account(argo, namespace):
    namespace.kubectl("create", "serviceaccount", "trainer")
    for text, role in ((ROLE, "regatta"), (REPORTS, "reports")):
        namespace.kubectl("create", "-f", "-", input=text)
        namespace.kubectl("create", "rolebinding", role, f"--role={role}", f"--serviceaccount={namespace.name}:trainer")


def workflow(image, job):
    """Two steps: the run, and one that must come after it."""
    train = {"image": image, "command": ["/regatta", "run", "/job/job.toml"], "volumeMounts": [{"name": "job", "mountPath": "/job"}],
             "env": [{"name": "REGATTA_HOME", "value": "/tmp/home"}]}
    steps = [[{"name": name, "template": name}] for name in ("train", "publish")]
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "job"}, "data": {"job.toml": job}}
    return config, {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "bench"}, "spec": {
        "serviceAccountName": "trainer", "entrypoint": "main", "volumes": [{"name": "job", "configMap": {"name": "job"}}], "templates": [
            {"name": "main", "steps": steps}, {"name": "train", "container": train},
            {"name": "publish", "container": {"image": images.BUSYBOX, "command": ["echo", "published"]}}]}}


@pytest.mark.long
@pytest.mark.parametrize("code, phase", [(0, "Succeeded"), (4, "Failed")])
def test_a_run_is_a_step_of_a_workflow(account, agent_image, namespace, code, phase):
    job = apart(["sh", "-c", f"exit {code}"], image=images.BUSYBOX, table=f"agent_image = \"{agent_image}\"")
    config, made = workflow(agent_image, job)
    namespace.before = namespace.things()
    namespace.create(config, made)

    def ended():
        status = namespace.json("get", "workflow", "bench").get("status", {})
        return status.get("phase") in ("Succeeded", "Failed", "Error") and status
    status = wait_for(ended, "the end of the workflow", SECONDS)
    steps = {node["displayName"]: node for node in status["nodes"].values() if node["type"] == "Pod"}
    said = namespace.kubectl("logs", "--container=main", "--selector=workflows.argoproj.io/workflow=bench", "--tail=-1")
    assert status["phase"] == phase, (status.get("message"), said)
    assert re.search(r"worker-[01]: exit code 4" if code else "succeeded", said), said
    assert ("publish" in steps) == (code == 0) and ("published" in said) == (code == 0)
    assert code == 0 or "exit code 1" in steps["train"]["message"], steps["train"]
    namespace.kubectl("delete", "workflow,configmap", "bench", "job", "--ignore-not-found")
    namespace.nothing_left()
