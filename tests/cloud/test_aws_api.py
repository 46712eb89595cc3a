"""The product's AWS layer against the strict cloud: every protocol, errors, pages, clock, sessions, files."""
import hashlib
import json
import os
import urllib.error
import urllib.request

import pytest

from .aws_tool import AwsTool, Refused, texts
from .conftest import client
from .core import ACCOUNT

TRUST = json.dumps({"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": ACCOUNT}}]})


@pytest.fixture
def tool(cloud):
    with AwsTool(cloud.env()) as made:
        made.call("open")
        yield made


def test_ec2_iam_sts_and_ssm_answer(cloud, tool):
    assert tool.call("account")["account"] == ACCOUNT
    vpcs = texts(tool.query("ec2", "DescribeVpcs")["root"], "vpcId")
    assert vpcs == [v["VpcId"] for v in client(cloud, "ec2").describe_vpcs()["Vpcs"]]
    made = tool.query("ec2", "CreateSecurityGroup", ("GroupName", "a b+c&d"), ("GroupDescription", "ä = x"), ("VpcId", vpcs[0]))
    group = texts(made["root"], "groupId")[0]
    assert client(cloud, "ec2").describe_security_groups(GroupIds=[group])["SecurityGroups"][0]["Description"] == "ä = x"
    tool.query("iam", "CreateRole", ("RoleName", "r"), ("AssumeRolePolicyDocument", TRUST))
    assert texts(tool.query("iam", "GetRole", ("RoleName", "r"))["root"], "RoleName") == ["r"]
    client(cloud, "ssm").put_parameter(Name="/x/y", Value="42", Type="String")
    assert tool.call("ssm", name="/x/y")["value"] == "42"
    said = tool.call("json", service="servicequotas", action="GetServiceQuota",
                     body=json.dumps({"ServiceCode": "ec2", "QuotaCode": "L-1216C47A"}))
    assert said["doc"]["Quota"]["QuotaCode"] == "L-1216C47A"
    with pytest.raises(Refused) as caught:
        tool.call("ssm", name="/x/z")
    assert caught.value.kind == "not_found" and "ParameterNotFound" in str(caught.value)


def test_errors_have_kind_code_and_request_id(tool):
    with pytest.raises(Refused) as caught:
        tool.query("ec2", "DescribeInstances", ("InstanceId.1", "i-00000000000000000"))
    why = caught.value
    assert (why.kind, why.code) == ("not_found", "InvalidInstanceID.NotFound")
    assert why.said["refused"] and why.said["request_id"]
    assert str(why).startswith("InvalidInstanceID.NotFound: ") and f"(request id {why.said['request_id']})" in str(why)
    with pytest.raises(Refused) as caught:
        tool.query("iam", "GetRole", ("RoleName", "nobody"))
    assert (caught.value.kind, caught.value.code) == ("not_found", "NoSuchEntity")


def test_a_dry_run_that_would_pass_is_a_success(tool):
    said = tool.query("ec2", "CreateSecurityGroup", ("GroupName", "x"), ("GroupDescription", "x"), ("DryRun", "true"))
    assert said["code"] == "DryRunOperation"


def test_all_pages_are_read(cloud, tool):
    iam = client(cloud, "iam")
    for i in range(7):
        iam.create_role(RoleName=f"r{i}", AssumeRolePolicyDocument=TRUST)
    said = tool.call("pages", service="iam", action="ListRoles", params=[["MaxItems", "2"]], item="ListRolesResult/Roles/member")
    assert said["items"] == 7 and said["pages"] == 4
    ec2 = client(cloud, "ec2")
    image = ec2.describe_images()["Images"][0]["ImageId"]
    for _ in range(7):
        ec2.run_instances(ImageId=image, InstanceType="t3.micro", MinCount=1, MaxCount=1)
    said = tool.call("pages", service="ec2", action="DescribeInstances", params=[["MaxResults", "5"]], item="reservationSet/item")
    assert said["items"] == 7 and said["pages"] == 2


@pytest.mark.parametrize("skew", [-3600, 3600, 86400])
def test_a_wrong_clock_is_corrected_by_the_date_of_the_answer(cloud, tool, skew):
    cloud.clock_skew = skew
    assert tool.query("ec2", "DescribeVpcs")["root"]
    assert tool.call("account")["account"] == ACCOUNT
    tool.call("make_bucket", bucket="clock-bucket")


