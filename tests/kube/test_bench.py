"""The cluster of the tests is a cluster: jobs complete, names resolve, volumes bind, nodes come back, and it goes without a trace."""
import http.server
import pathlib
import signal
import subprocess
import threading

import pytest

from . import cgroups, cluster as bench, images, truth
from .cluster import wait_for
from .conftest import ROOT

SECONDS = 120


def pod_spec(command, image=images.BUSYBOX, **more):
    return {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": image, "command": command}], **more}


def pod(name, command, image=images.BUSYBOX, labels=None, **more):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}}, "spec": pod_spec(command, image, **more)}


def job(name, count, spec, labels=None):
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"completions": count, "parallelism": count, "completionMode": "Indexed", "backoffLimit": 0,
                     "template": {"metadata": {"labels": labels or {}}, "spec": spec}}}


def await_job(namespace, name):
    def is_over():
        conditions = namespace.json("get", "job", name)["status"].get("conditions", [])
        return next((c["type"] for c in conditions if c["type"] in ("Complete", "Failed") and c["status"] == "True"), None)
    assert wait_for(is_over, f"the end of job {name}", SECONDS) == "Complete", namespace.kubectl("describe", "pods")


def await_phase(namespace, name, phase):
    wait_for(lambda: namespace.json("get", "pod", name)["status"].get("phase") == phase, f"pod {name} to be {phase}", SECONDS)


def test_a_job_of_six_pods_completes_on_all_nodes(cluster, namespace):
    spread = [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
               "labelSelector": {"matchLabels": {"of": "six"}}}]
    namespace.create(job("six", 6, pod_spec(["sh", "-c", "echo I am $JOB_COMPLETION_INDEX"], topologySpreadConstraints=spread), {"of": "six"}))
    await_job(namespace, "six")
    pods = namespace.pods("of=six")
    assert {p["spec"]["nodeName"] for p in pods} == set(cluster.nodes)
    said = sorted(namespace.kubectl("logs", p["metadata"]["name"]) for p in pods)
    assert said == [f"I am {n}\n" for n in range(6)]


def test_pods_find_each_other_by_the_names_of_a_headless_service(namespace):
    namespace.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "peers"},
                      "spec": {"clusterIP": "None", "selector": {"of": "peers"}, "publishNotReadyAddresses": True}},
                     job("peer", 2, pod_spec(["python3", "-c", "import os, socket, time\n"
                                              "other = f\"peer-{1 - int(os.environ['JOB_COMPLETION_INDEX'])}.peers\"\n"
                                              "end = time.monotonic() + 60\n"
                                              "while True:\n"
                                              "    try:\n"
                                              "        print(socket.gethostbyname(other)); break\n"
                                              "    except OSError:\n"
                                              "        assert time.monotonic() < end\n"
                                              "        time.sleep(0.2)\n"
                                              "time.sleep(10)\n"], images.PYTHON, subdomain="peers"), {"of": "peers"}))
    await_job(namespace, "peer")
    pods = namespace.pods("of=peers")
    assert {namespace.kubectl("logs", p["metadata"]["name"]).strip() for p in pods} == {p["status"]["podIP"] for p in pods}


def test_pods_reach_this_machine_and_the_api_server_reaches_pods(cluster, namespace):
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"hello {self.client_address[0]}".encode())

    server = http.server.ThreadingHTTPServer((cluster.at.here, 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        namespace.create(pod("caller", ["wget", "-q", "-O", "-", f"http://{cluster.at.here}:{server.server_port}/"]))
        await_phase(namespace, "caller", "Succeeded")
        address = namespace.json("get", "pod", "caller")["status"]["podIP"]
        assert namespace.kubectl("logs", "caller") == f"hello {address}"
    finally:
        server.shutdown()
        server.server_close()
    namespace.create(pod("web", ["python3", "-m", "http.server", "8000", "--directory", "/etc"], images.PYTHON, {"of": "web"}),
                     {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": {"of": "web"}, "ports": [{"port": 80, "targetPort": 8000}]}})
    path = f"/api/v1/namespaces/{namespace.name}/services/web:80/proxy/passwd"
    assert "nobody" in wait_for(lambda: cluster.answers(path), "the service", SECONDS)


def test_a_claim_is_bound_and_its_files_are_on_every_node(cluster, namespace):
    volume = {"volumes": [{"name": "shared", "persistentVolumeClaim": {"claimName": "shared"}}]}

    def with_volume(name, node, command):
        made = pod(name, ["sh", "-c", command], nodeName=node, **volume)
        made["spec"]["containers"][0]["volumeMounts"] = [{"name": "shared", "mountPath": "/shared"}]
        return made

    namespace.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "shared"},
                      "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Mi"}}}})
    wait_for(lambda: namespace.json("get", "pvc", "shared")["status"].get("phase") == "Bound", "the claim", SECONDS)
    namespace.create(with_volume("writer", "node1", "echo written >/shared/file"))
    await_phase(namespace, "writer", "Succeeded")
    namespace.create(with_volume("reader", "node2", "cat /shared/file"))
    await_phase(namespace, "reader", "Succeeded")
    assert namespace.kubectl("logs", "reader") == "written\n"
    files = list((cluster.directory / "volumes").iterdir())
    assert files
    namespace.kubectl("delete", "pods,pvc", "--all")
    wait_for(lambda: not set(files) & set((cluster.directory / "volumes").iterdir()), "the volume to be removed", SECONDS)


