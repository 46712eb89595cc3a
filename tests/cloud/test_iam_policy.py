"""`regatta iam-policy`: what it prints is enough for everything that the program does, and nothing of it is too much."""
import json
import pathlib
import re
import subprocess

import pytest
from botocore.exceptions import ClientError

from . import policy
from .conftest import client, wait_for
from .sweep import points
from .test_ec2_run import BINARY, JOB, STAYS, User, launched
from .test_results import said_of_results

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLUSTER = '[aws]\nplacement = "cluster"\n'

# Each action that a run of three nodes which is killed uses, and what shows that it is missing: at the submission, as the cause
# of the run's end, or as what a delete that is held says.
SUBMITTED, CAUSE, HELD = "submitted", "cause", "held"
USES = {
    "ec2:DescribeVpcs": SUBMITTED, "ec2:DescribeInstanceTypeOfferings": SUBMITTED, "ec2:DescribeImages": SUBMITTED,
    "ec2:DescribeSubnets": SUBMITTED, "ssm:GetParameter": SUBMITTED,
    "ec2:CreateSecurityGroup": CAUSE, "ec2:CreateSubnet": CAUSE, "ec2:CreatePlacementGroup": CAUSE, "ec2:CreateTags": CAUSE,
    "ec2:AuthorizeSecurityGroupIngress": CAUSE, "ec2:RunInstances": CAUSE,
    "s3:CreateBucket": CAUSE, "s3:PutBucketPublicAccessBlock": CAUSE, "s3:PutEncryptionConfiguration": CAUSE,
    "s3:PutBucketTagging": CAUSE, "s3:ListBucket": CAUSE, "s3:GetObject": CAUSE, "s3:PutObject": CAUSE,
    "s3:GetLifecycleConfiguration": CAUSE, "s3:PutLifecycleConfiguration": CAUSE,
    "ec2:DescribeInstances": HELD, "ec2:TerminateInstances": HELD, "ec2:DescribeSecurityGroups": HELD,
    "ec2:RevokeSecurityGroupIngress": HELD, "ec2:DeleteSecurityGroup": HELD, "ec2:DeleteSubnet": HELD,
    "ec2:DescribePlacementGroups": HELD, "ec2:DeletePlacementGroup": HELD,
}
# What only the role of masters on instances may do: leave its own group.
OF_MASTERS = {"ec2:ModifyNetworkInterfaceAttribute"}


def printed(*args):
    return json.loads(subprocess.run([BINARY, "iam-policy", *args], capture_output=True, text=True, check=True, timeout=60).stdout)


def actions_of(document):
    return {action for statement in document["Statement"] for action in statement["Action"]}


def without(action):
    document = printed("--engine", "aws.ec2")
    document["Statement"].append({"Effect": "Deny", "Action": action, "Resource": "*"})
    return document


@pytest.fixture
def asked(monkeypatch):
    """Every permission that the cloud has checked."""
    found, check = set(), policy.allowed

    def note(documents, action, resource, context):
        found.add(action)
        return check(documents, action, resource, context)

    monkeypatch.setattr(policy, "allowed", note)
    return found


@pytest.fixture
def limited(tmp_path, cloud):
    """A user who may do what a document says."""
    cloud.add_decoys()
    made = []

    def make(document):
        caller = cloud.user("limited", document)
        if not made:
            made.append(User(tmp_path, cloud, caller))
            made[0].listen("0.0.0.0")
        return made[0]

    yield make
    for user in made:
        user.close()
    cloud.check_decoys()


def test_no_action_is_everything_and_what_is_changed_carries_our_tag():
    document = printed("--engine", "aws.ec2")
    assert document["Version"] == "2012-10-17"
    assert {action for action in actions_of(document) if "*" in action} == {"ec2:Describe*"}
    for statement in document["Statement"]:
        changes = {a for a in statement["Action"] if re.match("ec2:(Terminate|Delete|Authorize|Revoke)", a)}
        assert not changes or "aws:ResourceTag/regatta:install" in json.dumps(statement["Condition"])
    assert "arn:aws:s3:::regatta-*/*" in json.dumps(document)
    assert "arn:aws:s3:::*" not in json.dumps(document)
    assert "arn:aws:s3:::ours/*" in json.dumps(printed("--bucket", "ours"))
    assert "cloudwatch" not in json.dumps(printed())
    assert {"Action": ["cloudwatch:PutMetricData"], "Resource": ["*"], "Condition": {"StringEquals": {"cloudwatch:namespace": "N"}}}.items() <= \
        next(s for s in printed("--cloudwatch", "N")["Statement"] if s["Sid"] == "SendMetrics").items()


