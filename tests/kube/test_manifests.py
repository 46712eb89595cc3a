"""What `regatta manifests` prints is what the API server and the operators' own schemas take."""
import subprocess

import pytest

from .conftest import BINARY, ROOT

GOLDEN = ROOT / "tests/golden/manifests"
JOB = """
name = "quick"
command = ["sh", "-c", "test $BATCH = 512"]
image = "bench.test/busybox:1"
env = { BATCH = "512" }
"""


def dry_run(cluster, namespace, text):
    """The API server checks every field, and stores nothing."""
    done = cluster.kubectl("--namespace", namespace.name, "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-",
                           input=text, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["job", "paddle-example"])
def test_jobs_are_taken_by_the_api_server(cluster, namespace, name):
    said = dry_run(cluster, namespace, (GOLDEN / f"{name}.yaml").read_text())
    assert "job.batch/" in said and "service/" in said


@pytest.mark.parametrize("name", ["pytorchjob", "tfjob", "mxjob", "paddlejob", "xgboostjob"])
def test_objects_are_taken_by_the_training_operator(training_operator, cluster, namespace, name):
    assert f"{name}.kubeflow.org/ctr" in dry_run(cluster, namespace, (GOLDEN / f"{name}.yaml").read_text())


@pytest.mark.long
def test_an_mpijob_is_taken_by_its_operator(mpi_operator, cluster, namespace):
    assert "mpijob.kubeflow.org/ctr" in dry_run(cluster, namespace, (GOLDEN / "mpijob.yaml").read_text())


@pytest.mark.long
def test_a_jobset_is_taken_by_its_operator(jobset, cluster, namespace):
    assert "jobset.jobset.x-k8s.io/ctr" in dry_run(cluster, namespace, (GOLDEN / "jobset.yaml").read_text())


def test_kubectl_applies_what_manifests_prints(cluster, namespace, tmp_path):
    job = tmp_path / "job.toml"
    job.write_text(JOB)
    text = subprocess.run([BINARY, "manifests", job], capture_output=True, text=True, check=True,
                          env={"REGATTA_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}).stdout
    namespace.kubectl("apply", "--server-side", "--validate=strict", "-f", "-", input=text)
    namespace.kubectl("wait", "--for=condition=complete", "--timeout=180s", "job/quick-worker")
    assert not (tmp_path / "home").exists()