def test_credentials_wrong_or_expired_are_denied_in_one_line(cloud):
    old = cloud.callers.session(ACCOUNT, "r", "old", seconds=-1)
    for change, code in [({"AWS_ACCESS_KEY_ID": "AKIAAAAAAAAAAAAAAAAA"}, "AuthFailure"),
                         ({"AWS_SECRET_ACCESS_KEY": "x" * 40}, "AuthFailure"),
                         ({"AWS_ACCESS_KEY_ID": old.key, "AWS_SECRET_ACCESS_KEY": old.secret,
                           "AWS_SESSION_TOKEN": old.token}, "RequestExpired")]:
        with AwsTool({**cloud.env(), **change}) as tool:
            tool.call("open")
            with pytest.raises(Refused) as caught:
                tool.query("ec2", "DescribeVpcs")
            assert (caught.value.kind, caught.value.code) == ("denied", code)


def test_a_role_of_a_profile_is_assumed_and_its_token_signed(cloud, tmp_path):
    iam = client(cloud, "iam")
    iam.create_role(RoleName="r", AssumeRolePolicyDocument=TRUST)
    iam.put_role_policy(RoleName="r", PolicyName="p", PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Action": ["ec2:DescribeVpcs", "s3:*"], "Resource": "*"}]}))
    env = cloud.env()
    (tmp_path / "config").write_text(f"""
[profile base]
aws_access_key_id = {env.pop("AWS_ACCESS_KEY_ID")}
aws_secret_access_key = {env.pop("AWS_SECRET_ACCESS_KEY")}
[profile worker]
role_arn = arn:aws:iam::{ACCOUNT}:role/r
source_profile = base
""")
    with AwsTool({**env, "AWS_CONFIG_FILE": str(tmp_path / "config"), "AWS_PROFILE": "worker"}) as tool:
        tool.call("open")
        assert tool.call("source")["source"] == f"the role arn:aws:iam::{ACCOUNT}:role/r"
        assert tool.query("ec2", "DescribeVpcs")["root"]
        tool.call("make_bucket", bucket="role-bucket")
        with pytest.raises(Refused) as caught:
            tool.query("ec2", "DescribeSubnets")
        assert caught.value.kind == "denied" and "ec2:DescribeSubnets" in str(caught.value)


CALLS = {
    "DescribeVpcs": lambda tool: tool.query("ec2", "DescribeVpcs"),
    "GetCallerIdentity": lambda tool: tool.query("sts", "GetCallerIdentity"),
    "ListRoles": lambda tool: tool.query("iam", "ListRoles"),
    "ListObjectsV2": lambda tool: tool.call("list", bucket="our-bucket"),
    "GetParameter": lambda tool: tool.call("ssm", name="/x"),
}
FAULTS = {"lost before": {"lost": "before"}, "lost after": {"lost": "after"}, "throttled": {"throttle": True},
          "broken": {"server_error": True}, "sign-in page": {"html": True}}


def test_what_passes_is_waited_for(cloud, tool):
    client(cloud, "ssm").put_parameter(Name="/x", Value="42", Type="String")
    tool.call("make_bucket", bucket="our-bucket")
    for action, call in CALLS.items():
        for name, fault in FAULTS.items():
            cloud.fault(action, **fault)
            before = len(cloud.named(action))
            assert call(tool)["ok"], (action, name)
            assert len(cloud.named(action)) == before + 2, (action, name)


def test_what_is_denied_is_asked_once_and_named(cloud, tool):
    client(cloud, "ssm").put_parameter(Name="/x", Value="42", Type="String")
    tool.call("make_bucket", bucket="our-bucket")
    for action, call in CALLS.items():
        cloud.fault(action, denied=True, times=None)
        before = len(cloud.named(action))
        with pytest.raises(Refused) as caught:
            call(tool)
        assert caught.value.kind == "denied" and action in str(caught.value), str(caught.value)
        assert len(cloud.named(action)) == before + 1, action


def test_objects(cloud, tool):
    s3 = client(cloud, "s3", signature_version="s3v4")
    tool.call("make_bucket", bucket="our-bucket")
    key = "runs/a b/ä+&=?#%.log"
    tool.call("put", bucket="our-bucket", key=key, owner=ACCOUNT, body="hello", type="text/plain", tags="a=b&c=d%20e")
    there = s3.get_object(Bucket="our-bucket", Key=key)
    assert there["Body"].read() == b"hello" and there["ContentType"] == "text/plain"
    assert s3.get_object_tagging(Bucket="our-bucket", Key=key)["TagSet"] == [{"Key": "a", "Value": "b"}, {"Key": "c", "Value": "d e"}]
    assert tool.call("get", bucket="our-bucket", key=key)["body"] == "hello"
    assert tool.call("head", bucket="our-bucket", key=key)["size"] == 5
    for n in range(1005):
        s3.put_object(Bucket="our-bucket", Key=f"many/{n:04}", Body=b"")
    assert tool.call("list", bucket="our-bucket", key="many/")["keys"] == [f"many/{n:04}" for n in range(1005)]
    assert key in tool.call("list", bucket="our-bucket")["keys"]
    with pytest.raises(Refused) as caught:
        tool.call("put", bucket="our-bucket", key=key, body="again", if_absent=True)
    assert caught.value.kind == "conflict"
    tool.call("delete", bucket="our-bucket", key=key)
    tool.call("delete", bucket="our-bucket", key=key)
    for command in ("get", "head"):
        with pytest.raises(Refused) as caught:
            tool.call(command, bucket="our-bucket", key=key)
        assert caught.value.kind == "not_found"
    with pytest.raises(Refused) as caught:
        tool.call("get", bucket="no-such-bucket-here", key="x")
    assert caught.value.kind == "not_found" and "NoSuchBucket" in str(caught.value)


def test_a_new_bucket_is_closed_encrypted_tagged_and_has_rules(cloud, tool):
    s3 = client(cloud, "s3", signature_version="s3v4")
    for _ in range(2):
        tool.call("make_bucket", bucket="our-bucket", owner=ACCOUNT)
    assert all(s3.get_public_access_block(Bucket="our-bucket")["PublicAccessBlockConfiguration"].values())
    rule = s3.get_bucket_encryption(Bucket="our-bucket")["ServerSideEncryptionConfiguration"]["Rules"][0]
    assert rule["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
    rules = s3.get_bucket_lifecycle_configuration(Bucket="our-bucket")["Rules"]
    assert [r.get("Expiration", {}).get("Days") for r in rules] == [30, 7, None]
    assert rules[0]["Filter"]["Tag"] == {"Key": "regatta:retention", "Value": "30d"}
    assert tool.call("check_bucket", bucket="our-bucket", owner=ACCOUNT)["tags"] == "regatta:install\ti<1>&\nb\tc\n"
    tool.call("delete_bucket", bucket="our-bucket")
    with pytest.raises(Refused) as caught:
        tool.call("check_bucket", bucket="our-bucket")
    assert caught.value.kind == "not_found"


def test_presigned_urls_work_for_whoever_has_them(cloud, tool):
    tool.call("make_bucket", bucket="our-bucket")
    put = tool.call("presign", bucket="our-bucket", key="bin/a b", method="PUT", seconds=60)["url"]
    urllib.request.urlopen(urllib.request.Request(put, data=b"binary", method="PUT", headers={"Content-Type": "application/octet-stream"}))
    get = tool.call("presign", bucket="our-bucket", key="bin/a b", method="GET", seconds=60)["url"]
    assert urllib.request.urlopen(get).read() == b"binary"
    cloud.clock_skew = 61
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(get)


def test_large_files_go_in_parts_and_come_back_from_an_offset(cloud, tool, tmp_path):
    s3 = client(cloud, "s3", signature_version="s3v4")
    tool.call("make_bucket", bucket="our-bucket")
    content = os.urandom(1024 * 1024) * 35 + b"tail"
    (tmp_path / "up").write_bytes(content)
    tool.call("upload", bucket="our-bucket", key="big/file", owner=ACCOUNT, file=str(tmp_path / "up"), tags="a=b")
    assert hashlib.sha256(s3.get_object(Bucket="our-bucket", Key="big/file")["Body"].read()).digest() == hashlib.sha256(content).digest()
    assert s3.list_multipart_uploads(Bucket="our-bucket").get("Uploads", []) == []
    (tmp_path / "down").write_bytes(content[:1000])
    assert tool.call("download", bucket="our-bucket", key="big/file", file=str(tmp_path / "down"))["offset"] == len(content)
    assert (tmp_path / "down").read_bytes() == content
    assert tool.call("download", bucket="our-bucket", key="big/file", file=str(tmp_path / "down"))["offset"] == len(content)
