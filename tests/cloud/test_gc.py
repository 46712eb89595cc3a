"""`regatta gc`: everything that carries our tags is found, also from an empty home, and nothing else is touched."""
import datetime
import json
import signal
import subprocess
import time

import boto3
import pytest
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

from . import images
from .conftest import client, wait_for
from .test_ec2_run import BINARY, STAYS, User, launched
from .test_iam_policy import CLUSTER, printed
from .test_policy import document

ROLE = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}'


def tags(install, run="r1", expires=None):
    found = {"regatta:install": install, "regatta:run": run, "regatta:attempt": "0"}
    if expires is not None:
        found["regatta:expires"] = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=expires)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return [{"Key": k, "Value": v} for k, v in found.items()]


def leave(cloud, install, run="r1", expires=None, region=None):
    """What a run might leave, of every kind, made by somebody's hand."""
    ec2 = boto3.client("ec2", **{**cloud.client_options(), "region_name": region or cloud.region})
    has = tags(install, run, expires)

    def spec(*kinds):
        return [{"ResourceType": kind, "Tags": has} for kind in kinds]

    vpc = ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"][0]["VpcId"]
    zone = ec2.describe_availability_zones()["AvailabilityZones"][0]["ZoneName"]
    taken = {s["CidrBlock"] for s in ec2.describe_subnets()["Subnets"]}
    cidr = next(c for c in (f"172.31.{n}.0/24" for n in range(200, 250)) if c not in taken)
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=zone, TagSpecifications=spec("subnet"))["Subnet"]["SubnetId"]
    name = f"regatta-{install}-{run}-{cidr.split('.')[2]}"
    group = ec2.create_security_group(GroupName=name, Description="d", VpcId=vpc,
                                      TagSpecifications=spec("security-group"))["GroupId"]
    other = ec2.create_security_group(GroupName=f"{name}-m", Description="d", VpcId=vpc,
                                      TagSpecifications=spec("security-group"))["GroupId"]
    for one, two in ((group, other), (other, group)):
        ec2.authorize_security_group_ingress(GroupId=one, IpPermissions=[{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": two}]}])
    ec2.create_placement_group(GroupName=name, Strategy="cluster", TagSpecifications=spec("placement-group"))
    ec2.create_volume(AvailabilityZone=zone, Size=8, TagSpecifications=spec("volume"))
    ec2.create_network_interface(SubnetId=subnet, Groups=[group], TagSpecifications=spec("network-interface"))
    ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData={"InstanceType": "c5.large"},
                               TagSpecifications=spec("launch-template"))
    ec2.run_instances(ImageId=images.DEFAULT, InstanceType="c5.large", MinCount=2, MaxCount=2, SubnetId=subnet, SecurityGroupIds=[group],
                      TagSpecifications=spec("instance", "volume", "network-interface"))


def leave_role(cloud, install):
    iam = client(cloud, "iam")
    name, tag = f"regatta-{install}", [{"Key": "regatta:install", "Value": install}]
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=ROLE, Tags=tag)
    iam.put_role_policy(RoleName=name, PolicyName="master", PolicyDocument=json.dumps(document({"Action": "ec2:Describe*"})))
    iam.create_instance_profile(InstanceProfileName=name, Tags=tag)
    iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)


@pytest.fixture(autouse=True)
def few_regions(monkeypatch):
    """A region costs moto half a second."""
    monkeypatch.setattr(RegionsAndZonesBackend, "regions",
                        [r for r in RegionsAndZonesBackend.regions if r.name in ("us-east-1", "eu-west-1", "ap-south-1")])


def of(cloud, install):
    return {key for key, facts in cloud.left().items() if facts.get("tags", {}).get("regatta:install") == install}


@pytest.fixture
def stranger(tmp_path, cloud):
    """Somebody with the account's credentials and an empty home."""
    cloud.add_decoys()
    made = User(tmp_path, cloud)
    yield made
    assert not (tmp_path / "home" / "regatta.db").exists(), "gc made a home"
    cloud.check_decoys()


@pytest.fixture
def user(tmp_path, cloud):
    cloud.add_decoys()
    made = User(tmp_path, cloud)
    made.listen("0.0.0.0")
    yield made
    made.close()
    cloud.check_decoys()


def collect(user, *args, code=0):
    return json.loads(user("gc", "--output", "json", *args, code=code).stdout)


def test_from_an_empty_home_everything_is_listed_by_install_and_nothing_touched(cloud, stranger):
    leave(cloud, "aaaa")
    leave(cloud, "bbbb")
    leave_role(cloud, "aaaa")
    wait_for(lambda: not any(facts.get("state") == "pending" for facts in cloud.truth().values()), what="instances that run")
    before = cloud.truth()
    said = stranger("gc", code=1)
    for kind in ("instance", "volume", "network_interface", "security_group", "subnet", "placement_group", "launch_template"):
        assert f"ec2.{kind}" in said.stdout
    assert "aaaa" in said.stdout and "bbbb" in said.stdout and "iam.role" in said.stdout and "--install" in said.stderr
    assert cloud.truth() == before


