"""The Job of the document about Paddle on Kubernetes runs as it stands, in an image like the one that it builds."""
import ipaddress
import io
import json
import pathlib
import re
import shutil
import tarfile

import pytest

from . import images
from .cluster import wait_for
from .conftest import ROOT

EXAMPLE = ROOT / "examples/paddle-kubernetes/job.yaml"
NAME = "docker.io/drinkcode/paddle:k8s-job"
# What the document's start_paddle.py does with its node's number: server and trainer log to the shared volume.
START = """#!/bin/sh
set -eu
out=$JOB_PATH/$JOB_NAME/output/node_$PADDLE_INIT_TRAINER_ID
mkdir -p $out
echo "pserver --nics=$CONF_PADDLE_NIC --port=$CONF_PADDLE_PORT" > $out/server.log
echo "train --trainer_id=$PADDLE_INIT_TRAINER_ID --pservers=$PADDLE_INIT_PSERVERS of $CONF_PADDLE_GRADIENT_NUM" | tee $out/train.log
echo "address=$POD_IP"
cd $out
echo *
"""


@pytest.fixture(scope="session")
def paddle_image(cluster, tmp_path_factory):
    """Python, and /root/start.sh, which /bin/bash runs."""
    place = tmp_path_factory.mktemp("paddle")
    root = place / "root"
    with tarfile.open(images.basic() / "python.tar") as archive:
        index = json.load(archive.extractfile("index.json"))
        manifest = json.load(archive.extractfile(f"blobs/sha256/{index['manifests'][0]['digest'][7:]}"))
        layer = archive.extractfile(f"blobs/sha256/{manifest['layers'][0]['digest'][7:]}").read()
    with tarfile.open(fileobj=io.BytesIO(layer)) as files:
        files.extractall(root, filter="tar")
    (root / "root").mkdir(exist_ok=True)
    (root / "root/start.sh").write_text(START)
    (root / "root/start.sh").chmod(0o755)
    (root / "usr/bin/bash").unlink(missing_ok=True)
    (root / "usr/bin/bash").write_text('#!/bin/sh\nexec /bin/sh "$@"\n')
    (root / "usr/bin/bash").chmod(0o755)
    images.write(place / "paddle.tar", NAME, root)
    shutil.rmtree(root)
    cluster.load_image(place / "paddle.tar")


def test_the_job_of_the_paddle_document_runs_as_it_stands(paddle_image, here, namespace):
    job = here.job(pathlib.Path(EXAMPLE).read_text(), "job.yaml")
    run = here("run", "-d", job, "--set", "master=here", "--set", "max_runtime=10m").stdout.split()[-1]
    ended = here.ends(run, 240)
    assert ended["verdict"] == "succeeded", (ended["cause"], here("logs", run, "--merge").stdout)
    logs = [here("logs", run, f"node-{i}").stdout for i in range(3)]
    own = [re.search(r"--trainer_id=(\d) --pservers=(\S+) of 3\naddress=(\S+)\n", log).groups() for log in logs]
    assert all(log.endswith("\nserver.log train.log\n") for log in logs)
    servers = own[0][1].split(",")
    assert servers == sorted((address for _, _, address in own), key=ipaddress.ip_address)
    for number, everybody, address in own:
        assert servers[int(number)] == address and everybody == own[0][1]
    wait_for(lambda: not namespace.pods(f"regatta/run={run}"), "the end of the pods")
