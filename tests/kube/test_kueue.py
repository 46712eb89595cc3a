"""Runs that wait in a queue of Kueue: in a cluster of their own, whose Jobs all go through its webhooks."""
import json
import secrets
import time

import pytest

from . import operators
from .cluster import Cluster, wait_for
from .conftest import User
from .test_agentless import log_of, plain
from .test_causes import SLEEP, important  # noqa: F401
from .test_master import apart
from .test_operator_runs import FOREVER, SECONDS, manifest, submit
from .test_quickstart import small
from .test_tools import ROLE

pytestmark = pytest.mark.long
QUEUE = 'queue = "team"'
HALF = "resources = { cpus = 0.5 }"  # of a processor, for each node
VERSION = "kueue.x-k8s.io/v1beta1"
UNTIL_ASKED = ["sh", "-c", "echo up; trap 'echo asked; exit 0' TERM; while :; do sleep 0.1; done"]
BOOT = "timeouts = { boot = \"30s\" }"
LONGER_THAN_BOOT = 50


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=2) as made:
        operators.install(made, "training-operator")
        operators.install(made, "kueue")
        made.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": VERSION, "kind": "ResourceFlavor", "metadata": {"name": "bench"}}))
        yield made


class Queue:
    """A ClusterQueue of one processor, and its LocalQueue in the namespace."""

    def __init__(self, namespace):
        self.namespace, self.name = namespace, f"q-{secrets.token_hex(4)}"
        self.give(1)
        namespace.create({"apiVersion": VERSION, "kind": "LocalQueue", "metadata": {"name": "team"}, "spec": {"clusterQueue": self.name}})
        wait_for(self.is_active, "the queue")
        namespace.before = namespace.things()

    def is_active(self):
        conditions = self.namespace.json("get", "localqueue", "team").get("status", {}).get("conditions", [])
        return any(c["type"] == "Active" and c["status"] == "True" for c in conditions)

    def give(self, processors):
        flavor = {"name": "bench", "resources": [{"name": "cpu", "nominalQuota": processors}]}
        self.namespace.kubectl("apply", "-f", "-", input=json.dumps({
            "apiVersion": VERSION, "kind": "ClusterQueue", "metadata": {"name": self.name}, "spec": {
                "namespaceSelector": {}, "preemption": {"withinClusterQueue": "LowerPriority"},
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}]}}))


@pytest.fixture
def queue(namespace):
    made = Queue(namespace)
    yield made
    namespace.kubectl("delete", "localqueue", "team", "--wait=false")
    namespace.kubectl("delete", "clusterqueue", made.name, "--wait=false")


def waits(user, run, words):
    """What the run waits for, once it has these words."""
    return wait_for(lambda: next((w["why"] for w in user.status(run)["waiting"] if words in w["why"]), None), f"{words!r} about {run}", 90)


def succeeds(user, run):
    ended = user.ends(run, SECONDS)
    assert ended["verdict"] == "succeeded", ended["cause"]


@pytest.mark.parametrize("made", [small, plain, apart])
def test_a_run_that_fits_is_admitted(here, namespace, queue, made):
    succeeds(here, here.submit(here.job(made(["echo", "done"], more=HALF, table=QUEUE))))
    namespace.nothing_left()


def running(user, job, name):
    run = user.submit(user.job(job, name))
    wait_for(lambda: user.status(run)["state"] == "running", "the first run")
    return run


@pytest.mark.parametrize("made, other", [(small, plain), (plain, small)], ids=["agent", "agentless"])
def test_a_run_for_which_there_is_no_room_waits_and_says_so(here, namespace, queue, made, other):
    first = running(here, other(UNTIL_ASKED, more=HALF, table=QUEUE), "first.toml")
    run = here.submit(here.job(made(["echo", "done"], more=f"{HALF}\n{BOOT}", table=QUEUE)))
    said = waits(here, run, "in queue team: ")
    assert "insufficient unused quota for cpu in flavor bench" in said, said
    assert said in here("status", run).stdout
    until = time.monotonic() + LONGER_THAN_BOOT
    wait_for(lambda: time.monotonic() > until or here.status(run)["state"] != "gathering", "more than timeouts.boot")
    assert here.status(run)["state"] == "gathering"
    here("kill", first)
    assert here.ends(first)["verdict"] == "cancelled"
    # Kueue resumes what others suspend: the job of the first was ended, and not begun again.
    assert log_of(here, first) == b"up\nasked\n"
    succeeds(here, run)
    namespace.nothing_left()


@pytest.mark.parametrize("made", [small, apart])
def test_a_run_that_is_cancelled_while_it_waits_leaves_nothing(here, namespace, queue, made):
    run = here.submit(here.job(made(SLEEP, more=HALF, table=QUEUE, count=3)))
    waits(here, run, "insufficient quota for cpu in flavor bench")
    here("kill", run)
    assert here.ends(run)["verdict"] == "cancelled"
    namespace.nothing_left()


def test_a_queue_that_is_not_there_is_said_at_once(here, namespace, queue):
    run = here.submit(here.job(small(SLEEP, more=HALF, table='queue = "none"')))
    ended = here.ends(run)
    assert ended["verdict"] == "failed" and ended["exit_code"] == 2, ended
    assert "in queue none: LocalQueue none doesn't exist" in ended["cause"], ended["cause"]
    namespace.nothing_left()


def test_whoever_may_not_look_at_workloads_waits_without_a_reason(user, namespace, queue, tmp_path):
    (tmp_path / "alice").mkdir()
    alice = User(tmp_path / "alice", namespace, namespace.cluster.user("alice"))
    role = "".join(line for line in ROLE.splitlines(True) if "kueue" not in line)
    namespace.kubectl("create", "-f", "-", input=role)
    namespace.kubectl("create", "rolebinding", "alice", "--role=regatta", "--user=alice")
    namespace.before = namespace.things()
    try:
        run = alice.submit(alice.job(apart(["echo", "done"], more=HALF, table=QUEUE, count=3)))
        said = waits(alice, run, "in queue team: why is not known: ")
        assert "cannot list resource \"workloads\"" in said, said
        queue.give(2)
        succeeds(alice, run)
    finally:
        alice("master", "--stop", "--cancel", code=None)
    namespace.nothing_left()


@pytest.mark.parametrize("made", [small, plain])
def test_a_run_whose_place_kueue_gives_to_another_says_so(here, namespace, queue, important, made):  # noqa: F811
    run = running(here, made(SLEEP, more=HALF, table=QUEUE), "job.toml")
    other = here.submit(here.job(plain(["echo", "done"], more=HALF, table=f"{QUEUE}\npriority_class = \"{important}\"")))
    ended = here.ends(run, SECONDS)
    assert ended["verdict"] == "failed" and "Kueue has taken its place: Preempted" in ended["cause"], ended["cause"]
    succeeds(here, other)
    namespace.nothing_left()


def test_an_operators_object_waits_and_is_ended(user, namespace, queue):
    made = manifest("PyTorchJob", {"Master": FOREVER, "Worker": FOREVER})
    for replica in made["spec"]["pytorchReplicaSpecs"].values():
        replica["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    run = submit(user, made, "--set", "kubernetes.queue=team")
    waits(user, run, "insufficient quota for cpu in flavor bench")
    queue.give(2)
    wait_for(lambda: user.status(run)["state"] == "running", "the run", SECONDS)
    user("kill", run)
    assert user.ends(run, SECONDS)["verdict"] == "cancelled"
    assert log_of(user, run, "master-0") == b"up\n"
    namespace.nothing_left()
