"""`regatta doctor --engine aws.ec2`: what is fine, what is not, and what to do."""
import json

import pytest
from moto.ec2.models.availability_zones_and_regions import Region, RegionsAndZonesBackend

from .conftest import client
from .test_ec2_run import User
from .test_iam_policy import printed, without


@pytest.fixture
def user(tmp_path, cloud):
    made = User(tmp_path, cloud)
    made.env["REGATTA_CHECKIP_URL"] = f"{cloud.endpoint}/checkip"
    before = cloud.truth()
    yield made
    assert cloud.truth() == before, "a doctor changes nothing"


def checkup(user, code=0):
    found = json.loads(user("doctor", "--engine", "aws.ec2", "--output", "json", code=code).stdout)
    assert found["ok"] == (code == 0)
    return {check["name"]: check for check in found["checks"]}


def test_a_plain_account_is_fine_and_the_bucket_will_be_made(user):
    found = checkup(user)
    assert list(found) == ["region", "credentials", "clock", "vpc", "ami", "permissions", "bucket", "quota"]
    assert {check["state"] for check in found.values()} == {"fine"}
    assert "will be made" in found["bucket"]["what"] and "123456789012" in found["credentials"]["what"]
    text = user("doctor", "--engine", "aws.ec2").stdout
    assert text.startswith("CHECK") and "us-east-1" in text and "ami-" in text


def test_the_printed_policy_is_enough(cloud, tmp_path):
    assert {check["state"] for check in checkup(User(tmp_path, cloud, cloud.user("limited", printed()))).values()} == {"fine"}


@pytest.mark.parametrize("action, name, code", [
    ("ec2:RunInstances", "permissions", 1), ("ec2:CreateSecurityGroup", "permissions", 1), ("ec2:CreateTags", "permissions", 1),
    ("ec2:DescribeVpcs", "vpc", 1), ("ec2:DescribeRegions", "region", 0), ("ssm:GetParameter", "ami", 1), ("s3:ListBucket", "bucket", 1), ("servicequotas:GetServiceQuota", "quota", 0),
])
def test_a_permission_that_is_missing_is_named(cloud, tmp_path, action, name, code):
    found = checkup(User(tmp_path, cloud, cloud.user("limited", without(action))), code)
    assert found[name]["state"] == ("bad" if code else "warning") and action in found[name]["what"] and found[name]["todo"]


def test_no_credentials_and_no_region_are_said(user):
    region = {name: user.env.pop(name) for name in ("AWS_REGION", "AWS_DEFAULT_REGION")}
    assert "AWS_REGION" in checkup(user, 1)["region"]["todo"]
    user.env.update(region)
    user.env.pop("AWS_SECRET_ACCESS_KEY")
    user.env.pop("AWS_ACCESS_KEY_ID")
    assert checkup(user, 1)["credentials"]["state"] == "bad"


@pytest.mark.parametrize("region, near", [("us-esat-1", "us-east-1"), ("mars-north-1", None)])
def test_a_region_that_does_not_exist_is_said(user, region, near):
    user.env["AWS_REGION"] = region
    found = checkup(user, 1)
    assert list(found) == ["region"] and found["region"]["state"] == "bad" and "AWS_REGION" in found["region"]["todo"]
    assert f"AWS has no region '{region}'" in found["region"]["what"] and (f"did you mean '{near}'?" in found["region"]["what"]) == bool(near)


def test_a_region_that_is_not_enabled_is_said(monkeypatch, user):
    off = [Region(r.name, r.endpoint, "not-opted-in") if r.name == "us-east-1" else r for r in RegionsAndZonesBackend.regions]
    monkeypatch.setattr(RegionsAndZonesBackend, "regions", off)
    user.env["AWS_REGION"] = "us-east-1"
    assert "us-east-1 is not enabled for this account" in checkup(user, 1)["region"]["what"]


def test_wrong_keys_are_said(user):
    user.env["AWS_SECRET_ACCESS_KEY"] = "x" * 40
    found = checkup(user, 1)
    assert "SignatureDoesNotMatch" in found["credentials"]["what"]


def test_nobody_at_the_address_is_said(user):
    user.env["AWS_ENDPOINT_URL"] = "http://127.0.0.1:1"
    found = checkup(user, 1)
    assert "AWS_ENDPOINT_URL" in found["network"]["todo"] and found["region"]["state"] == "warning"


@pytest.fixture
def no_default_vpc(cloud):
    cloud.remove_default_vpc()


def test_a_region_without_a_default_vpc_is_said(no_default_vpc, user):
    found = checkup(user, 1)
    assert "no default VPC" in found["vpc"]["what"] and "vpc" in found["vpc"]["todo"]


def test_a_quota_of_nothing_is_said(cloud, user):
    cloud.vcpu_quota[("standard", "on-demand")] = 0
    found = checkup(user, 1)
    assert found["quota"]["state"] == "bad" and "L-1216C47A" in found["quota"]["todo"]


def test_a_bucket_of_somebody_else_is_said(cloud, tmp_path):
    client(cloud, "s3", cloud.other_account).create_bucket(Bucket="regatta-123456789012-us-east-1")
    assert checkup(User(tmp_path, cloud), 1)["bucket"]["state"] == "bad"


@pytest.mark.parametrize("seconds, word", [(-900, "ahead"), (900, "behind")])
def test_a_wrong_clock_is_corrected_and_said(cloud, user, seconds, word):
    cloud.clock_skew = seconds
    found = checkup(user)
    assert found["clock"]["state"] == "warning" and word in found["clock"]["what"]


def test_this_machine_has_a_doctor_too(user):
    found = json.loads(user("doctor", "--output", "json").stdout)
    assert found["engine"] == "local" and found["ok"]
    assert {check["name"] for check in found["checks"]} == {"home", "disk", "cgroups", "containers"}
