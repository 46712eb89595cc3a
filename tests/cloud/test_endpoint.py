"""Signatures, sessions, accounts, buckets: who may speak at all; and the facts that moto does not have."""
import base64
import hashlib
import time
import urllib.error
import urllib.request

import boto3
import pytest

from . import images
from .conftest import client, refused
from .core import ACCOUNT
from .identity import Caller

TRUST = ('{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "%s"}}]}')


def forged(cloud, **change):
    base = {"account": ACCOUNT, "kind": "root", "name": "", "key": cloud.root.key, "secret": cloud.root.secret}
    return Caller(**{**base, **change})


@pytest.mark.parametrize("service, call, unknown, wrong", [
    ("ec2", lambda c: c.describe_vpcs(), "AuthFailure", "AuthFailure"),
    ("s3", lambda c: c.list_buckets(), "InvalidAccessKeyId", "SignatureDoesNotMatch"),
    ("iam", lambda c: c.list_roles(), "InvalidClientTokenId", "SignatureDoesNotMatch"),
    ("sts", lambda c: c.get_caller_identity(), "InvalidClientTokenId", "SignatureDoesNotMatch"),
    ("ssm", lambda c: c.get_parameter(Name="/x"), "UnrecognizedClientException", "InvalidSignatureException"),
])
def test_a_key_must_be_known_and_its_signature_right(cloud, service, call, unknown, wrong):
    assert refused(call, client(cloud, service, forged(cloud, key="AKIAAAAAAAAAAAAAAAAA"))) == unknown
    assert refused(call, client(cloud, service, forged(cloud, secret="x" * 40))) == wrong


def test_the_clock_must_be_right_and_the_date_header_tells_it(cloud, ec2, s3):
    cloud.clock_skew = 1000
    assert refused(ec2.describe_vpcs) == "RequestExpired"
    assert refused(s3.list_buckets) == "RequestTimeTooSkewed"
    assert refused(client(cloud, "sts").get_caller_identity) == "SignatureDoesNotMatch"
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(cloud.endpoint)
    told = time.mktime(time.strptime(caught.value.headers["Date"], "%a, %d %b %Y %H:%M:%S GMT")) - time.timezone
    assert abs(told - time.time() - 1000) < 5


def test_a_presigned_url_works_until_it_has_expired(cloud, s3):
    s3.create_bucket(Bucket="bucket")
    s3.put_object(Bucket="bucket", Key="a/b c+d", Body=b"hello")
    url = s3.generate_presigned_url("get_object", Params={"Bucket": "bucket", "Key": "a/b c+d"}, ExpiresIn=60)
    assert urllib.request.urlopen(url).read() == b"hello"
    cloud.clock_skew = 61
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(url)
    assert caught.value.code == 403 and b"Request has expired" in caught.value.read()
    cloud.clock_skew = 0
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(url.replace("a/b%20c", "a/b%20x"))


def test_what_is_sent_must_have_the_md5_that_it_names(cloud, s3):
    s3.create_bucket(Bucket="bucket")
    md5 = hashlib.md5(b"right").digest()
    assert refused(s3.put_object, Bucket="bucket", Key="k", Body=b"wrong", ContentMD5=base64.b64encode(md5).decode()) == "BadDigest"
    s3.put_object(Bucket="bucket", Key="k", Body=b"right", ContentMD5=base64.b64encode(md5).decode())


