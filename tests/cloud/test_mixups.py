"""Buckets of somebody else or of another region, sessions that expire, two accounts: one line each, with the code and the request id of AWS."""
import json
import re

import pytest

from . import core
from .conftest import client, wait_for
from .test_ec2_run import STAYS, User, launched
from .test_ec2_run import user  # noqa: F401  (a fixture)
from .test_iam_policy import printed

LOCAL = 'name = "kept"\ncommand = ["true"]\n'


def one_line(text, *parts):
    assert len(text.strip().splitlines()) == 1 and re.search(r"request id [\w-]+", text), text
    for part in parts:
        assert part in text, text
    return True


@pytest.fixture
def buckets(cloud, s3):
    s3.create_bucket(Bucket="far-away", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    client(cloud, "s3", cloud.other_account).create_bucket(Bucket="of-somebody-else")
    cloud.baseline |= set(cloud.truth())


@pytest.mark.parametrize("bucket, parts", [
    ("far-away", ("the bucket 'far-away' is in eu-west-1, not in us-east-1",)),
    ("of-somebody-else", ("of-somebody-else", "AccessDenied", "not yours, or no permission (`bucket` in [aws])")),
])
def test_a_bucket_that_a_run_cannot_use_ends_it_with_one_line(cloud, user, buckets, bucket, parts):  # noqa: F811
    ended = user.ends(user.submit(more=f'[aws]\nbucket = "{bucket}"\n'))
    assert ended["verdict"] == "failed" and one_line(ended["cause"], *parts) and not cloud.left()


@pytest.mark.parametrize("bucket, parts", [
    ("far-away", ("the bucket 'far-away' is in eu-west-1, not in us-east-1",)),
    ("of-somebody-else", ("bucket 'of-somebody-else' of account 123456789012", "AccessDenied")),
])
def test_a_bucket_that_results_cannot_use_is_told_before_anything_starts(user, buckets, bucket, parts):  # noqa: F811
    (user.directory / "job.toml").write_text(LOCAL + f'output.s3 = "s3://{bucket}/x/"\n')
    said = user("run", "-d", "job.toml", code=None)
    assert said.returncode == (2 if bucket == "far-away" else 4)
    assert one_line(said.stderr.strip().removeprefix("regatta: "), "output.s3: ", *parts)


@pytest.fixture
def session(cloud):
    """Temporary credentials of somebody with the printed policy."""
    client(cloud, "iam").create_role(RoleName="caller", AssumeRolePolicyDocument="{}")
    client(cloud, "iam").put_role_policy(RoleName="caller", PolicyName="p", PolicyDocument=json.dumps(printed()))
    cloud.baseline |= set(cloud.truth())
    return cloud.callers.session(core.ACCOUNT, "caller", "me")


@pytest.fixture
def guest(tmp_path, cloud, session):
    made = User(tmp_path, cloud, session)
    made.listen("0.0.0.0")
    yield made
    made.close()


def test_a_session_that_expires_during_a_run_is_named_and_a_kill_brings_another(cloud, session, guest):
    run = guest.submit()
    launched(cloud)
    cloud.expire(session)
    guest("kill", run)
    held = wait_for(lambda: [e["text"] for e in map(json.loads, guest("events", "--output", "json", run).stdout.splitlines())
                             if e["kind"] == "held" and "request id" in e["text"]], what="an event")
    assert one_line(held[0], "RequestExpired")
    waiting = [line for line in guest("status", run).stdout.splitlines() if line.startswith("waiting")]
    assert len(waiting) == 3 and all(one_line(line, "ec2.instance worker-", "RequestExpired") for line in waiting)
    guest.env.pop("AWS_SESSION_TOKEN")
    guest.env.update(cloud.env())
    assert "tried again with your credentials" in guest("kill", run).stderr
    guest.ends(run)
    assert not cloud.left(*STAYS)


def test_results_of_one_account_are_not_looked_for_in_another(cloud, tmp_path):
    other = User(tmp_path, cloud, cloud.other_account)
    said = other("status", "kept-abcd", code=3).stderr.strip()
    assert said == ("regatta: no run 'kept-abcd': 'regatta ps --all' lists them; it is not in "
                    f"s3://regatta-{cloud.other_account.account}-{cloud.region}/runs/ either")
    client(cloud, "s3").create_bucket(Bucket=f"regatta-{cloud.other_account.account}-{cloud.region}")
    said = other("status", "kept-abcd", code=3).stderr
    assert one_line(said, "no run 'kept-abcd'", "AccessDenied")
    other.close()