def test_a_home_with_a_master_and_no_runs_lists_other_installs_like_an_empty_one(cloud, user):
    leave(cloud, "aaaa")
    before = of(cloud, "aaaa")
    for args in ((), ("--dry-run",)):
        said = user("gc", *args, code=1)
        assert "aaaa" in said.stdout and "ec2.instance" in said.stdout and "this home has no runs, so nothing was touched" in said.stderr
    assert of(cloud, "aaaa") == before
    own = json.loads(user("run", "--output", "json", "--", "true").stdout.splitlines()[-1])["id"]
    assert own
    said = user("gc", "--dry-run")
    assert "aaaa" not in said.stdout and "of other installs were not touched" in said.stderr


def test_an_install_that_is_named_is_removed_and_no_other(cloud, stranger):
    leave(cloud, "aaaa")
    leave(cloud, "bbbb")
    leave_role(cloud, "aaaa")
    leave_role(cloud, "bbbb")
    others = of(cloud, "bbbb")
    collect(stranger, "--install", "aaaa", "--dry-run", code=1)
    assert len(of(cloud, "aaaa")) > 8
    found = collect(stranger, "--install", "aaaa")
    assert not of(cloud, "aaaa") and of(cloud, "bbbb") == others
    assert found["left"] == 0 and {r["state"] for r in found["resources"] if r["install"] == "aaaa"} == {"removed"}
    assert collect(stranger, "--install", "aaaa")["removed"] == 0
    collect(stranger, "--install", "bbbb")
    assert not of(cloud, "bbbb")


def test_an_empty_account_is_clean(cloud, stranger):
    assert collect(stranger)["resources"] == []
    assert "nothing carries the tags of Regatta" in stranger("gc").stderr


def test_all_regions_are_looked_at_and_a_role_stays_while_another_region_uses_it(cloud, stranger):
    leave(cloud, "aaaa", region="eu-west-1")
    leave(cloud, "aaaa")
    leave_role(cloud, "aaaa")
    found = collect(stranger, "--install", "aaaa")
    kept = {kind for kind, _ in of(cloud, "aaaa")}
    assert {"instance", "role", "instance-profile"} <= kept and found["left"] == 0
    assert "eu-west-1" in next(r["why"] for r in found["resources"] if r["kind"] == "iam.role")
    collect(stranger, "--install", "aaaa", "--region", "eu-west-1")
    assert not of(cloud, "aaaa")
    leave(cloud, "bbbb", region="ap-south-1")
    collect(stranger, "--install", "bbbb", "--all-regions")
    assert not of(cloud, "bbbb")


def test_a_role_goes_only_after_a_look_that_is_newer_than_that_into_other_regions(cloud, stranger):
    leave_role(cloud, "aaaa")
    collect(stranger, "--install", "aaaa")
    assert not of(cloud, "aaaa")
    calls = [(call["action"], call["region"]) for call in cloud.calls]
    removed = calls.index(("DeleteRole", "us-east-1"))
    elsewhere = max(i for i, (_, region) in enumerate(calls) if region != "us-east-1")
    assert elsewhere < removed and ("DescribeInstances", "us-east-1") in calls[elsewhere:removed]


def test_what_a_live_run_has_is_not_touched_and_what_an_ended_one_left_is(cloud, user):
    run = user.submit(more=CLUSTER)
    launched(cloud)
    install = next(iter(cloud.launched().values()))["tags"]["regatta:install"]
    alive = of(cloud, install)
    leave(cloud, install, "r-old")
    leave(cloud, "bbbb")
    others = of(cloud, "bbbb")
    found = collect(user)
    assert of(cloud, install) == alive and of(cloud, "bbbb") == others
    assert {r["state"] for r in found["resources"] if r["run"] == run} == {"in use"}
    assert {r["state"] for r in found["resources"] if r["run"] == "r-old"} == {"removed"}
    user("kill", run)
    user.ends(run)
    assert {kind for kind, _ in cloud.left() if (kind, _) not in others} <= set(STAYS)


def test_past_its_time_it_goes_even_if_its_run_seems_alive(cloud, user):
    run = user.submit()
    launched(cloud)
    install = next(iter(cloud.launched().values()))["tags"]["regatta:install"]
    leave(cloud, install, run, expires=-60)
    leave(cloud, "bbbb", run, expires=-60)
    found = collect(user)
    assert not [r for r in found["resources"] if r["state"] == "left"]
    assert len([r for r in found["resources"] if r["state"] == "removed"]) > 8
    assert of(cloud, "bbbb") and len([i for i in cloud.launched().values() if i["state"] == "running" and i["tags"]["regatta:install"] == install]) == 3
    user("kill", run)
    user.ends(run)


