"""The caller's policies are what the caller may do."""
import json

import pytest

from . import images, policy
from .conftest import client, refused
from .core import ACCOUNT

TRUST = json.dumps({"Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}]})


def document(*statements):
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Resource": "*", **s} for s in statements]}


def tag(kind, value):
    return {"ResourceType": kind, "Tags": [{"Key": "regatta:install", "Value": value}]}


def test_what_no_policy_allows_is_denied_and_named(cloud):
    ec2 = client(cloud, "ec2", cloud.user("u", document({"Action": "ec2:Describe*"})))
    assert ec2.describe_vpcs()["Vpcs"]
    with pytest.raises(Exception, match=r"UnauthorizedOperation.*not authorized to perform: ec2:CreateSecurityGroup on resource"):
        ec2.create_security_group(GroupName="g", Description="d")
    assert refused(ec2.create_security_group, GroupName="g", Description="d", DryRun=True) == "UnauthorizedOperation"
    assert refused(client(cloud, "s3", cloud.user("u", document())).create_bucket, Bucket="bucket") == "AccessDenied"
    assert refused(client(cloud, "iam", cloud.user("u", document())).list_roles) == "AccessDenied"
    assert not cloud.left()


def test_deny_beats_allow(cloud):
    ec2 = client(cloud, "ec2", cloud.user("u", document({"Action": "ec2:*"}, {"Effect": "Deny", "Action": "ec2:DescribeVpcs"})))
    ec2.describe_subnets()
    assert refused(ec2.describe_vpcs) == "UnauthorizedOperation"


def test_tags_of_the_request_and_of_the_resource_are_conditions(cloud, ec2):
    mine = {"StringEquals": {"aws:RequestTag/regatta:install": "i1"}}
    own = {"StringEquals": {"aws:ResourceTag/regatta:install": "i1"}}
    user = client(cloud, "ec2", cloud.user("u", document(
        {"Action": "ec2:CreateSecurityGroup", "Resource": "arn:aws:ec2:*:*:security-group/*", "Condition": mine},
        {"Action": "ec2:CreateSecurityGroup", "Resource": "arn:aws:ec2:*:*:vpc/*"},
        {"Action": "ec2:CreateTags", "Condition": {"StringEquals": {"ec2:CreateAction": "CreateSecurityGroup"}}},
        {"Action": "ec2:DeleteSecurityGroup", "Condition": own})))
    vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    base = {"Description": "d", "VpcId": vpc}
    assert refused(user.create_security_group, GroupName="a", **base) == "UnauthorizedOperation"
    assert refused(user.create_security_group, GroupName="a", **base, TagSpecifications=[tag("security-group", "i2")]) == "UnauthorizedOperation"
    group = user.create_security_group(GroupName="a", **base, TagSpecifications=[tag("security-group", "i1")])["GroupId"]
    theirs = ec2.create_security_group(GroupName="b", **base, TagSpecifications=[tag("security-group", "i2")])["GroupId"]
    assert refused(user.create_tags, Resources=[theirs], Tags=[{"Key": "regatta:install", "Value": "i1"}]) == "UnauthorizedOperation"
    assert refused(user.delete_security_group, GroupId=theirs) == "UnauthorizedOperation"
    user.delete_security_group(GroupId=group)


def test_a_launch_asks_for_each_thing_that_it_makes_and_uses(cloud):
    everything = [{"Action": "ec2:RunInstances", "Resource": f"arn:aws:ec2:*:*:{kind}/*"}
                  for kind in ("instance", "volume", "network-interface", "image", "subnet", "security-group")]
    launch = {"ImageId": images.DEFAULT, "InstanceType": "c5.large", "MinCount": 1, "MaxCount": 1}
    client(cloud, "ec2", cloud.user("u", document(*everything))).run_instances(**launch)
    without = client(cloud, "ec2", cloud.user("u", document(*everything[:2], *everything[3:])))
    assert refused(without.run_instances, **launch) == "UnauthorizedOperation"
    tagged = {**launch, "TagSpecifications": [tag("instance", "i1")]}
    assert refused(client(cloud, "ec2", cloud.user("u", document(*everything))).run_instances, **tagged) == "UnauthorizedOperation"
    client(cloud, "ec2", cloud.user("u", document(*everything, {"Action": "ec2:CreateTags"}))).run_instances(**tagged)


def test_a_role_is_passed_only_with_leave(cloud):
    iam = client(cloud, "iam")
    iam.create_role(RoleName="r", AssumeRolePolicyDocument=TRUST)
    iam.create_instance_profile(InstanceProfileName="p")
    iam.add_role_to_instance_profile(InstanceProfileName="p", RoleName="r")
    launch = {"ImageId": images.DEFAULT, "InstanceType": "c5.large", "MinCount": 1, "MaxCount": 1, "IamInstanceProfile": {"Name": "p"}}
    assert refused(client(cloud, "ec2", cloud.user("u", document({"Action": "ec2:*"}))).run_instances, **launch) == "UnauthorizedOperation"
    may = {"Action": "iam:PassRole", "Resource": f"arn:aws:iam::{ACCOUNT}:role/r"}
    client(cloud, "ec2", cloud.user("u", document({"Action": "ec2:*"}, may))).run_instances(**launch)


def test_a_role_has_its_own_policy_and_buckets_their_prefixes(cloud, s3):
    iam = client(cloud, "iam")
    iam.create_role(RoleName="r", AssumeRolePolicyDocument=TRUST)
    iam.put_role_policy(RoleName="r", PolicyName="p", PolicyDocument=json.dumps(document(
        {"Action": ["s3:GetObject", "s3:PutObject"], "Resource": "arn:aws:s3:::bucket/mine/*"},
        {"Action": "s3:ListBucket", "Resource": "arn:aws:s3:::bucket", "Condition": {"StringLike": {"s3:prefix": "mine/*"}}})))
    s3.create_bucket(Bucket="bucket")
    role = client(cloud, "s3", cloud.callers.session(ACCOUNT, "r", "i-1"))
    role.put_object(Bucket="bucket", Key="mine/a", Body=b"1")
    assert role.list_objects_v2(Bucket="bucket", Prefix="mine/")["KeyCount"] == 1
    assert refused(role.list_objects_v2, Bucket="bucket") == "AccessDenied"
    assert refused(role.put_object, Bucket="bucket", Key="theirs/a", Body=b"1") == "AccessDenied"
    assert refused(role.delete_object, Bucket="bucket", Key="mine/a") == "AccessDenied"


@pytest.mark.parametrize("operator, wanted, have, holds", [
    ("StringEquals", ["a"], "a", True), ("StringEquals", ["a"], None, False), ("StringEqualsIfExists", ["a"], None, True),
    ("StringNotEquals", ["a"], None, True), ("StringNotEquals", ["a", "b"], "b", False), ("StringLike", ["a*"], "abc", True),
    ("Null", ["true"], None, True), ("Null", ["false"], None, False), ("Bool", ["true"], "true", True),
    ("ForAllValues:StringEquals", ["a", "b"], ["a"], True), ("ForAllValues:StringEquals", ["a"], ["a", "c"], False),
    ("ForAnyValue:StringEquals", ["a"], ["a", "c"], True), ("NumericLessThanEquals", ["3"], "3", True),
])
def test_conditions(operator, wanted, have, holds):
    statement = {"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {operator: {"k": wanted}}}
    assert policy.allowed([{"Statement": statement}], "ec2:X", "*", {} if have is None else {"K": have}) == holds
