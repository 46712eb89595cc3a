"""The master of a run that was handed over may not do something, or not at once; one that is lost is in test_crash_rounds.py."""
import contextlib
import json

import pytest

from . import network
from .conftest import client, wait_for
from .test_ec2_run import User
from .test_handover import ONE, here, said
from .test_handover import STAYS as STAYS_OF_INSTALL
from .test_silent_machines import agents  # noqa: F401  pylint: disable=unused-import

pytestmark = pytest.mark.skipif(bool(network.missing()), reason=network.missing() or "-")


@pytest.fixture
def user(agents, tmp_path):  # noqa: F811
    made = User(tmp_path, agents)
    yield made
    made.close()


@contextlib.contextmanager
def denied(cloud, action):
    """The roles of masters may not do it any more."""
    iam = client(cloud, "iam")
    roles = [role["RoleName"] for role in iam.list_roles()["Roles"] if role["RoleName"].startswith("regatta")]
    document = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Action": action, "Resource": "*"}]})
    for role in roles:
        iam.put_role_policy(RoleName=role, PolicyName="denied", PolicyDocument=document)
    yield
    for role in roles:
        iam.delete_role_policy(RoleName=role, PolicyName="denied")


def handed_over(user, cloud, seconds):
    run = user.submit(ONE.format(seconds=seconds))
    wait_for(lambda: here(user, run)["state"] == "running", 60, f"the hand-over\n{said(user, cloud)}")
    return run


def test_a_delete_that_the_other_master_may_not_make_is_held_and_seen_from_here(agents, user):  # noqa: F811
    run = handed_over(user, agents, 1000)
    with denied(agents, "ec2:DeleteSubnet"):
        user("kill", run)
        wait_for(lambda: "ec2:DeleteSubnet" in str(here(user, run)["waiting"]), 60, "what is held, from here")
        assert "ec2:DeleteSubnet" in user("status", run).stdout
    assert wait_for(lambda: (s := here(user, run))["exit_code"] is not None and s, 120, "the end")["verdict"] == "cancelled"
    assert not agents.left(*STAYS_OF_INSTALL), said(user, agents)


def test_results_that_the_other_master_may_not_store_are_the_cause(agents, user):  # noqa: F811
    run = handed_over(user, agents, 1)
    with denied(agents, "s3:PutObject"):
        ended = wait_for(lambda: (s := here(user, run))["exit_code"] is not None and s, 120, "the end")
    assert (ended["verdict"], ended["exit_code"]) == ("failed", 4) and "s3:PutObject" in ended["cause"], ended["cause"]
    assert not agents.left(*STAYS_OF_INSTALL), said(user, agents)


def test_a_role_that_comes_after_its_machine_is_waited_for(agents, user, monkeypatch):  # noqa: F811
    """The services have an address each, which the other master and the URLs that it signs have too: at the general one is nobody."""
    user.env.update({f"AWS_ENDPOINT_URL_{service}": agents.endpoint for service in ("EC2", "S3", "STS", "IAM", "SSM")}, AWS_ENDPOINT_URL="http://127.0.0.1:1")
    monkeypatch.setattr(agents, "role_seconds", 6)
    run = user.submit(ONE.format(seconds=0))
    ended = wait_for(lambda: (s := here(user, run))["exit_code"] is not None and s, 120, "the end")
    assert ended["verdict"] == "succeeded", ended["cause"]
    assert not agents.left(*STAYS_OF_INSTALL), said(user, agents)


def test_a_range_that_is_taken_while_the_master_boots_is_passed_over(agents, user):  # noqa: F811
    """The creates of the master on the instance are counted by itself: none has the token of the one that made its machine."""
    ec2, taken = client(agents, "ec2"), []

    def take(call):
        taken.append(ec2.create_subnet(VpcId=call.params["VpcId"], CidrBlock=call.params["CidrBlock"])["Subnet"]["SubnetId"])

    agents.fault("CreateSubnet", times=2, hook=take, where=lambda call: b"regatta" in call.body)
    run = user.submit(ONE.format(seconds=0))
    ended = wait_for(lambda: (s := here(user, run))["exit_code"] is not None and s, 120, "the end")
    for number in taken:
        ec2.delete_subnet(SubnetId=number)
    assert ended["verdict"] == "succeeded", ended["cause"]
    roles = [facts["tags"]["regatta:role"] for facts in agents.launched().values() if facts["tags"]["regatta:run"] == run]
    assert sorted(roles) == ["master", "worker"] and taken and not agents.left(*STAYS_OF_INSTALL), said(user, agents)
