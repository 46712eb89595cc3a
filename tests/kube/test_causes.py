"""What the cluster does to the pods of a run is said as the cause of its end, in the cluster's own words and soon."""
import datetime
import json
import secrets
import time

import pytest

from . import images
from .cluster import wait_for
from .conftest import BINARY
from .test_agentless import plain
from .test_master import apart
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


@pytest.mark.long
def test_a_part_of_a_gang_is_released(here, namespace):
    """Of four pods three have room, each on a node: nobody starts, and all go."""
    processors = most_of(namespace.cluster, "node1")
    resources = patch(f"{{ requests = {{ cpu = \"{processors}\" }} }}")
    run = here.submit(here.job(small(["echo", "started"], more="[timeouts]\nboot = \"40s\"", table=resources, count=4)))
    wait_for(lambda: any("Insufficient cpu" in (w["why"] or "") for w in here.status(run)["waiting"]), "the scheduler's words", 60)
    known = time.time()
    said = min(moment(e) for e in namespace.json("get", "events")["items"] if e["reason"] == "FailedScheduling")
    assert known - said < SOON, f"known after {known - said:.1f} s"
    ended = here.ends(run)
    assert ended["verdict"] == "failed" and "Insufficient cpu" in ended["cause"] and ended["exit_code"] == 6, ended["cause"]
    assert "started" not in "".join(path.read_text() for path in (here.directory / "home/runs" / run / "logs").glob("*.log"))
    namespace.nothing_left()


@pytest.mark.long
def test_a_container_that_ends_again_and_again(training_operator, user, namespace):
    made = manifest("TFJob", {"Chief": "sleep 1000", "Worker": "exit 3"}, restart="OnFailure")
    made["spec"]["runPolicy"]["backoffLimit"] = 10
    ended = user.ends(submit(user, made), 300)
    assert ended["verdict"] == "failed" and "CrashLoopBackOff" in ended["cause"], ended["cause"]
    namespace.nothing_left()


@pytest.fixture
def far_claim(cluster, namespace):
    """The name of a claim that is bound to a volume in a zone that no node is in."""
    name = f"far-{secrets.token_hex(4)}"
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-of-nobody"]}
    cluster.api("POST", "/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": {
        "capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "", "hostPath": {"path": "/tmp"},
        "claimRef": {"namespace": namespace.name, "name": name}, "persistentVolumeReclaimPolicy": "Retain",
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}}}})
    namespace.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": name, "resources": {"requests": {"storage": "1Mi"}}}})
    wait_for(lambda: namespace.json("get", "pvc", name)["status"].get("phase") == "Bound", "the claim to be bound")
    namespace.before = namespace.things()
    yield name
    namespace.kubectl("delete", "pvc", name)
    cluster.api("DELETE", f"/api/v1/persistentvolumes/{name}")


@pytest.mark.long
def test_a_claim_in_another_zone(user, namespace, far_claim):
    volume = f"[[volumes]]\npath = \"/data\"\npvc = \"{far_claim}\""
    run = user.submit(user.job(plain(["true"], more="[timeouts]\nboot = \"20s\"", table=volume, count=1)))
    wait_for(lambda: any("affinity" in (w["why"] or "") for w in user.status(run)["waiting"]), "the scheduler's words", 60)
    known = time.time()
    said = min(moment(e) for e in namespace.json("get", "events")["items"] if e["reason"] == "FailedScheduling")
    assert known - said < SOON, f"known after {known - said:.1f} s"
    ended = user.ends(run)
    assert ended["verdict"] == "failed" and "0/3 nodes are available" in ended["cause"] and "affinity" in ended["cause"], ended["cause"]
    assert ended["exit_code"] == 6
    namespace.nothing_left()


@pytest.mark.long
def test_an_image_without_a_shell(here, namespace, tmp_path):
    images.write_program(tmp_path / "bare.tar", "bench.test/bare:1", BINARY)
    namespace.cluster.load_image(tmp_path / "bare.tar")
    for made in (small, apart):
        began = time.monotonic()
        ended = here.ends(here.submit(here.job(made(["/regatta", "version"], image="bench.test/bare:1"))))
        assert ended["verdict"] == "failed" and ended["exit_code"] == 2, ended["cause"]
        assert "image bench.test/bare:1 has no /bin/sh to begin with: set agent_image in [kubernetes]" in ended["cause"], ended["cause"]
        print(f"known and all removed after {time.monotonic() - began:.1f} s")
        namespace.nothing_left()
