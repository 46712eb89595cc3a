"""Runs of the engine aws.ec2 whose instances boot: Debian, its cloud-init, the user data, the agent, the job."""
import json
import os
import pathlib
import shutil

import pytest

from . import Cloud, network
from .conftest import client, wait_for
from .test_ec2_run import ROOT, STAYS, User

pytestmark = pytest.mark.skipif(bool(network.missing()), reason=network.missing() or "-")
EXAMPLES = pathlib.Path(os.environ.get("REGATTA_EXAMPLES", ROOT / "build" / "examples"))
QUICKSTART = """name = "quickstart"
engine = "aws.ec2"
master = "here"
strategy = "pserver"
max_runtime = "10m"
instance_type = "c5.large"
source = "programs"

[roles.pserver]
count = 1
command = ["./pserver"]
port = 5436

[roles.trainer]
count = 2
command = ["sh", "-c", "./trainer; echo done > model-$REGATTA_RANK"]

[output]
keep = "model-*"

[metrics.loss]
pattern = 'step (?<step>\\d+)/(?<total>\\d+) loss=(?<value>[-+.0-9eE]+)'
better = "lower"
"""


@pytest.fixture(scope="module")
def real():
    with Cloud(boot="real") as cloud:
        cloud.add_decoys()
        yield cloud
        cloud.check_decoys()
        assert not cloud.broken, "\n".join(cloud.broken)


@pytest.fixture
def user(real, tmp_path):
    made = User(tmp_path, real)
    made.listen(real.network.caller)
    yield made
    made.close()


def consoles(real):
    return "\n".join(f"---- {number}\n{real.console(number)[-3000:]}" for number in real.launched())


def look_of(ec2, run, instances):
    """As boto3 sees the instances and groups of a run."""
    seen = [i for r in ec2.describe_instances(InstanceIds=list(instances))["Reservations"] for i in r["Instances"]]
    for one in seen:
        tags = {tag["Key"]: tag["Value"] for tag in one["Tags"]}
        assert tags["regatta:run"] == run and {"regatta:install", "regatta:role", "regatta:attempt", "regatta:expires"} <= set(tags)
        assert one["MetadataOptions"]["HttpTokens"] == "required" and one["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
        behaviour = ec2.describe_instance_attribute(InstanceId=one["InstanceId"], Attribute="instanceInitiatedShutdownBehavior")
        assert behaviour["InstanceInitiatedShutdownBehavior"]["Value"] == "terminate"
    groups = {group["GroupId"] for one in seen for group in one["SecurityGroups"]}
    for group in ec2.describe_security_groups(GroupIds=list(groups))["SecurityGroups"]:
        assert "0.0.0.0/0" not in json.dumps(group["IpPermissions"])


def add_programs(directory):
    (directory / "programs").mkdir()
    for name in ("pserver", "trainer"):
        shutil.copy(EXAMPLES / name, directory / "programs" / name)


def test_the_quickstart_runs_on_instances_and_nothing_is_left(real, user, tmp_path):
    add_programs(tmp_path)
    before = set(real.launched())
    run = user.submit(QUICKSTART)
    made = wait_for(lambda: len(found := set(real.launched()) - before) == 3 and found, what="three instances")
    look_of(client(real, "ec2"), run, made)
    ended = user.ends(run, 180)
    assert ended["verdict"] == "succeeded", f"{ended['cause']}\n{consoles(real)}"
    loss = json.loads(user("metrics", run, "loss", "--output", "json").stdout)["metrics"]["loss"]["all"]
    assert loss["last"] < loss["first"] / 10 and loss["count"] == 162
    assert "step 8000/8000" in user("logs", run, "trainer-0").stdout
    assert sorted(path.name for path in (tmp_path / "home/runs" / run / "outputs").glob("**/model-*")) == ["model-0", "model-1"]
    assert not real.left(*STAYS)
