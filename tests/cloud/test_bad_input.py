"""What people get wrong: one line each, with AWS' code and request id where AWS said it, what exists, and what to do next."""
import ipaddress
import re

import pytest

from .conftest import client
from .sweep import IS_WHOLE
from .test_ec2_run import JOB, STAYS, User, launched, wait_for
from .test_ec2_run import user  # noqa: F401  pylint: disable=unused-import

KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
DOCTOR = "see 'regatta doctor --engine aws.ec2'"
REQUEST = re.compile(r"\(request id [-\w]+\)")


def no_default_vpc(cloud, _):
    cloud.remove_default_vpc()


def fill_the_vpc(cloud, _):
    """Subnets of somebody take every address."""
    ec2 = client(cloud, "ec2")
    free = [ipaddress.ip_network("172.31.0.0/16")]
    for taken in (ipaddress.ip_network(subnet["CidrBlock"]) for subnet in ec2.describe_subnets()["Subnets"]):
        free = [part for one in free for part in (one.address_exclude(taken) if taken.subnet_of(one) else [one])]
    for one in free:
        ec2.create_subnet(VpcId=ec2.describe_vpcs()["Vpcs"][0]["VpcId"], CidrBlock=str(one))
    cloud.baseline |= set(cloud.truth())


def an_expired_session(cloud, user):  # noqa: F811
    caller = cloud.callers.session("123456789012", "somebody", "s", 3600)
    user.env.update(caller.env())
    cloud.expire(caller)


# name: (of the job or of the environment, exit code, what the line says, whether AWS has said something)
CASES = {
    "no credentials": (lambda _, u: [u.env.pop(key, None) for key in KEYS], "", 4, f"no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile (aws configure, aws sso login); nothing was made; {DOCTOR}", False),
    "a wrong secret": (lambda _, u: u.env.update(AWS_SECRET_ACCESS_KEY="wrong"), "", 4, "SignatureDoesNotMatch: ", True),
    "an unknown key": (lambda _, u: u.env.update(AWS_ACCESS_KEY_ID="AKIAUNKNOWNUNKNOWN00"), "", 4, "InvalidClientTokenId: ", True),
    "a session that is over": (an_expired_session, "", 4, "ExpiredToken: ", True),
    "no region": (lambda _, u: [u.env.pop(key) for key in ("AWS_REGION", "AWS_DEFAULT_REGION")], "", 2, "no AWS region: set `region` in [aws], AWS_REGION, or `region` of the profile 'default'; nothing was made", False),
    "a region that is none": (None, '[aws]\nregion = "us-east-9"\n', 4, "Credential should be scoped to a valid region", True),
    "an unknown image": (None, '[aws]\nami = "ami-0123456789abcdef0"\n', 3, "ami 'ami-0123456789abcdef0': InvalidAMIID.NotFound: ", True),
    "an unknown VPC": (None, '[aws]\nvpc = "vpc-0123456789abcdef0"\n', 3, "InvalidVpcID.NotFound: ", True),
    "no default VPC": (no_default_vpc, "", 2, "region us-east-1 has no default VPC: name one with `vpc` or `subnets` in [aws]; nothing was made", False),
    "a VPC without room": (fill_the_vpc, "", 5, "has no free range of /28 for the subnet of 3 nodes: name subnets of yours with `subnets` in [aws], or another `vpc`; nothing was made", False),
    "results for a bucket that is none": (None, 'output.s3 = "s3://nobody-has-this/x/"\n', 3, "output.s3: bucket 'nobody-has-this' of account 123456789012: NotFound (", True),
    "a profile that is none": (None, '[aws]\nprofile = "nope"\n', 2, "the profile 'nope' is in neither", False),
}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_one_line_before_anything_is_made(cloud, user, name):  # noqa: F811
    prepare, more, code, text, is_from_aws = CASES[name]
    if prepare:
        prepare(cloud, user)
    (user.directory / "job.toml").write_text(JOB + more)
    said = user("run", "-d", "job.toml", code=code)
    assert len(said.stderr.strip().splitlines()) == 1 and text in said.stderr and "nothing was made" in said.stderr
    assert bool(REQUEST.search(said.stderr)) == is_from_aws and (DOCTOR in said.stderr) == (code in (3, 4))
    assert not cloud.left() and not cloud.launched()


