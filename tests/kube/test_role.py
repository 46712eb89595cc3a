"""Each line of the Role of the docs is needed: without it something fails, and says which verb is missing.  What the run
has made goes as soon as the line is back."""
import concurrent.futures
import json
import secrets
import subprocess

import pytest
import yaml

from .cluster import wait_for
from .conftest import BINARY, Namespace, User
from .test_agentless import plain
from .test_master import apart
from .test_quickstart import small
from .test_tools import ROLE
from .test_users import permissions

AT_ONCE = 4
SLEEP = ["sleep", "1000"]
SHORT = "timeouts = { boot = \"10s\", collect = \"5s\" }"
LONGER = "timeouts = { boot = \"40s\" }\nsource = \"files\""
MASTERS = {"serviceaccounts", "persistentvolumeclaims", "roles", "rolebindings"}
GC = "0123456789abcdef"  # an install


def without(line):
    """The Role, but for one verb of one resource."""
    role = yaml.safe_load(ROLE)
    role["rules"] = [{"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                     for group, resource, verb in sorted(permissions(ROLE)) if (group, resource, verb) != line]
    return yaml.safe_dump(role)


class Case:
    """A namespace, and somebody who may do everything there but one thing."""

    def __init__(self, cluster, directory, kubeconfig, line):
        self.line = line
        self.namespace = Namespace(cluster, f"t-{secrets.token_hex(4)}")
        (directory / "files").mkdir(parents=True)
        (directory / "files/file").write_text("uploaded to the master in the cluster")
        self.user = User(directory, self.namespace, kubeconfig)
        self.namespace.kubectl("create", "rolebinding", "alice", "--role=regatta", "--user=alice")
        self.give(without(line))
        self.namespace.before = self.namespace.things()

    def give(self, role):
        """The API server knows a change of a Role a moment later, and then the whole of it."""
        self.namespace.kubectl("apply", "-f", "-", input=role)
        other = next(line for line in permissions(ROLE) if line != self.line)
        wait_for(lambda: self.may(other) and self.may(self.line) == (self.line in permissions(role)), "the Role to be known", 30)

    def may(self, line):
        group, resource, verb = line
        name, _, part = resource.partition("/")
        asked = {"namespace": self.namespace.name, "group": group, "resource": name, "subresource": part, "verb": verb}
        return self.namespace.cluster.api("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
                                          {"spec": {"user": "alice", "resourceAttributes": asked}})["status"]["allowed"]

    def names_the_verb(self, text):
        _, resource, verb = self.line
        return f"cannot {verb} resource \"{resource}\"" in text

    def says(self, condition, what):
        """condition() has the words, soon."""
        found = wait_for(condition, f"{what} about {self.line}", 90)
        assert self.names_the_verb(found), found
        return found

    # ---- what somebody does ----

    def make_fails(self, job):
        """One line, an exit code for it, and nothing left."""
        done = self.user("run", self.user.job(job), code=None)
        assert done.returncode in range(2, 9), (done.returncode, done.stdout, done.stderr)
        causes = [line for line in done.stdout.splitlines() if self.names_the_verb(line)]
        assert causes, (done.stdout, done.stderr)
        self.namespace.nothing_left()

    def removal_waits(self, job):
        """A run that cannot be removed says why, and is removed as soon as the line is back."""
        run = self.user.submit(self.user.job(job))
        wait_for(lambda: self.user.status(run)["state"] in ("gathering", "running"), "what it makes", 90)
        self.user("kill", "--now", run)
        self.says(lambda: next((w["why"] for w in self.user.status(run)["waiting"] if self.names_the_verb(w["why"])), None), "what waits")
        self.give(ROLE)
        assert self.user.ends(run)["verdict"] == "cancelled"
        self.namespace.nothing_left()

    def stop_fails(self, job):
        run = self.user.submit(self.user.job(job))
        wait_for(lambda: self.user.status(run)["state"] == "running", "the job to run", 90)
        self.user("kill", run)
        self.says(lambda: next((line for line in self.user("events", run).stdout.splitlines() if "not_stopped" in line), None), "an event")
        assert self.user.ends(run)["verdict"] == "cancelled"
        self.namespace.nothing_left()

    def has_no_disk(self, job):
        """A master in the cluster does without one; doctor says why it has none."""
        said = json.loads(self.user("doctor", "--engine", "kubernetes", "--output", "json", code=None).stdout)
        assert "create persistentvolumeclaims" in next(check["what"] for check in said["checks"] if check["name"] == "permissions"), said
        run = self.user.submit(self.user.job(job))
        wait_for(lambda: self.user.status(run)["state"] == "running", "the hand-over", 90)
        assert not self.namespace.json("get", "persistentvolumeclaims")["items"]
        self.user("kill", "--now", run)
        assert self.user.ends(run)["verdict"] == "cancelled"
        self.namespace.nothing_left()

    def gc_fails(self):
        done = self.user("gc", "--engine", "kubernetes", "--install", GC, code=None)
        assert done.returncode in range(1, 9) and self.names_the_verb(done.stdout + done.stderr), (done.returncode, done.stdout, done.stderr)

    def listens(self):
        """A master that pods would reach."""
        self.master = subprocess.Popen([BINARY, "master", "--listen", f"{self.namespace.cluster.at.here}:0", "--output", "json"], env=self.user.env,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert json.loads(self.master.stdout.readline())["url"]

    def run(self):
        group, resource, verb = self.line
        job = (plain(SLEEP, table="as = \"pytorchjob\"", more=SHORT) if group == "kubeflow.org" else small(SLEEP, count=1) if resource == "secrets"
               else apart(SLEEP, count=1, more=LONGER) if resource in MASTERS | {"services/proxy"} else plain(SLEEP, count=1, more=SHORT))
        if resource == "events":
            self.namespace.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
            self.namespace.before = self.namespace.things()
        if resource == "secrets":
            self.listens()
        if (resource, verb) == ("pods", "delete"):
            self.namespace.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "left", "labels": {"regatta/install": GC, "regatta/run": "left"}},
                                   "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": "bench.test/busybox:1", "command": SLEEP}]}})
            self.gc_fails()
        elif verb == "list" and resource not in ("pods", "events"):
            self.gc_fails()
        elif verb == "patch" and resource != "secrets":
            self.stop_fails(job)
        elif verb in ("get", "delete") and resource not in ("pods/log", "services/proxy"):
            self.removal_waits(job)
        elif (resource, verb) == ("persistentvolumeclaims", "create"):
            self.has_no_disk(job)
        else:
            self.make_fails(job.replace("\"sleep\", \"1000\"", "\"true\"") if resource == "pods/log" else job)

    def close(self):
        self.user("master", "--stop", "--cancel", code=None)
        self.namespace.remove()


@pytest.mark.long
def test_each_line_of_the_role_is_needed(cluster, training_operator, tmp_path):
    kubeconfig = cluster.user("alice")

    def try_without(number, line):
        case = Case(cluster, tmp_path / str(number), kubeconfig, line)
        try:
            case.run()
            return None
        except Exception as e:  # pylint: disable=broad-exception-caught
            return f"{line}: {e!r}"
        finally:
            case.close()
    lines = sorted(line for line in permissions(ROLE) if line[0] != "kueue.x-k8s.io")  # test_kueue.py
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        wrong = [why for why in pool.map(lambda each: try_without(*each), enumerate(lines)) if why]
    assert not wrong, "\n".join(wrong)
