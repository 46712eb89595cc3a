"""Manifests of the operators' own kinds run as they stand: the operator makes the pods, Regatta watches, collects and deletes."""
import json

import pytest

from . import images
from .cluster import wait_for
from .conftest import User
from .gateway import ABSENT, Gateway
from .test_agentless import plain
from .test_operators import KINDS
from .test_tools import ROLE, doctor

SECONDS = 180


def manifest(kind, commands, restart="Never"):
    """commands: by the type of replica, with one replica more than in KINDS for none."""
    replicas, container, roles = KINDS[kind]
    spec = {replicas: {role: {"replicas": count, "restartPolicy": restart, "template": {"spec": {
        "terminationGracePeriodSeconds": 1, "containers": [{"name": container, "image": images.BUSYBOX, "command": ["sh", "-c", commands[role]]}]}}}
        for role, count in roles.items()}, "runPolicy": {"cleanPodPolicy": "All"}}
    if kind == "MXJob":
        spec["jobMode"] = "MXTrain"
    return {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": "train"}, "spec": spec}


def submit(user, made, *more):
    job = user.job(json.dumps(made), "job.yaml")
    return user("run", "-d", job, "--set", "master=here", "--set", "max_runtime=10m", *more).stdout.split()[-1]


FOREVER = "echo up; while :; do sleep 0.2; done"
# kind: what its replicas do, and what the log of a node must say.
JOBS = {
    "TFJob": ({"Chief": "echo $TF_CONFIG", "Worker": "sleep 1; echo done"}, {"chief-0": "\"type\":\"chief\"", "worker-0": "done"}),
    "PaddleJob": ({"Worker": "echo $PADDLE_JOB_ID"}, {"worker-0": "", "worker-1": ""}),
    "MXJob": ({"Scheduler": FOREVER, "Server": FOREVER, "Worker": "echo $DMLC_ROLE"}, {"worker-0": "worker", "scheduler-0": "up"}),
    "XGBoostJob": ({"Master": "echo rank $RANK", "Worker": "echo rank $RANK"}, {"master-0": "rank 0", "worker-0": "rank 1"}),
}


@pytest.mark.parametrize("kind", JOBS)
def test_a_manifest_of_the_training_operator_runs_as_it_stands(training_operator, user, namespace, kind):
    commands, words = JOBS[kind]
    run = submit(user, manifest(kind, commands))
    ended = user.ends(run, SECONDS)
    assert ended["verdict"] == "succeeded", ended["cause"]
    for node, said in words.items():
        assert said in user("logs", run, node).stdout
    wait_for(lambda: not namespace.json("get", kind.lower())["items"], f"the {kind} to be gone")
    namespace.nothing_left()


@pytest.mark.long
def test_a_manifest_runs_as_jobs_with_agents_and_a_master_in_the_cluster(user, namespace):
    """One of its roles is called master, as the pod is in which the run has its own."""
    made = manifest("PyTorchJob", {"Master": "echo rank $RANK", "Worker": "echo rank $RANK"})
    for replica in made["spec"]["pytorchReplicaSpecs"].values():
        replica["template"]["spec"]["containers"][0]["image"] = images.PYTHON
    run = submit(user, made, "--set", "kubernetes.as=job", "--set", "master=auto")
    ended = user.ends(run, SECONDS)
    assert ended["verdict"] == "succeeded", ended["cause"]
    wait_for(lambda: user.status(run)["nodes"], "the results")
    assert [user("logs", run, node).stdout for node in ("master-0", "worker-0")] == ["rank 0\n", "rank 1\n"]
    namespace.nothing_left()


def become_alice(user, namespace, directory):
    """Whose rights are those of the Role in the docs, with its line for operators."""
    directory.mkdir()
    alice = User(directory, namespace, namespace.cluster.user("alice"))
    user.env["KUBECONFIG"] = str(alice.kubeconfig)
    operators = doctor(user, code=None)["operators"]
    assert operators["state"] == "warning" and "create pytorchjobs, get pytorchjobs, patch pytorchjobs" in operators["what"], operators
    namespace.kubectl("create", "-f", "-", input=ROLE)
    namespace.kubectl("create", "rolebinding", "alice", "--role=regatta", "--user=alice")
    namespace.before = namespace.things()
    wait_for(lambda: "pytorchjobs" not in doctor(user, code=None)["operators"]["what"], "the role to be known")


def is_called_succeeded(namespace):
    return any(c["type"] == "Succeeded" and c["status"] == "True" for job in namespace.json("get", "pytorchjobs")["items"]
               for c in job.get("status", {}).get("conditions") or [])


def node_states(user, run):
    return {node["name"]: node["state"] for node in user.status(run)["nodes"]}


@pytest.mark.parametrize("where, code, verdict", [("cluster", 0, "succeeded"), ("here", 3, "failed")])
def test_a_pytorchjob_is_not_over_with_its_master(training_operator, user, namespace, tmp_path, where, code, verdict):
    # The operator gives a worker an init container that waits for the name of the master; a worker has a name once it runs.
    commands = {"Master": "echo rank $RANK; until nslookup ${HOSTNAME%-master-0}-worker-0 | grep '^Name:'; do sleep 0.3; done",
                "Worker": f"echo rank $RANK; until [ -e /tmp/go ]; do sleep 0.1; done; echo done; exit {code}"}
    if where == "cluster":
        become_alice(user, namespace, tmp_path / "alice")
    run = submit(user, manifest("PyTorchJob", commands), "--set", f"master={'auto' if where == 'cluster' else where}")
    wait_for(lambda: is_called_succeeded(namespace), "the operator to call it succeeded", SECONDS)
    wait_for(lambda: node_states(user, run).get("master-0") == "exited", "the end of the master")
    now = user.status(run)
    assert not now["verdict"] and node_states(user, run)["worker-0"] == "running", now
    namespace.kubectl("exec", f"{run}-worker-0", "--container=pytorch", "--", "touch", "/tmp/go")
    ended = user.ends(run, SECONDS)
    assert ended["verdict"] == verdict and (not code or f"exit code {code}" in ended["cause"]), ended["cause"]
    assert "rank 0\n" in user("logs", run, "master-0").stdout
    assert user("logs", run, "worker-0").stdout == "rank 1\ndone\n"
    namespace.nothing_left()


def test_a_cancelled_operators_object_leaves_nothing(training_operator, user, namespace):
    run = submit(user, manifest("TFJob", {"Chief": FOREVER, "Worker": FOREVER}))
    wait_for(lambda: user.status(run)["state"] == "running", "the job to run")
    user("kill", run)
    assert user.ends(run, SECONDS)["verdict"] == "cancelled"
    namespace.nothing_left()


def test_what_its_webhook_denies_is_said(training_operator, user, namespace):
    made = manifest("PyTorchJob", {"Master": "true", "Worker": "true"})
    for replica in made["spec"]["pytorchReplicaSpecs"].values():
        replica["template"]["spec"]["containers"][0]["name"] = "other"
    ended = user.ends(submit(user, made), SECONDS)
    assert ended["verdict"] == "failed" and "denied the request" in ended["cause"], ended["cause"]
    namespace.nothing_left()


def test_an_operator_that_is_missing_is_named(user, namespace):
    job = user.job("engine = \"kubernetes\"\nmaster = \"here\"\nname = \"set\"\ncommand = [\"true\"]\n"
                   f"[kubernetes]\nas = \"mpijob\"\nimage = \"{images.BUSYBOX}\"\n"
                   "[roles.launcher]\n[roles.worker]\ncount = 2\n")
    # Other tests may have installed it.
    with Gateway(namespace.cluster, lambda _, path: ABSENT if path == "/apis/kubeflow.org/v2beta1" else None) as gateway:
        user.kubeconfig.write_text(gateway.kubeconfig(namespace.name))
        done = user("run", job, code=3)
    assert "the cluster has no MPIJob: install Kubeflow's mpi-operator" in done.stderr
    namespace.nothing_left()


def test_a_queue_without_kueue_is_refused(user, namespace):
    done = user("run", user.job(plain(["true"], table="queue = \"team\"")), code=3)
    assert "the cluster has no Kueue, in whose queue 'team' the run is to wait" in done.stderr
    namespace.nothing_left()


@pytest.fixture(scope="session")
def mpi_image(cluster):
    cluster.load_image(images.mpi())


def mpijob_of(command):
    """Of two workers, each with two slots, which run the sshd of their image."""
    def replica(count, **container):
        return {"replicas": count, "template": {"spec": {"terminationGracePeriodSeconds": 1,
                                                         "containers": [{"name": "mpi", "image": images.MPI, **container}]}}}
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "ranks"}, "spec": {
        "slotsPerWorker": 2, "mpiReplicaSpecs": {"Launcher": replica(1, command=command), "Worker": replica(2)}}}


