"""The document of the bare-metal executor, followed: its descriptor runs as it is, on an instance that boots."""
import hashlib
import json

import pytest

from . import images, network
from .conftest import client, wait_for
from .test_ec2_boot import consoles, real, user  # noqa: F401  pylint: disable=unused-import
from .test_ec2_run import STAYS

pytestmark = pytest.mark.skipif(bool(network.missing()), reason=network.missing() or "-")
DATA = b"7 1 2\n1 9 9\n" * 100
# As Anubis has it; [aws.ec2] and execution_engine are the document's.
DESCRIPTOR = f"""spec_version = "0.1.0"

[info]
description = "Benchmarking MNIST on a bare machine"
task_name = "mnist on bare metal"
execution_engine = "aws.ec2"
scheduling = "single_run"
[info.labels]
task_name = "mnist"
team = "vision"

[aws.ec2]
image = "{images.DEFAULT}"

[hardware]
instance_type = "c5.xlarge"
strategy = "single_node"
availability_zone = "us-east-1b"

[env]
privileged = false
extended_shm = true
[env.vars]
OMP_NUM_THREADS = "2"

[ml]
benchmark_code = "sh $BAI_SCRIPTS_PATH/train.sh"
args = "--epochs 3 --note 'two words'"
framework = "mxnet"
framework_version = "1.5"
[ml.script]
script = "./scripts"

[data]
[[data.sources]]
src = "SOURCE"
path = "datasets/train.txt"
md5 = "{hashlib.md5(DATA).hexdigest()}"

[output]
[[output.metrics]]
name = "accuracy"
units = "ratio"
pattern = "accuracy=([-+.0-9eE]+)"
"""
MORE = """
[[data.sources]]
src = "s3://data-pull/mnist/images.gz"
path = "/data/mnist"

[[data.sources]]
src = "s3://data-pull/mnist/labels.gz"
path = "/data/mnist"
"""
TRAIN = """echo "threads=$OMP_NUM_THREADS lines=$(wc -l <datasets/train.txt) args=$*"
ls /data/mnist
for epoch in 1 2 3; do echo "epoch $epoch accuracy=0.$epoch"; done
echo "{\\"throughput\\": 42.5}" >"$BENCHMARK_AI_FIFO_FILEPATH"
"""


def files(directory):
    (directory / "scripts").mkdir()
    (directory / "scripts/train.sh").write_text(TRAIN)
    (directory / "train.txt").write_bytes(DATA)


def submit(user, source, more=""):  # noqa: F811
    (user.directory / "descriptor.toml").write_text(DESCRIPTOR.replace("SOURCE", source) + more)
    return user("run", "-d", "descriptor.toml", "--set", "master=here").stdout.split()[-1]


def look_at(ec2, number):
    """What the document asks of the instance, as boto3 sees it."""
    one = ec2.describe_instances(InstanceIds=[number])["Reservations"][0]["Instances"][0]
    tags = {tag["Key"]: tag["Value"] for tag in one["Tags"]}
    assert (tags["task_name"], tags["team"]) == ("mnist", "vision")
    assert (one["ImageId"], one["InstanceType"], one["Placement"]["AvailabilityZone"]) == (images.DEFAULT, "c5.xlarge", "us-east-1b")
    assert one["Monitoring"]["State"] == "enabled" and "IamInstanceProfile" not in one
    behaviour = ec2.describe_instance_attribute(InstanceId=number, Attribute="instanceInitiatedShutdownBehavior")
    assert behaviour["InstanceInitiatedShutdownBehavior"]["Value"] == "terminate"


@pytest.mark.parametrize("source", ["./train.txt", "s3://data-pull/mnist/train.txt"])
def test_the_descriptor_of_the_document_runs_as_it_is(real, user, tmp_path, source):  # noqa: F811
    files(tmp_path)
    s3 = client(real, "s3", signature_version="s3v4")
    s3.create_bucket(Bucket="data-pull")
    for name in ("train.txt", "images.gz", "labels.gz"):
        s3.put_object(Bucket="data-pull", Key=f"mnist/{name}", Body=DATA)
    before = set(real.launched())
    run = submit(user, source, MORE)
    number = wait_for(lambda: set(real.launched()) - before, what="an instance").pop()
    look_at(client(real, "ec2"), number)
    ended = user.ends(run, 180)
    assert ended["verdict"] == "succeeded", f"{ended['cause']}\n{consoles(real)}"
    assert ended["name"] == "mnist-on-bare-metal"
    metrics = json.loads(user("metrics", run, "--output", "json").stdout)["metrics"]
    assert (metrics["accuracy"]["all"]["count"], metrics["accuracy"]["all"]["last"]) == (3, 0.3)
    assert metrics["throughput"]["all"]["last"] == 42.5
    assert "threads=2 lines=200 args=--epochs 3 --note two words\nimages.gz\nlabels.gz\n" in user("logs", run, "worker-0").stdout
    assert not real.left(*STAYS)


def test_data_with_another_md5_is_no_data(real, user, tmp_path):  # noqa: F811
    files(tmp_path)
    (tmp_path / "train.txt").write_bytes(DATA + b"\n")
    run = submit(user, "./train.txt")
    ended = user.ends(run, 180)
    assert ended["verdict"] == "failed" and "md5" in ended["cause"].lower() and "train.txt" in ended["cause"]
    assert not real.left(*STAYS)