def test_a_type_that_is_none_is_named_with_its_line(cloud, user):  # noqa: F811
    (user.directory / "job.toml").write_text(JOB.replace("c5.xlarge", "c5.huge"))
    said = user("run", "-d", "job.toml", code=2)
    assert said.stderr == "job.toml:6:17: instance_type: 'c5.huge' is none of the types of 2026-07\n" and not cloud.calls


LATER = {
    "key_name": ('[aws]\nkey_name = "nokey"\n', 3, "InvalidKeyPair.NotFound"),
    "security_groups": ('[aws]\nsecurity_groups = ["sg-0123456789abcdef0"]\n', 3, "InvalidGroup.NotFound"),
}


@pytest.mark.parametrize("key", LATER)
def test_what_only_the_launch_shows_is_the_cause_and_all_is_removed(cloud, user, key):  # noqa: F811
    more, code, text = LATER[key]
    ended = user.ends(user.submit(more=more))
    assert (ended["verdict"], ended["exit_code"]) == ("failed", code)
    assert text in ended["cause"] and REQUEST.search(ended["cause"]) and not cloud.left(*STAYS)


def crash(user):  # noqa: F811
    user.master.kill()
    user.master.wait(30)
    user.log.close()


def collect(cloud, directory, install):
    """Somebody with other credentials and an empty home is told the install."""
    (directory / "elsewhere").mkdir()
    User(directory / "elsewhere", cloud)("gc", "--install", install)


def test_a_session_that_ends_in_the_middle_of_a_run_holds_its_deletes(cloud, tmp_path):
    """The deletes say why they wait; whoever has a valid session removes everything with gc."""
    caller = cloud.callers.make("123456789012")
    user = User(tmp_path, cloud, caller)  # noqa: F811
    user.listen("0.0.0.0")
    run = user.submit()
    install = next(iter(launched(cloud).values()))["tags"]["regatta:install"]
    cloud.expire(caller)
    user("kill", run)
    waiting = wait_for(lambda: user.status(run)["waiting"], 30, "deletes that wait")
    assert any(re.search(r"(RequestExpired|ExpiredToken)", one["why"]) and REQUEST.search(one["why"]) for one in waiting)
    collect(cloud, tmp_path, install)
    assert not cloud.left(*STAYS)
    crash(user)


def test_credentials_of_another_account_delete_nothing_and_prove_nothing(cloud, tmp_path):
    """Two accounts mixed up: after a restart of the master the keys are another account's, where nothing of the run is."""
    caller = cloud.callers.make("123456789012")
    user = User(tmp_path, cloud, caller)  # noqa: F811
    user.listen("0.0.0.0")
    run = user.submit()
    install = next(iter(launched(cloud).values()))["tags"]["regatta:install"]
    wait_for(lambda: user.status(run)["state"] == "gathering", 30, "the machines")
    crash(user)
    caller.account = "210987654321"
    user.listen("0.0.0.0")
    user("kill", run)
    why = wait_for(lambda: [one["why"] for one in user.status(run)["waiting"] if "account" in one["why"]], 60, "deletes that wait")[0]
    assert "these credentials are of account 210987654321, the run belongs to 123456789012" in why
    cloud.settle()
    assert [one["state"] for one in cloud.launched().values()] == ["running"] * 3
    crash(user)
    caller.account = "123456789012"
    if IS_WHOLE:  # a master that was started again waits a minute before it believes that something is gone
        user.listen("0.0.0.0")
        user.ends(run, 240)
        user.close()
    else:
        collect(cloud, tmp_path, install)
    assert not cloud.left(*STAYS)