def test_a_session_ends_and_its_token_is_part_of_it(cloud):
    sts = client(cloud, "sts")
    client(cloud, "iam").create_role(RoleName="r", AssumeRolePolicyDocument=TRUST % ACCOUNT)
    arn = f"arn:aws:iam::{ACCOUNT}:role/r"
    made = sts.assume_role(RoleArn=arn, RoleSessionName="here")["Credentials"]
    caller = Caller(ACCOUNT, "role", "r", made["AccessKeyId"], made["SecretAccessKey"], made["SessionToken"])
    assert client(cloud, "sts", caller).get_caller_identity()["Arn"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/r/here"
    caller.token = None
    assert refused(client(cloud, "sts", caller).get_caller_identity) == "InvalidClientTokenId"
    old = cloud.callers.session(ACCOUNT, "r", "old", seconds=-1)
    assert refused(client(cloud, "sts", old).get_caller_identity) == "ExpiredToken"
    assert refused(client(cloud, "ec2", old).describe_vpcs) == "RequestExpired"


def test_a_role_is_assumed_only_by_whom_it_trusts(cloud):
    sts = client(cloud, "sts")
    assert refused(sts.assume_role, RoleArn=f"arn:aws:iam::{ACCOUNT}:role/none", RoleSessionName="here") == "AccessDenied"
    client(cloud, "iam").create_role(RoleName="r", AssumeRolePolicyDocument=TRUST % "999999999999")
    assert refused(sts.assume_role, RoleArn=f"arn:aws:iam::{ACCOUNT}:role/r", RoleSessionName="here") == "AccessDenied"


def test_accounts_do_not_see_each_other(cloud, ec2, s3):
    group = ec2.create_security_group(GroupName="g", Description="d")["GroupId"]
    s3.create_bucket(Bucket="bucket")
    other = cloud.other_account
    assert refused(client(cloud, "ec2", other).describe_security_groups, GroupIds=[group]) == "InvalidGroup.NotFound"
    theirs = client(cloud, "s3", other)
    assert refused(theirs.list_objects_v2, Bucket="bucket") == "AccessDenied"
    assert refused(theirs.create_bucket, Bucket="bucket") == "BucketAlreadyExists"
    assert client(cloud, "sts", other).get_caller_identity()["Account"] != client(cloud, "sts").get_caller_identity()["Account"]


def test_a_bucket_answers_in_its_own_region(cloud, s3):
    s3.create_bucket(Bucket="far", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    assert refused(s3.list_objects_v2, Bucket="far") == "AuthorizationHeaderMalformed"
    assert s3.get_bucket_location(Bucket="far")["LocationConstraint"] == "eu-west-1"
    there = boto3.client("s3", **{**cloud.client_options(), "region_name": "eu-west-1"})
    assert there.list_objects_v2(Bucket="far")["KeyCount"] == 0


def test_public_parameters_name_images_that_exist(cloud, ec2):
    ssm = client(cloud, "ssm")
    assert len(images.PARAMETERS) > 8
    for name, value in images.PARAMETERS.items():
        assert ssm.get_parameter(Name=name)["Parameter"]["Value"] == value
    assert refused(ssm.get_parameter, Name="/aws/service/none") == "ParameterNotFound"
    known = {image["ImageId"]: image for image in ec2.describe_images()["Images"]}
    assert {number: image["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] for number, image in known.items()} == {i.id: i.size_gb for i in images.IMAGES}
    newest = ec2.describe_images(Owners=["amazon"], Filters=[{"Name": "name", "Values": ["al2023-ami-2023*"]}])["Images"]
    assert len(newest) == 2 and max(newest, key=lambda i: i["CreationDate"])["ImageId"] == images.DEFAULT


def test_quotas_can_be_read(cloud):
    quotas = client(cloud, "service-quotas")
    cloud.vcpu_quota[("standard", "on-demand")] = 64
    assert quotas.get_service_quota(ServiceCode="ec2", QuotaCode="L-1216C47A")["Quota"]["Value"] == 64
    assert len(quotas.list_service_quotas(ServiceCode="ec2")["Quotas"]) == 6
    assert refused(quotas.get_service_quota, ServiceCode="ec2", QuotaCode="L-0") == "NoSuchResourceException"


def test_large_objects_go_in_parts_and_come_in_ranges(cloud, s3):
    s3.create_bucket(Bucket="bucket")
    upload = s3.create_multipart_upload(Bucket="bucket", Key="big")["UploadId"]
    parts = [s3.upload_part(Bucket="bucket", Key="big", UploadId=upload, PartNumber=n, Body=bytes([n]) * (5 << 20))["ETag"] for n in (1, 2)]
    assert [kind for kind, _ in cloud.left()] == ["bucket", "upload"]
    s3.complete_multipart_upload(Bucket="bucket", Key="big", UploadId=upload,
                                 MultipartUpload={"Parts": [{"PartNumber": n, "ETag": tag} for n, tag in enumerate(parts, 1)]})
    assert s3.get_object(Bucket="bucket", Key="big", Range="bytes=5242878-5242881")["Body"].read() == b"\1\1\2\2"
    assert [kind for kind, _ in cloud.left()] == ["bucket", "object"]
