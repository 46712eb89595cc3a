"""The operators of the bench do what theirs do in any cluster; the engine is tested beside them."""
import json

import pytest

from . import images
from .cluster import wait_for

SECONDS = 180
# kind: (key of its replicas, name that its container must have, roles, each with one replica or more)
KINDS = {
    "TFJob": ("tfReplicaSpecs", "tensorflow", {"Chief": 1, "Worker": 1}),
    "PyTorchJob": ("pytorchReplicaSpecs", "pytorch", {"Master": 1, "Worker": 1}),
    "PaddleJob": ("paddleReplicaSpecs", "paddle", {"Worker": 2}),
    "MXJob": ("mxReplicaSpecs", "mxnet", {"Scheduler": 1, "Server": 1, "Worker": 1}),
    "XGBoostJob": ("xgbReplicaSpecs", "xgboost", {"Master": 1, "Worker": 1}),
}


def training_job(kind, container=None, command=("true",)):
    replicas, name, roles = KINDS[kind]
    pod = {"spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": container or name, "image": images.BUSYBOX, "command": command}]}}
    spec = {replicas: {role: {"replicas": count, "restartPolicy": "Never", "template": pod} for role, count in roles.items()}}
    if kind == "MXJob":
        spec["jobMode"] = "MXTrain"
    return {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": kind.lower()}, "spec": spec}


def state(namespace, kind, name):
    conditions = namespace.json("get", kind, name)["status"].get("conditions", [])
    return next((c["type"] for c in conditions if c["type"] in ("Succeeded", "Failed", "Completed") and c["status"] == "True"), None)


@pytest.mark.long
def test_jobs_of_the_training_operator_succeed(training_operator, namespace):
    namespace.create(*[training_job(kind) for kind in KINDS])
    for kind in KINDS:
        assert wait_for(lambda: state(namespace, kind, kind.lower()), f"the end of the {kind}", SECONDS) == "Succeeded"


@pytest.mark.long
def test_its_webhook_refuses_a_job_without_its_container(training_operator, cluster, namespace):
    done = cluster.kubectl("--namespace", namespace.name, "create", "-f", "-", check=False, input=json.dumps(training_job("PyTorchJob", "other")))
    assert done.returncode == 1 and "denied the request" in done.stderr


@pytest.mark.long
def test_a_jobset_completes(jobset, namespace):
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": images.BUSYBOX, "command": ["true"]}]}}
    namespace.create({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "set"}, "spec": {"replicatedJobs": [
        {"name": "workers", "replicas": 2, "template": {"spec": {"completions": 2, "parallelism": 2, "template": pod}}}]}})
    assert wait_for(lambda: state(namespace, "jobset", "set"), "the end of the JobSet", SECONDS) == "Completed"


@pytest.mark.long
def test_the_launcher_of_an_mpijob_knows_its_workers(mpi_operator, namespace):
    def replica(count, command):
        pod = {"spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "mpi", "image": images.BUSYBOX, "command": command}]}}
        return {"replicas": count, "restartPolicy": "Never", "template": pod}
    namespace.create({"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "hosts"}, "spec": {"mpiReplicaSpecs": {
        "Launcher": replica(1, ["cat", "/etc/mpi/hostfile"]), "Worker": replica(2, ["sleep", "600"])}}})
    assert wait_for(lambda: state(namespace, "mpijob", "hosts"), "the end of the MPIJob", SECONDS) == "Succeeded"
    said = namespace.kubectl("logs", "--selector=training.kubeflow.org/job-role=launcher")
    assert [line.split(".")[0] for line in said.splitlines()] == ["hosts-worker-0", "hosts-worker-1"]
