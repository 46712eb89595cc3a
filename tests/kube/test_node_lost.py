"""A node of the cluster is killed, as by a power failure, while runs are on it, and comes back."""
import time

import pytest

from .cluster import wait_for
from .test_agentless import plain
from .test_quickstart import HEAD, IMAGE, small

UNTIL_GO = "echo begin; while [ ! -e /tmp/go ]; do sleep 0.2; done; echo done"
SECONDS = 180
CAUSE_SECONDS = 30  # 10 on a machine that is not loaded


def on_two_nodes(on_lost):
    """A role on node3 and one on node1."""
    return HEAD + f"""name = "two"
command = ["sh", "-c", {UNTIL_GO!r}]
[kubernetes]
image = "{IMAGE}"
[roles.there]
on_lost = "{on_lost}"
pod = {{ spec = {{ nodeName = "node3" }} }}
[roles.elsewhere]
pod = {{ spec = {{ nodeName = "node1" }} }}
"""


def pods_of(namespace, run, role):
    """{uid: pod}"""
    return {pod["metadata"]["uid"]: pod for pod in namespace.pods(f"regatta/run={run},regatta/role={role}")}


def node_of(user, run, name):
    return next(node for node in user.status(run)["nodes"] if node["name"] == name)


@pytest.mark.long
def test_runs_on_a_node_that_is_killed_say_so_and_nothing_runs_twice(here, cluster, namespace):
    fails = here.submit(here.job(on_two_nodes("fail"), "fails.toml"))
    goes_on = here.submit(here.job(on_two_nodes("replace"), "goes-on.toml"))
    agentless = here.submit(here.job(plain(["sh", "-c", UNTIL_GO], table="node_selector = { \"kubernetes.io/hostname\" = \"node3\" }", count=1)))
    runs = (fails, goes_on, agentless)
    for run in runs:
        wait_for(lambda run=run: here.status(run)["state"] == "running", f"{run} to run", SECONDS)
    old, other = pods_of(namespace, goes_on, "there"), pods_of(namespace, goes_on, "elsewhere")
    cluster.kill_node("node3")
    try:
        wait_for(lambda: "node3" not in cluster.ready_nodes(), "node3 not to be ready", SECONDS)
        seen = time.monotonic()
        for run in (fails, agentless):
            ended = wait_for(lambda run=run: (s := here.status(run))["verdict"] and s, f"the verdict of {run}", CAUSE_SECONDS)
            print(f"{run}: {time.monotonic() - seen:.1f} s after the cluster knew: {ended['cause']}")
            assert ended["verdict"] == "failed" and "its node node3 does not answer" in ended["cause"], ended["cause"]
        wait_for(lambda: node_of(here, goes_on, "there-0")["state"] != "running", "the node that is to be replaced to be lost", SECONDS)
        assert pods_of(namespace, goes_on, "there").keys() == old.keys()  # nobody knows whether it runs
        assert here.status(goes_on)["state"] == "running" and node_of(here, goes_on, "elsewhere-0")["state"] == "running"
    finally:
        cluster.start_node("node3")
    wait_for(lambda: "node3" in cluster.ready_nodes(), "node3 to be ready", SECONDS)
    wait_for(lambda: node_of(here, goes_on, "there-0")["state"] == "running", "the node to be replaced", SECONDS)
    now = {uid: pod for uid, pod in pods_of(namespace, goes_on, "there").items() if pod["status"]["phase"] == "Running"}
    assert len(now) == 1 and not now.keys() & old.keys()
    assert pods_of(namespace, goes_on, "elsewhere").keys() == other.keys()
    for pod in (*now.values(), *other.values()):
        namespace.kubectl("exec", pod["metadata"]["name"], "--", "touch", "/tmp/go")
    ended = here.ends(goes_on)
    assert ended["verdict"] == "succeeded", ended["cause"]
    for run in runs:
        here.ends(run)
    namespace.nothing_left()


def to_kubelet(cluster, node, signal):
    """The first process of the machine starts one that has ended again."""
    machine = cluster.machines[node]
    machine.exec("kill", f"-{signal}", machine.exec("pidof", "-s", "kubelet").stdout.strip())


@pytest.mark.long
def test_a_kubelet_that_is_killed_or_hangs_does_not_harm_a_run(here, cluster, namespace):
    where = "node_selector = { \"kubernetes.io/hostname\" = \"node3\" }"
    script = "i=0; while [ ! -e /tmp/go ]; do echo line $i; i=$((i+1)); sleep 0.2; done; echo last $i"
    agentless = here.submit(here.job(plain(["sh", "-c", script], table=where, count=1), "agentless.toml"))
    agent = here.submit(here.job(small(["sh", "-c", script], table=where, count=1)))
    for run in (agent, agentless):
        wait_for(lambda run=run: here.status(run)["state"] == "running" and "line 1" in here("logs", run, "worker-0").stdout, f"{run} to run", SECONDS)
    before = {run: pods_of(namespace, run, "worker").keys() for run in (agent, agentless)}
    old = cluster.machines["node3"].exec("pidof", "-s", "kubelet").stdout
    to_kubelet(cluster, "node3", "KILL")
    wait_for(lambda: (now := cluster.machines["node3"].exec("pidof", "-s", "kubelet", check=False).stdout) and now != old, "another kubelet")
    # One that is back answers for its pods: a log that is asked for goes through it.
    wait_for(lambda: cluster.answers("/api/v1/nodes/node3/proxy/healthz"), "it to answer", SECONDS)
    done(here, namespace, agentless, before)
    to_kubelet(cluster, "node3", "STOP")
    try:
        wait_for(lambda: "node3" not in cluster.ready_nodes(), "node3 not to be ready", SECONDS)
        size = len(here("logs", agent, "worker-0").stdout)
        wait_for(lambda: len(here("logs", agent, "worker-0").stdout) > size, "more of the log")
        assert here.status(agent)["state"] == "running"
    finally:
        to_kubelet(cluster, "node3", "CONT")
    wait_for(lambda: "node3" in cluster.ready_nodes(), "node3 to be ready", SECONDS)
    done(here, namespace, agent, before)
    namespace.nothing_left()


def done(user, namespace, run, before):
    """The run has the pods that it had, and ends with all of its log."""
    pods = pods_of(namespace, run, "worker")
    assert pods.keys() == before[run] and user.status(run)["state"] == "running"
    # A kubelet that has just begun does not know its pods yet.
    wait_for(lambda: namespace.cluster.kubectl("--namespace", namespace.name, "exec", next(iter(pods.values()))["metadata"]["name"], "--",
                                               "touch", "/tmp/go", check=False).returncode == 0, "the pod to be told", SECONDS)
    ended = user.ends(run)
    assert ended["verdict"] == "succeeded", ended["cause"]
    lines = user("logs", run, "worker-0").stdout.splitlines()
    assert lines == [f"line {i}" for i in range(len(lines) - 1)] + [f"last {len(lines) - 1}"]
