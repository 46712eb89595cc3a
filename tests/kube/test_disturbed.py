"""What administrators do to a cluster while runs are on it: a node is drained, the API server is restarted; and a run that is large."""
import pytest

from .cluster import wait_for
from .test_agentless import plain
from .test_master import apart
from .test_node_lost import SECONDS, UNTIL_GO, node_of, pods_of
from .test_quickstart import HEAD, IMAGE, small

# It is on node3 as long as that takes pods.
MOVES = HEAD + f"""name = "moves"
command = ["sh", "-c", {UNTIL_GO!r}]
[kubernetes]
image = "{IMAGE}"
[roles.worker]
on_lost = "replace"
[[roles.worker.pod.spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution]]
weight = 100
preference = {{ matchExpressions = [{{ key = "kubernetes.io/hostname", operator = "In", values = ["node3"] }}] }}
"""


def drain(namespace, node):
    """As kubectl does it, in one namespace: the node takes no more pods, and those that it has are evicted."""
    namespace.kubectl("cordon", node)
    for pod in namespace.pods():
        if pod["spec"].get("nodeName") == node:
            name = pod["metadata"]["name"]
            path = f"/api/v1/namespaces/{namespace.name}/pods/{name}/eviction"
            namespace.cluster.api("POST", path, {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})


@pytest.mark.long
def test_a_node_that_is_drained(here, cluster, namespace):
    where = "node_selector = { \"kubernetes.io/hostname\" = \"node3\" }"
    fails = here.submit(here.job(small(["sh", "-c", UNTIL_GO], table=where, count=1), "fails.toml"))
    agentless = here.submit(here.job(plain(["sh", "-c", UNTIL_GO], table=where, count=1), "agentless.toml"))
    moves = here.submit(here.job(MOVES, "moves.toml"))
    for run in (fails, agentless, moves):
        wait_for(lambda run=run: here.status(run)["state"] == "running", f"{run} to run", SECONDS)
    before = pods_of(namespace, moves, "worker")
    assert {pod["spec"]["nodeName"] for pod in before.values()} == {"node3"}
    try:
        drain(namespace, "node3")
        # There is no event of an eviction that was asked for: the pod itself says it, as long as it is there.
        for run, words in ((fails, "EvictionByEvictionAPI: Eviction API: evicting"), (agentless, "EvictionByEvictionAPI: Eviction API: evicting")):
            ended = here.ends(run)
            assert ended["verdict"] == "failed" and words in ended["cause"], ended["cause"]
        wait_for(lambda: node_of(here, moves, "worker-0")["state"] == "running" and not pods_of(namespace, moves, "worker").keys() & before.keys(),
                 "another pod", SECONDS)  # the agent of the old one has not ended as if all were done
        moved, = pods_of(namespace, moves, "worker").values()
        assert moved["spec"]["nodeName"] != "node3"
        namespace.kubectl("exec", moved["metadata"]["name"], "--", "touch", "/tmp/go")
        ended = here.ends(moves)
        assert ended["verdict"] == "succeeded", ended["cause"]
    finally:
        namespace.kubectl("uncordon", "node3")
    namespace.nothing_left()


@pytest.mark.long
def test_an_api_server_that_is_killed_while_runs_go_on(here, cluster, namespace):
    script = "i=0; while [ ! -e /tmp/go ]; do echo line $i; i=$((i+1)); sleep 0.2; done; echo last $i"
    made = {"agent": small, "agentless": plain, "apart": apart}
    runs = [here.submit(here.job(job(["sh", "-c", script], count=1), f"{name}.toml")) for name, job in made.items()]
    for run in runs:
        wait_for(lambda run=run: "line 1\n" in here("logs", run, "worker-0", code=None).stdout, f"{run} to run", SECONDS)
    before = {run: pods_of(namespace, run, "worker").keys() for run in runs}
    for _ in range(3):
        old = cluster.plane.exec("pidof", "-s", "kube-apiserver").stdout.strip()
        cluster.plane.exec("kill", "-KILL", old)
        wait_for(lambda old=old: cluster.answers("/readyz") and cluster.plane.exec("pidof", "-s", "kube-apiserver").stdout.strip() != old,
                 "another API server", SECONDS)
    for run in runs:
        pods = wait_for(lambda run=run: pods_of(namespace, run, "worker"), "the pods", SECONDS)
        assert pods.keys() == before[run]
        wait_for(lambda pods=pods: cluster.kubectl("--namespace", namespace.name, "exec", next(iter(pods.values()))["metadata"]["name"], "--",
                                                   "touch", "/tmp/go", check=False).returncode == 0, "the pod to be told", SECONDS)
        ended = here.ends(run)
        assert ended["verdict"] == "succeeded", ended["cause"]
        lines = wait_for(lambda run=run: here("logs", run, "worker-0", code=None).stdout.splitlines(), "the log", 60)
        assert lines == [f"line {i}" for i in range(len(lines) - 1)] + [f"last {len(lines) - 1}"]
    namespace.nothing_left()


@pytest.mark.long
def test_a_run_of_two_hundred_pods(here, namespace):
    run = here.submit(here.job(plain(["sh", "-c", "echo I am $JOB_COMPLETION_INDEX"], more="[timeouts]\nlaunch = \"20m\"\nboot = \"20m\"", count=200)))
    ended = here.ends(run, 1200)
    assert ended["verdict"] == "succeeded", ended["cause"]
    logs = here.directory / "home/runs" / run / "logs"
    assert [(logs / f"worker-{i}.log").read_text() for i in range(200)] == [f"I am {i}\n" for i in range(200)]
    namespace.nothing_left()
