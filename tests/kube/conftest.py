"""A cluster for all tests of the stage, a namespace for each, and a look around afterwards."""
import json
import os
import pathlib
import secrets
import subprocess

import pytest

from kube import Cluster, cluster as bench, operators, store, truth
from kube.cluster import wait_for
from time_limit import pytest_runtest_call  # noqa: F401

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("REGATTA_BINARY", str(ROOT / "build" / "regatta"))
IS_LONG = bool(os.environ.get("REGATTA_OPERATORS"))  # make operators


def pytest_collection_modifyitems(items):
    """Those of make operators are not there otherwise: a skip is something that this machine cannot do."""
    if not IS_LONG:
        items[:] = [item for item in items if not item.get_closest_marker("long")]


def pytest_configure(config):
    config.addinivalue_line("markers", "long: only in make operators")


@pytest.fixture(scope="session")
def cluster():
    why = bench.missing()
    if why:
        pytest.skip(why)
    try:
        made = Cluster()
    except store.Unavailable as e:
        pytest.skip(str(e))
    with made:
        yield made


class Namespace:
    """One namespace, and kubectl in it."""

    def __init__(self, cluster, name):
        self.cluster, self.name = cluster, name
        cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        wait_for(lambda: cluster.answers(f"/api/v1/namespaces/{name}/serviceaccounts/default"), f"the service account of {name}")
        self.before = self.things()

    def things(self):
        return truth.things(self.cluster, self.name)

    def kubectl(self, *args, **kw):
        """What it says."""
        return self.cluster.kubectl("--namespace", self.name, *args, **kw).stdout

    def json(self, *args):
        return json.loads(self.kubectl(*args, "-o", "json"))

    def create(self, *objects):
        self.kubectl("create", "-f", "-", input="\n---\n".join(json.dumps(o) for o in objects))

    def pods(self, selector=""):
        return self.json("get", "pods", f"--selector={selector}")["items"]

    def nothing_left(self):
        truth.nothing_left(self.cluster, self.name, self.before)

    def remove(self):
        self.cluster.kubectl("delete", "namespace", self.name, "--wait=false")


@pytest.fixture
def namespace(cluster):
    made = Namespace(cluster, f"t-{secrets.token_hex(4)}")
    yield made
    made.remove()


@pytest.fixture
def decoys(cluster):
    """A namespace of somebody else with things that look like ours; they must be as they were when the test ends."""
    made = Namespace(cluster, f"somebody-{secrets.token_hex(4)}")
    before = truth.place_decoys(cluster, made.name)
    yield made
    now = truth.identities(cluster, made.name)
    made.remove()
    assert now == before, "things of somebody else were touched"


@pytest.fixture(scope="session")
def training_operator(cluster):
    operators.install(cluster, "training-operator")


@pytest.fixture(scope="session")
def mpi_operator(cluster):
    operators.install(cluster, "mpi-operator")


@pytest.fixture(scope="session")
def jobset(cluster):
    operators.install(cluster, "jobset")


@pytest.fixture(scope="session")
def argo(cluster):
    operators.install(cluster, "argo")


@pytest.fixture(scope="session")
def agent_image(cluster, tmp_path_factory):
    """The name of what `make image` makes."""
    archive = tmp_path_factory.mktemp("agent") / "regatta.tar"
    subprocess.run([ROOT / "tools/image", BINARY, archive], check=True, capture_output=True, timeout=60)
    cluster.load_image(archive)
    version = subprocess.run([BINARY, "version"], check=True, capture_output=True, text=True, timeout=60).stdout.split()[-1]
    return f"localhost/regatta:{version}"


class User:
    """Somebody with the program, a home and a kubeconfig whose namespace is the test's."""

    def __init__(self, directory, namespace, kubeconfig=None):
        self.directory, self.namespace = directory, namespace
        self.kubeconfig = directory / "kubeconfig"
        self.kubeconfig.write_text(pathlib.Path(kubeconfig or namespace.cluster.kubeconfig).read_text())
        namespace.cluster.kubectl("config", "set-context", "--current", f"--namespace={namespace.name}", kubeconfig=self.kubeconfig)
        self.env = {**os.environ, "REGATTA_HOME": str(directory / "home"), "REGATTA_IDLE": "20s", "NO_COLOR": "1", "HOME": str(directory),
                    "KUBECONFIG": str(self.kubeconfig)}

    def __call__(self, *args, code=0, timeout=180):
        done = subprocess.run([BINARY, *map(str, args)], cwd=self.directory, env=self.env, capture_output=True, text=True, timeout=timeout)
        assert code is None or done.returncode == code, f"{args}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def start(self, *args):
        return subprocess.Popen([BINARY, *map(str, args)], cwd=self.directory, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def job(self, text, name="job.toml"):
        (self.directory / name).write_text(text)
        return self.directory / name

    def submit(self, job):
        return self("run", "-d", job).stdout.split()[-1]

    def status(self, run):
        return json.loads(self("status", "--output", "json", run).stdout)

    def ends(self, run, seconds=180):
        return wait_for(lambda: (s := self.status(run))["verdict"] and s["exit_code"] is not None and s, f"the end of {run}", seconds)


@pytest.fixture
def user(tmp_path, namespace):
    made = User(tmp_path, namespace)
    yield made
    made("master", "--stop", "--cancel", code=None)


@pytest.fixture
def here(user, namespace):
    """The user, with a master that the pods of the cluster reach."""
    with open(user.directory / "master.err", "w", encoding="utf-8") as log:
        master = subprocess.Popen([BINARY, "master", "--listen", f"{namespace.cluster.at.here}:0", "--output", "json"], env=user.env,
                                  stdout=subprocess.PIPE, stderr=log, text=True)
        user.address = json.loads(master.stdout.readline())
        user.master = master
        yield user
        user("master", "--stop", "--cancel", code=None)
        master.wait(60)
