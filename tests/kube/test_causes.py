"""What the cluster does to the pods of a run is said as the cause of its end, in the cluster's own words and soon."""
import datetime
import json
import secrets

import pytest

from .cluster import wait_for
from .test_agentless import plain
from .test_operator_runs import jobset_of, manifest, mpijob_of, submit
from .test_quickstart import small

SLEEP = ["sleep", "1000"]
SOON = 10


def patch(resources, spec=""):
    return f"pod = {{ spec = {{ {spec} terminationGracePeriodSeconds = 1, containers = [{{ name = \"main\", resources = {resources} }}] }} }}"


def moment(event):
    """When the cluster first said it, in seconds; many events have whole ones only."""
    text = event.get("eventTime") or event["firstTimestamp"]
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def failed(user, namespace, run, reason):
    """The cause of the end, which was known within ten seconds of the cluster's event with that reason."""
    ended = user.ends(run)
    assert ended["verdict"] == "failed"
    known = min(e["time_ms"] for e in map(json.loads, user("events", run, "--output", "json").stdout.splitlines())
                if e.get("text") and e["text"] in ended["cause"]) / 1000
    said = min(moment(e) for e in namespace.json("get", "events")["items"] if e["reason"] == reason)
    assert known - said < SOON, f"{reason}: known after {known - said:.1f} s"
    return ended["cause"]


def test_a_pod_that_its_node_evicts(user, namespace):
    command = ["sh", "-c", "head -c 30000000 /dev/zero > /tmp/much; exec sleep 1000"]
    run = user.submit(user.job(plain(command, count=1, table=patch("{ limits = { ephemeral-storage = \"1Mi\" } }"))))
    cause = failed(user, namespace, run, "Evicted")
    assert "Evicted: Pod ephemeral local storage usage exceeds the total limit of containers 1Mi" in cause, cause
    namespace.nothing_left()


@pytest.fixture
def important(cluster):
    """A priority before that of all others."""
    name = f"important-{secrets.token_hex(4)}"
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    cluster.api("POST", path, {"metadata": {"name": name}, "value": 1000})
    yield name
    cluster.api("DELETE", f"{path}/{name}")


def most_of(cluster, node):
    """Processors that only one pod at a time can have there."""
    number = cluster.api("GET", f"/api/v1/nodes/{node}")["status"]["allocatable"]["cpu"]
    return f"{int(float(number[:-1]) if number.endswith('m') else float(number) * 1000) * 6 // 10}m"


@pytest.mark.parametrize("made", [pytest.param(plain, id="agentless", marks=pytest.mark.long), pytest.param(small, id="agent")])
def test_a_pod_that_has_to_make_room(here, namespace, important, made):
    processors = most_of(namespace.cluster, "node1")
    place = "nodeSelector = { \"kubernetes.io/hostname\" = \"node1\" },"
    run = here.submit(here.job(made(SLEEP, count=1, table=patch(f"{{ requests = {{ cpu = \"{processors}\" }} }}", place))))
    wait_for(lambda: here.status(run)["state"] == "running", "the job to run")
    namespace.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "important"}, "spec": {
        "priorityClassName": important, "nodeSelector": {"kubernetes.io/hostname": "node1"}, "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "bench.test/busybox:1", "command": SLEEP, "resources": {"requests": {"cpu": processors}}}]}})
    cause = failed(here, namespace, run, "Preempted")
    assert "Preempt" in cause, cause  # of the pod's condition as long as it is there, of an event after that
    namespace.kubectl("delete", "pod", "important", "--grace-period=0", "--force")
    namespace.nothing_left()


@pytest.mark.parametrize("kind", [pytest.param("Job", marks=pytest.mark.long), "TFJob"])
def test_pods_that_admission_denies(training_operator, user, namespace, kind):
    namespace.kubectl("label", "namespace", namespace.name, "pod-security.kubernetes.io/enforce=restricted")
    run = (user.submit(user.job(plain(["true"]))) if kind == "Job"
           else submit(user, manifest(kind, {"Chief": "true", "Worker": "true"})))
    cause = failed(user, namespace, run, "FailedCreate" if kind == "Job" else "FailedCreatePod")
    assert "forbidden: violates PodSecurity \"restricted:latest\"" in cause, cause
    namespace.nothing_left()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["JobSet", "MPIJob"])
def test_pods_that_admission_denies_to_other_operators(jobset, mpi_operator, user, namespace, kind):
    namespace.kubectl("label", "namespace", namespace.name, "pod-security.kubernetes.io/enforce=restricted")
    run = submit(user, jobset_of(("worker", 1, "true")) if kind == "JobSet" else mpijob_of(["true"]))
    cause = failed(user, namespace, run, "FailedCreate" if kind == "JobSet" else "MPIJobFailed")
    assert "forbidden: violates PodSecurity \"restricted:latest\"" in cause, cause
    namespace.nothing_left()