def test_what_is_left_is_seen_whatever_its_kind(cluster, namespace):
    namespace.nothing_left()
    namespace.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "labels": {truth.RUN: "r1"}}})
    assert truth.of_runs(cluster, "r1") == {("ConfigMap", namespace.name, "mine")}
    assert ("ConfigMap", "mine") in namespace.things()
    namespace.kubectl("delete", "configmap", "mine")
    namespace.nothing_left()
    assert not truth.of_runs(cluster, "r1")


def test_a_decoy_that_is_touched_is_seen(cluster, decoys):
    before = truth.identities(cluster, decoys.name)
    decoys.kubectl("label", "job", "regatta-somebody", "more=label")
    assert truth.identities(cluster, decoys.name) != before
    decoys.kubectl("label", "job", "regatta-somebody", "more-")


def test_a_user_without_a_role_is_refused(cluster, namespace):
    config = cluster.user("stranger")
    done = cluster.kubectl("--namespace", namespace.name, "get", "pods", check=False, kubeconfig=config)
    assert done.returncode == 1 and 'User "stranger" cannot list resource "pods"' in done.stderr


def test_a_second_cluster_whose_starter_is_killed_is_gone_and_swept(cluster):
    starter = subprocess.Popen([ROOT / "tools/kube-bench", "up", "--nodes", "1"], stdout=subprocess.PIPE, text=True)
    try:
        config = pathlib.Path(starter.stdout.readline().strip().removeprefix("export KUBECONFIG="))
        assert "node1" in cluster.kubectl("get", "nodes", kubeconfig=config).stdout
        tag = config.parent.name
        link, index = (config.parent / "link").read_text().split()
        assert bench.link_index(link) == index
        assert len(cgroups.processes(tag)) > 5
    finally:
        starter.send_signal(signal.SIGKILL)
        starter.wait()
    wait_for(lambda: not cgroups.processes(tag), "all processes of the cluster to be gone", SECONDS)
    assert tag not in pathlib.Path("/proc/self/mountinfo").read_text()
    bench.sweep()
    assert not cgroups.below(tag) and not config.parent.exists() and bench.link_index(link) != index
    assert cluster.ready_nodes() == set(cluster.nodes)


def hardware(cluster):
    """The addresses by which neighbours know the switch and the nodes that are there."""
    def address(machine, link):
        return cluster.machines[machine].exec("cat", f"/sys/class/net/{link}/address", check=False).stdout.strip()
    return {"switch": address("control-plane", "switch"),
            **{name: address(name, "eth0") for name in cluster.nodes if cluster.machines[name].process.poll() is None}}


@pytest.mark.long
def test_a_node_that_was_killed_is_not_ready_and_comes_back(cluster, namespace):
    before = hardware(cluster)
    cluster.kill_node("node3")
    assert hardware(cluster)["switch"] == before["switch"]
    wait_for(lambda: "node3" not in cluster.ready_nodes(), "node3 not to be ready", SECONDS)
    cluster.start_node("node3")
    wait_for(lambda: "node3" in cluster.ready_nodes(), "node3 to be ready", SECONDS)
    assert hardware(cluster) == before
    namespace.create(pod("there", ["true"], nodeName="node3"))
    await_phase(namespace, "there", "Succeeded")