def install_of(user):
    user("ps")
    return json.loads(subprocess.run(["curl", "-s", "--unix-socket", str(user.directory / "home" / "api.sock"), "http://x/api/v1/me"],
                                     capture_output=True, text=True, check=True).stdout)["install"]


def test_a_context_that_does_not_answer_may_have_any_run(cloud, user):
    install = install_of(user)
    leave(cloud, install)
    user("context", "add", "gone", "https://127.0.0.1:1", "--no-check", "--token", "t")
    before = of(cloud, install)
    said = user("gc", code=0)
    assert "context 'gone' does not answer" in said.stderr and of(cloud, install) == before
    user("context", "remove", "gone")
    user("gc")
    assert not cloud.left()


def test_a_master_of_one_run_that_does_not_answer_may_have_only_that_run(cloud, user):
    install = install_of(user)
    leave(cloud, install, "ended-run")
    group = client(cloud, "ec2").create_security_group(GroupName="g", Description="d", TagSpecifications=[
        {"ResourceType": "security-group", "Tags": tags(install, "silent-run")}])["GroupId"]
    user("context", "add", "silent-run", "https://127.0.0.1:1", "--no-check", "--token", "t")
    file = user.directory / "home/contexts/silent-run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "run": "silent-run"}))
    assert "the master of run 'silent-run' does not answer" in user("gc").stderr
    assert of(cloud, install) == {("security-group", group)}


def test_a_delete_that_is_denied_is_a_line_with_its_reason(cloud, stranger):
    leave(cloud, "aaaa")
    cloud.fault("TerminateInstances", denied=True, times=None)
    said = stranger("gc", "--install", "aaaa", code=1)
    assert said.stdout.count("ec2:TerminateInstances") == 2
    assert {"instance", "subnet", "security-group"} <= {kind for kind, _ in of(cloud, "aaaa")}
    cloud.script.clear()
    stranger("gc", "--install", "aaaa")
    assert not cloud.left()


def test_a_look_that_is_denied_is_an_error_and_not_an_empty_list(cloud, stranger):
    leave(cloud, "aaaa")
    cloud.fault("DescribeSubnets", denied=True, times=None)
    said = stranger("gc", "--install", "aaaa", code=4)
    assert "ec2:DescribeSubnets" in said.stderr


@pytest.mark.parametrize("fault", [{"throttle": True, "times": 3}, {"lost": "after"}, {"lost": "before"}, {"server_error": True}])
def test_faults_are_sat_out(cloud, stranger, fault):
    leave(cloud, "aaaa")
    cloud.fault("ec2:*", nth=8, **fault)
    stranger("gc", "--install", "aaaa")
    assert not cloud.left()


def test_what_is_shown_late_is_found_by_the_second_look(cloud, stranger):
    cloud.lag.update({"instance": 1.5, "security-group": 1})
    client(cloud, "ec2").run_instances(ImageId=images.DEFAULT, InstanceType="c5.large", MinCount=1, MaxCount=1,
                                      TagSpecifications=[{"ResourceType": "instance", "Tags": tags("aaaa")}])
    stranger("gc", "--install", "aaaa")
    assert not of(cloud, "aaaa")


def test_ctrl_c_ends_it_and_the_next_one_finishes(cloud, stranger):
    leave(cloud, "aaaa")
    cloud.shutdown_seconds = 30
    running = subprocess.Popen([BINARY, "gc", "--install", "aaaa"], cwd=stranger.directory, env=stranger.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: cloud.named("TerminateInstances"), 30, "a delete")
    began = time.monotonic()
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert running.returncode == 7 and time.monotonic() - began < 10 and "next 'regatta gc'" in err and "left" in out
    cloud.shutdown_seconds = 0.1
    for instance in list(cloud.instances.values()):
        if instance.state == "shutting-down":
            cloud.finish(instance, "Client.UserInitiatedShutdown", "User initiated shutdown")
    stranger("gc", "--install", "aaaa")
    assert not cloud.left()


def test_it_passes_with_the_printed_policy(cloud, tmp_path):
    cloud.add_decoys()
    leave(cloud, "aaaa")
    leave_role(cloud, "aaaa")
    user = User(tmp_path, cloud, cloud.user("limited", printed()))
    user("gc", code=1)
    user("gc", "--install", "aaaa", "--all-regions")
    assert not of(cloud, "aaaa") and not [call for call in cloud.calls if call["status"] == 403]
    cloud.check_decoys()


def test_two_ways_to_name_regions_exclude_each_other(stranger):
    assert "exclude each other" in stranger("gc", "--region", "eu-west-1", "--all-regions", code=2).stderr