def jobset_of(*jobs):
    """jobs: (name, number of pods, script)"""
    def job(name, count, script):
        pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
               "containers": [{"name": "main", "image": images.BUSYBOX, "command": ["sh", "-c", script]}]}
        return {"name": name, "replicas": 1, "template": {"spec": {
            "completions": count, "parallelism": count, "completionMode": "Indexed", "backoffLimit": 0, "template": {"spec": pod}}}}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "set"},
            "spec": {"replicatedJobs": [job(*one) for one in jobs]}}


@pytest.mark.long
def test_an_mpijob_runs_mpirun_over_ssh(mpi_operator, mpi_image, user, namespace):
    command = ["mpirun", "--allow-run-as-root", "-np", "4", "sh", "-c", "echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE on $(hostname)"]
    run = submit(user, mpijob_of(command))
    ended = user.ends(run, SECONDS)
    assert ended["verdict"] == "succeeded", ended["cause"]
    said = sorted(user("logs", run, "launcher-0").stdout.splitlines())
    assert said == [f"rank {rank} of 4 on {run}-worker-{rank // 2}" for rank in range(4)]
    wait_for(lambda: not namespace.json("get", "mpijobs")["items"], "the MPIJob to be gone")
    namespace.nothing_left()


@pytest.mark.long
@pytest.mark.parametrize("code, verdict", [(0, "succeeded"), (4, "failed")])
def test_a_jobset_runs_as_it_stands(jobset, user, namespace, code, verdict):
    run = submit(user, jobset_of(("leader", 1, "echo leader"),
                                 ("worker", 2, f"echo worker $JOB_COMPLETION_INDEX; exit $((JOB_COMPLETION_INDEX * {code}))")))
    ended = user.ends(run, SECONDS)
    assert ended["verdict"] == verdict and (not code or f"exit code {code}" in ended["cause"]), ended["cause"]
    assert user("logs", run, "worker-1").stdout == "worker 1\n"
    wait_for(lambda: not namespace.json("get", "jobsets")["items"], "the JobSet to be gone")
    namespace.nothing_left()
