"""The Role of the docs: it is enough, each line of it is used, and who has it in one namespace has nothing in another."""
import json
import secrets
import shutil

import pytest
import yaml

from . import truth
from .audit import Audit
from .cluster import wait_for
from .conftest import Namespace, User
from .test_agentless import plain
from .test_master import apart
from .test_quickstart import small
from .test_tools import ROLE, doctor, gc, leave_behind

SLEEP = "echo started; sleep 1000"
OTHERS = {"kubeflow.org", "kueue.x-k8s.io"}  # of test_operator_runs.py, test_kueue.py


def permissions(role):
    """{(group, resource, verb)}"""
    return {(group, resource, verb) for rule in yaml.safe_load(role)["rules"]
            for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]}


def member(namespace, directory, name):
    """Somebody with a home, and the Role of the docs in the namespace."""
    directory.mkdir()
    who = User(directory, namespace, namespace.cluster.user(name))
    assert doctor(who, code=1)["permissions"]["what"].startswith("missing: create configmaps, get configmaps")
    namespace.kubectl("create", "-f", "-", input=ROLE)
    namespace.kubectl("create", "rolebinding", name, "--role=regatta", f"--user={name}")
    namespace.before = namespace.things()
    wait_for(lambda: doctor(who, code=None)["permissions"]["state"] == "fine", "the role to be known")
    return who


@pytest.fixture
def elsewhere(cluster):
    made = Namespace(cluster, f"t-{secrets.token_hex(4)}")
    yield made
    made.remove()


def may(cluster, user, namespace, verb, resource, name=""):
    asked = {"spec": {"user": user, "resourceAttributes": {"namespace": namespace, "verb": verb, "resource": resource, "name": name}}}
    return cluster.api("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", asked)["status"]["allowed"]


def look_at_account(cluster, namespace, elsewhere, run):
    """A master in the cluster has its Secrets, and nobody else's; nothing at all in another namespace."""
    account = f"system:serviceaccount:{namespace.name}:{run}-regatta"
    assert may(cluster, account, namespace.name, "get", "secrets", f"{run}-worker")
    assert not may(cluster, account, namespace.name, "get", "secrets", "somebody")
    assert not may(cluster, account, namespace.name, "list", "secrets") and not may(cluster, account, namespace.name, "create", "pods")
    for verb, resource in (("list", "pods"), ("get", "secrets"), ("create", "configmaps"), ("get", "services/proxy")):
        assert not may(cluster, account, elsewhere.name, verb, resource)


def try_to_meddle(bob, alice, namespace, run):
    """Everything that somebody could try who knows the run, and even its token."""
    refused = json.loads(bob("gc", "--engine", "kubernetes", "--region", namespace.name, "--output", "json", code=None).stdout or "{}")
    assert not refused.get("resources"), refused
    done = bob("run", "--namespace", namespace.name, bob.job(plain(["true"], count=1)), code=None)
    assert done.returncode == 4 and "User \"bob\" cannot create resource" in done.stdout, done.stdout
    contexts = bob.directory / "home/contexts"
    contexts.mkdir(exist_ok=True)
    shutil.copy(alice.directory / "home/contexts" / f"{run}.json", contexts)
    for command in (("status", run), ("logs", run), ("kill", run), ("exec", run, "worker-0", "--", "true")):
        done = bob(*command, code=None)
        assert done.returncode != 0 and "started" not in done.stdout, (command, done.stdout)
    (contexts / f"{run}.json").unlink()