def test_every_call_in_the_source_is_in_the_policy():
    """Services with a query protocol name their actions in the source; those of S3 are seen by the runs below."""
    allowed = actions_of(printed("--engine", "aws.ec2", "--cloudwatch", "N")) | OF_MASTERS
    named = set()
    for file in (ROOT / "src/driver/aws").rglob("*.c"):
        if file.parent.name == "api":
            continue  # roles that the caller's own settings name
        text = file.read_text()
        named |= {(service, action) for service, action in re.findall(r'aws_request_init\(&\w+, "(\w+)",\s+"(\w+)"\)', text)}
        named |= {("ec2", action) for action in re.findall(r'\.(?:list|remove) = "(\w+)"', text)}
        named |= {("iam", action) for action in re.findall(r'(?:iam_call|\bcall)\(w, "(\w+)"', text)}
        named |= {(service, action) for service, action in re.findall(r'aws_json\([^;]*?"(\w+)",\s+"(\w+)"', text)}
    assert len(named) > 25
    named = {(policy.PREFIXES.get(service, service), action) for service, action in named}
    missing = {f"{service}:{action}" for service, action in named
               if f"{service}:{action}" not in allowed and not (service == "ec2" and action.startswith("Describe"))}
    assert not missing


def test_a_run_passes_with_exactly_this_policy(cloud, limited, asked):
    user = limited(printed("--engine", "aws.ec2"))
    run = user.submit(more=CLUSTER)
    launched(cloud)
    user("kill", run)
    assert user.ends(run)["verdict"] == "cancelled"
    assert not cloud.left(*STAYS)
    wait_for(lambda: said_of_results(user, run), 30, "the results")
    assert not [call for call in cloud.calls if call["status"] == 403]
    assert asked == set(USES)  # the table above is complete


# Volumes and interfaces go with their instance.
LIVE = ("instance", "security-group", "subnet", "placement-group")


def ends_of(cloud):
    return {(kind, key): facts["tags"]["regatta:expires"] for (kind, key), facts in cloud.left(*STAYS).items() if kind in LIVE}


def test_a_master_moves_the_end_of_its_run_on_and_may_set_no_other_tag(cloud, limited):
    """After a restart it does so at once: nobody knows when the one before it did."""
    user = limited(printed("--engine", "aws.ec2"))
    run = user.submit(more=CLUSTER)
    launched(cloud)
    wait_for(lambda: user.status(run)["state"] == "gathering", what="live resources")
    before = ends_of(cloud)
    assert {kind for kind, _ in before} == set(LIVE)
    user.master.kill()
    user.master.wait()
    user.listen("0.0.0.0")
    wait_for(lambda: (now := ends_of(cloud)) and all(now[key] > end for key, end in before.items()), what="later ends")
    assert not [call for call in cloud.calls if call["status"] == 403]
    ec2 = client(cloud, "ec2", cloud.user("limited", printed("--engine", "aws.ec2")))
    ours = next(iter(cloud.launched()))
    foreign = next(number for kind, number in cloud.truth() if kind == "instance" and number not in cloud.launched())
    ec2.create_tags(Resources=[ours], Tags=[{"Key": "regatta:expires", "Value": "2030-01-01T00:00:00.000Z"}])
    for number, key in ((ours, "Name"), (ours, "regatta:install"), (foreign, "regatta:expires")):
        with pytest.raises(ClientError, match="UnauthorizedOperation"):
            ec2.create_tags(Resources=[number], Tags=[{"Key": key, "Value": "x"}])
    user.master.kill()  # a master that was restarted looks for a minute before it believes that all is gone
    user.master.wait()


def test_a_policy_for_one_bucket_is_not_for_another(cloud, limited):
    ended = (user := limited(printed("--bucket", "ours"))).ends(user.submit())
    assert ended["verdict"] == "failed" and "s3:" in ended["cause"] and not cloud.left(*STAYS)


@pytest.mark.parametrize("action", points(USES, 6, USES.get))
def test_an_action_that_is_missing_is_named(cloud, limited, action):
    user = limited(without(action))
    (user.directory / "job.toml").write_text(JOB + CLUSTER)
    said = user("run", "-d", "job.toml", code=None)
    if USES[action] == SUBMITTED:
        assert said.returncode == 4 and action in said.stderr and len(said.stderr.strip().splitlines()) == 1
        assert not cloud.left()
        return
    run = said.stdout.split()[-1]
    if USES[action] == CAUSE:
        ended = user.ends(run)
        assert ended["verdict"] == "failed" and ended["exit_code"] == 4 and action in ended["cause"]
    else:
        launched(cloud)
        user("kill", run)
        wait_for(lambda: any(action in waiting["why"] for waiting in user.status(run)["waiting"]), 60, "a delete that is held")
        assert "held" in user("events", run).stdout
        limited(printed("--engine", "aws.ec2"))  # the permission is given back
        user.ends(run)
    assert not cloud.left(*STAYS)
