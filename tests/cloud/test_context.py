"""`regatta context aws`: another machine of the same people finds the masters that run on instances, and reaches them."""
import json
import subprocess

import pytest

from . import images
from .conftest import wait_for
from .test_ec2_run import User
from .test_iam_policy import printed, without

RUN, INSTALL = "ctr-abcd", "0123456789abcdef"


@pytest.fixture
def master(tmp_path, cloud, ec2, s3):
    """A master as a run was handed to it: it listens here, and the account has its instance, its group and its record."""
    there = User(tmp_path, cloud)
    said = there.listen("127.0.0.1")
    tags = [{"Key": k, "Value": v} for k, v in {"regatta:install": INSTALL, "regatta:run": RUN, "regatta:role": "master"}.items()]
    vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    group = ec2.create_security_group(GroupName=f"regatta-{INSTALL}-{RUN}", Description="x", VpcId=vpc,
                                      TagSpecifications=[{"ResourceType": "security-group", "Tags": tags}])["GroupId"]
    made = ec2.run_instances(ImageId=images.DEFAULT, MinCount=1, MaxCount=1, InstanceType="t3.small", SecurityGroupIds=[group],
                             TagSpecifications=[{"ResourceType": "instance", "Tags": tags}])["Instances"][0]["InstanceId"]
    wait_for(lambda: ec2.describe_instances(InstanceIds=[made])["Reservations"][0]["Instances"][0]["State"]["Name"] == "running")
    bucket = f"regatta-{cloud.root.account}-{cloud.region}"
    s3.create_bucket(Bucket=bucket)
    url = said["url"].replace("http://", "https://")
    record = {"run": RUN, "install": INSTALL, "url": url, "pin": said["pin"], "token": said["token"], "expires": "2030-01-01T00:00:00.000Z"}
    s3.put_object(Bucket=bucket, Key=f"masters/{RUN}.json", Body=json.dumps(record).encode())
    yield {"group": group, "bucket": bucket, "user": there, **record}
    there.close()


@pytest.fixture
def away(tmp_path, cloud):
    (tmp_path / "away").mkdir()
    return User(tmp_path / "away", cloud, cloud.user("limited", printed()))


def open_to(ec2, group):
    return [(p.get("FromPort"), r["CidrIp"]) for g in ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
            for p in g["IpPermissions"] for r in p["IpRanges"]]


def test_a_second_machine_reaches_the_master_with_the_printed_policy(ec2, away, master):
    port = int(master["url"].rsplit(":", 1)[1])
    found = json.loads(away("context", "aws", "--output", "json").stdout)
    assert [(m["run"], m["url"], m["state"], m["why"]) for m in found] == [(RUN, master["url"], "running", None)]
    assert open_to(ec2, master["group"]) == [(port, "127.0.0.1/32")]
    text = away("context", "aws").stdout
    assert RUN in text and master["url"] in text and master["token"] not in text
    assert open_to(ec2, master["group"]) == [(port, "127.0.0.1/32")]
    assert (away.directory / "home" / "contexts" / f"{RUN}.json").stat().st_mode & 0o777 == 0o600
    run = master["user"]("run", "-d", "--", "true").stdout.split()[-1]
    assert run in away("ps", "-a", "--master", RUN).stdout


def submit(there, run):
    """As a master that hands a run over does it, which names the run."""
    body = {"request_id": "request-0123456789", "run": run, "job": {"name": "ctr", "command": ["sleep", "1000"]}, "base_dir": "/", "client_env": {}}
    subprocess.run(["curl", "-sf", "--unix-socket", there.directory / "home/api.sock", "-H", "Content-Type: application/json", "-d", json.dumps(body),
                    "http://localhost/api/v1/runs"], check=True, timeout=30, stdout=subprocess.DEVNULL)


def end_machine(ec2, master):
    machine, = [i["InstanceId"] for r in ec2.describe_instances()["Reservations"] for i in r["Instances"] if i["SecurityGroups"][0]["GroupId"] == master["group"]]
    ec2.terminate_instances(InstanceIds=[machine])


def test_commands_about_its_run_go_there_until_the_master_is_gone(ec2, away, master):
    submit(master["user"], RUN)
    away("context", "aws")
    assert json.loads(away("status", RUN, "--output", "json").stdout)["id"] == RUN
    assert away("ui", RUN, "--print").stdout.startswith(master["url"] + "/login?")
    away("run", "--", "true")  # makes the other home one that completes words
    assert away("words", "nodes", RUN).stdout.split() == ["worker-0"]
    end_machine(ec2, master)
    away("context", "aws")
    assert not (away.directory / "home" / "contexts" / f"{RUN}.json").exists()
    assert f"no run '{RUN}'" in away("status", RUN, code=3).stderr


def test_the_old_client_finds_its_master_by_address_and_port(ec2, away, master):
    host, port = master["url"].removeprefix("https://").split(":")
    args = ("--master_server_public_ip", host, "--master_server_port", port)
    away("paddle", "--action", "status", *args)
    assert open_to(ec2, master["group"]) == [(int(port), "127.0.0.1/32")]
    assert "cleanup in progress" in away("paddle", "--action", "cleanup", *args).stdout
    # It ends with its machine; as long as that is there, it may only be cut off.
    master["user"]("master", "--stop", "--cancel")
    assert f"port {port}" in away("paddle", "--action", "status", *args, code=8).stderr
    end_machine(ec2, master)
    assert f"no master runs at {master['url']}; one ends with its run" in away("paddle", "--action", "status", *args, code=3).stderr


def test_a_master_without_a_record_is_shown_with_the_reason(cloud, s3, ec2, away, master):
    s3.delete_object(Bucket=master["bucket"], Key=f"masters/{RUN}.json")
    found, = json.loads(away("context", "aws", "--output", "json").stdout)
    assert found["url"] is None and "NoSuchKey" in found["why"] and "request id" in found["why"]
    assert not open_to(ec2, master["group"]) and not (away.directory / "home" / "contexts" / f"{RUN}.json").exists()


def test_without_masters_and_without_permission_one_line_says_so(cloud, tmp_path, away):
    assert away("context", "aws").stderr.strip() == "regatta: no master runs on a machine there"
    limited = User(tmp_path, cloud, cloud.user("blind", without("ec2:DescribeInstances")))
    said = limited("context", "aws", code=4).stderr.strip()
    assert len(said.splitlines()) == 1 and "ec2:DescribeInstances" in said and "request id" in said