def answer_without_a_token(elsewhere, namespace, run):
    """What the master of the run says to a pod in another namespace: the network lets it in, and that is all."""
    service = namespace.json("get", "service", f"{run}-regatta")["spec"]
    script = ("import ssl, urllib.error, urllib.request\n"
              "try:\n"
              f"    print(urllib.request.urlopen('https://{service['clusterIP']}:{service['ports'][0]['port']}/api/v1/runs', "
              "context=ssl._create_unverified_context(), timeout=20).status)\n"
              "except urllib.error.HTTPError as e:\n"
              "    print(e.code)\n")
    elsewhere.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "curious"}, "spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "bench.test/python:1", "command": ["python3", "-c", script]}]}})
    wait_for(lambda: elsewhere.json("get", "pod", "curious")["status"].get("phase") in ("Succeeded", "Failed"), "the curious pod", 90)
    said = elsewhere.kubectl("logs", "curious").strip()
    elsewhere.kubectl("delete", "pod", "curious", "--grace-period=0", "--force")
    return said


def test_the_role_is_enough_and_used_and_users_of_two_namespaces_do_not_meet(here, cluster, namespace, elsewhere, tmp_path):
    alice, bob = member(namespace, tmp_path / "alice", "alice"), member(elsewhere, tmp_path / "bob", "bob")
    assert doctor(alice)["gpus"]["state"] == "warning"
    audit = Audit(cluster)
    here.env["KUBECONFIG"] = str(alice.kubeconfig)  # the credentials that are sent with the job
    try:
        (here.directory / "files").mkdir()
        (here.directory / "files/file").write_text("uploaded to the master in the cluster")
        apart_run = here.submit(here.job(apart(["sh", "-c", f"cat file; {SLEEP}"], count=1, more="source = \"files\""), "apart.toml"))
        plain_run = here.submit(here.job(plain(["sh", "-c", SLEEP], count=1), "plain.toml"))
        agent_run = here.submit(here.job(small(["true"], count=1), "agent.toml"))
        of_bob = bob.submit(bob.job(plain(["echo", "of bob"], count=1)))
        wait_for(lambda: here("logs", apart_run, "worker-0", code=None).stdout.endswith("clusterstarted\n"), "the log of a job in the cluster", 90)
        wait_for(lambda: here("logs", plain_run, "worker-0", code=None).stdout == "started\n", "the log of a job without the agent", 90)
        assert here("exec", apart_run, "worker-0", "--", "echo", "inside").stdout == "inside\n"
        ended = here.ends(agent_run)
        assert ended["verdict"] == "succeeded", ended["cause"]
        assert bob.ends(of_bob)["verdict"] == "succeeded" and "of bob" in bob("logs", of_bob, "worker-0").stdout
        install = namespace.pods(f"regatta/run={plain_run}")[0]["metadata"]["labels"]["regatta/install"]
        wait_for(lambda: not [name for _, name in truth.things(cluster, namespace.name) if name.startswith(agent_run)], "the end of its last pods", 60)
        before = truth.identities(cluster, namespace.name)
        try_to_meddle(bob, here, namespace, apart_run)
        assert answer_without_a_token(elsewhere, namespace, apart_run) == "401"
        look_at_account(cluster, namespace, elsewhere, apart_run)
        assert truth.identities(cluster, namespace.name) == before
        here("kill", apart_run)
        here("kill", plain_run)
        for run in (apart_run, plain_run):
            assert here.ends(run)["verdict"] == "cancelled"
        elsewhere.nothing_left()
        namespace.nothing_left()
        leave_behind(namespace, install)
        namespace.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "gone-abcd", "labels": {"regatta/install": install, "regatta/run": "gone-abcd"}},
                          "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": "bench.test/busybox:1", "command": ["sleep", "86400"]}]}})
        assert set(gc(here).values()) == {"removed"}
        namespace.nothing_left()
    finally:
        bob("master", "--stop", "--cancel", code=None)
    calls = [c for c in audit.read() if c.user == "alice" and c.namespace == namespace.name]
    wanted = {(group, resource, verb) for group, resource, verb in permissions(ROLE) if group not in OTHERS}
    assert not [c for c in calls if c.code == 403 and (c.group, c.resource, c.verb) in wanted]
    used = {(c.group, c.resource, c.verb) for c in calls}
    assert not wanted - used, f"nobody needs {sorted(wanted - used)}"
