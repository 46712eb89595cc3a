"""RunInstances refuses what EC2 refuses, and keeps what EC2 keeps."""
import base64

import pytest

from . import images
from .conftest import refused, wait_for


def launch(ec2, **more):
    return ec2.run_instances(**{"ImageId": images.DEFAULT, "InstanceType": "c5.xlarge", "MinCount": 1, "MaxCount": 1, **more})["Instances"]


def ids(instances):
    return [i["InstanceId"] for i in instances]


def group_of(ec2, name="g"):
    return ec2.create_security_group(GroupName=name, Description="d")["GroupId"]


def tags(kind, **pairs):
    return {"ResourceType": kind, "Tags": [{"Key": k, "Value": v} for k, v in pairs.items()]}


def test_a_token_replayed_gives_the_same_instances_as_they_are_now(cloud, ec2):
    first = launch(ec2, MinCount=2, MaxCount=2, ClientToken="t")
    cloud.settle()
    again = launch(ec2, MinCount=2, MaxCount=2, ClientToken="t")
    assert ids(first) == ids(again) and again[0]["State"]["Name"] == "running"
    ec2.terminate_instances(InstanceIds=ids(first))
    cloud.settle()
    assert launch(ec2, MinCount=2, MaxCount=2, ClientToken="t")[0]["State"]["Name"] == "terminated"
    assert len(cloud.launched()) == 2


def test_a_token_with_other_parameters_is_refused(cloud, ec2):
    launch(ec2, ClientToken="t")
    assert refused(launch, ec2, ClientToken="t", InstanceType="c5.large") == "IdempotentParameterMismatch"
    assert len(cloud.launched()) == 1


@pytest.mark.parametrize("wrong, code", [
    ({"InstanceType": "z9.huge"}, "InvalidParameterValue"),
    ({"InstanceType": "c7g.large"}, "InvalidParameterValue"),
    ({"ImageId": "ami-0123456789abcdef0"}, "InvalidAMIID.NotFound"),
    ({"ImageId": "debian"}, "InvalidAMIID.Malformed"),
    ({"UserData": "x" * 16385}, "InvalidParameterValue"),
    ({"MinCount": 3, "MaxCount": 2}, "InvalidParameterValue"),
    ({"SubnetId": "subnet-0123456789abcdef0"}, "InvalidSubnetID.NotFound"),
    ({"SecurityGroupIds": ["sg-0123456789abcdef0"]}, "InvalidGroup.NotFound"),
    ({"NetworkInterfaces": [{"DeviceIndex": 0, "Groups": ["sg-0123456789abcdef0"]}]}, "InvalidGroup.NotFound"),
    ({"Placement": {"GroupName": "nowhere"}}, "InvalidPlacementGroup.Unknown"),
    ({"IamInstanceProfile": {"Name": "nobody"}}, "InvalidParameterValue"),
    ({"KeyName": "nokey"}, "InvalidKeyPair.NotFound"),
    ({"BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 4}}]}, "InvalidBlockDeviceMapping"),
    ({"TagSpecifications": [tags("instance", **{"aws:x": "1"})]}, "InvalidParameterValue"),
    ({"TagSpecifications": [tags("subnet", x="1")]}, "InvalidParameterValue"),
    ({"DryRun": True}, "DryRunOperation"),
])
def test_a_launch_that_ec2_refuses(cloud, ec2, wrong, code):
    assert refused(launch, ec2, **wrong) == code
    assert not cloud.left()


def test_user_data_up_to_16_kb_is_taken(cloud, ec2):
    number = ids(launch(ec2, UserData="x" * 16384))[0]
    got = ec2.describe_instance_attribute(InstanceId=number, Attribute="userData")["UserData"]["Value"]
    assert base64.b64decode(got) == b"x" * 16384


def test_max_count_is_what_is_given_and_min_count_what_is_enough(cloud, ec2):
    assert len(launch(ec2, MinCount=1, MaxCount=4)) == 4
    cloud.capacity[("c5.xlarge", "*", "any")] = 6
    assert len(launch(ec2, MinCount=1, MaxCount=4)) == 2
    assert refused(launch, ec2) == "InsufficientInstanceCapacity"
    assert len(launch(ec2, InstanceType="c5.large")) == 1


def test_capacity_is_by_zone_and_market(cloud, ec2):
    cloud.capacity[("c5.xlarge", "us-east-1a", "any")] = 0
    cloud.capacity[("c5.xlarge", "*", "spot")] = 1
    assert refused(launch, ec2, Placement={"AvailabilityZone": "us-east-1a"}) == "InsufficientInstanceCapacity"
    assert launch(ec2)[0]["Placement"]["AvailabilityZone"] == "us-east-1b"
    spot = {"InstanceMarketOptions": {"MarketType": "spot"}, "Placement": {"AvailabilityZone": "us-east-1c"}}
    launch(ec2, **spot)
    assert refused(launch, ec2, **spot) == "InsufficientInstanceCapacity"


def test_a_type_that_a_zone_does_not_offer(cloud, ec2):
    cloud.unsupported.add(("c5.xlarge", "us-east-1a"))
    assert refused(launch, ec2, Placement={"AvailabilityZone": "us-east-1a"}) == "Unsupported"


def test_the_quota_counts_vcpus_of_a_family(cloud, ec2):
    cloud.vcpu_quota[("standard", "on-demand")] = 8
    first = launch(ec2, MinCount=2, MaxCount=2)
    assert refused(launch, ec2) == "VcpuLimitExceeded"
    assert len(launch(ec2, InstanceType="p3.2xlarge")) == 1
    ec2.terminate_instances(InstanceIds=ids(first))
    cloud.settle()
    launch(ec2)


def test_addresses_of_a_subnet_run_out(cloud, ec2):
    vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="172.31.200.0/28")["Subnet"]["SubnetId"]
    assert refused(launch, ec2, SubnetId=subnet, MinCount=12, MaxCount=12) == "InsufficientFreeAddressesInSubnet"
    assert len(launch(ec2, SubnetId=subnet, MinCount=11, MaxCount=11)) == 11


def test_groups_given_through_the_interface_are_the_instances(cloud, ec2):
    group = group_of(ec2)
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    made = launch(ec2, NetworkInterfaces=[{"DeviceIndex": 0, "SubnetId": subnet, "Groups": [group], "AssociatePublicIpAddress": True}])[0]
    seen = ec2.describe_instances(InstanceIds=[made["InstanceId"]])["Reservations"][0]["Instances"][0]
    assert [g["GroupId"] for g in seen["SecurityGroups"]] == [group] == [g["GroupId"] for g in seen["NetworkInterfaces"][0]["Groups"]]
    assert seen["PublicIpAddress"]


def test_tags_reach_instance_volume_and_interface_and_all_go_with_it(cloud, ec2):
    made = launch(ec2, MinCount=2, MaxCount=2, TagSpecifications=[tags(k, run="r") for k in ("instance", "volume", "network-interface")])
    assert sorted(kind for kind, _ in cloud.left()) == ["instance"] * 2 + ["network-interface"] * 2 + ["volume"] * 2
    assert all(facts["tags"] == {"run": "r"} for facts in cloud.left().values())
    ec2.terminate_instances(InstanceIds=ids(made))
    cloud.settle()
    assert not cloud.left()


def test_a_data_volume_stays_unless_it_is_said_to_go(cloud, ec2):
    made = launch(ec2, BlockDeviceMappings=[{"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 9}}])
    ec2.terminate_instances(InstanceIds=ids(made))
    cloud.settle()
    assert [facts["size"] for facts in cloud.left().values()] == [9]


def test_termination_has_a_phase_in_which_everything_is_still_there(cloud, ec2):
    cloud.shutdown_seconds = 3
    group = group_of(ec2)
    made = launch(ec2, SecurityGroupIds=[group])
    cloud.settle()
    change = ec2.terminate_instances(InstanceIds=ids(made))["TerminatingInstances"][0]
    assert (change["PreviousState"]["Name"], change["CurrentState"]["Name"]) == ("running", "shutting-down")
    assert refused(ec2.delete_security_group, GroupId=group) == "DependencyViolation"
    cloud.settle()
    again = ec2.terminate_instances(InstanceIds=ids(made))["TerminatingInstances"][0]
    assert again["CurrentState"]["Name"] == "terminated"
    ec2.delete_security_group(GroupId=group)


def test_one_wrong_id_terminates_none(cloud, ec2):
    made = launch(ec2)
    assert refused(ec2.terminate_instances, InstanceIds=[*ids(made), "i-0123456789abcdef0"]) == "InvalidInstanceID.NotFound"
    cloud.settle()
    assert cloud.launched()[ids(made)[0]]["state"] == "running"


def test_termination_protection_at_launch_holds(cloud, ec2):
    made = launch(ec2, DisableApiTermination=True)
    assert refused(ec2.terminate_instances, InstanceIds=ids(made)) == "OperationNotPermitted"


def test_a_group_or_subnet_in_use_stays(cloud, ec2):
    vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="172.31.201.0/28")["Subnet"]["SubnetId"]
    one, two = group_of(ec2, "one"), group_of(ec2, "two")
    made = launch(ec2, SubnetId=subnet, SecurityGroupIds=[one])
    assert refused(ec2.delete_subnet, SubnetId=subnet) == "DependencyViolation"
    assert refused(ec2.delete_security_group, GroupId=one) == "DependencyViolation"
    pair = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": two}]}]
    ec2.authorize_security_group_ingress(GroupId=one, IpPermissions=pair)
    assert refused(ec2.delete_security_group, GroupId=two) == "DependencyViolation"
    ec2.revoke_security_group_ingress(GroupId=one, IpPermissions=pair)
    ec2.delete_security_group(GroupId=two)
    cloud.rules.linger = 1000
    ec2.terminate_instances(InstanceIds=ids(made))
    cloud.settle()
    assert refused(ec2.delete_subnet, SubnetId=subnet) == "DependencyViolation"
    cloud.rules.linger = 0
    ec2.delete_subnet(SubnetId=subnet)
    ec2.delete_security_group(GroupId=one)
    assert not cloud.left()


def test_placement_groups(cloud, ec2):
    ec2.create_placement_group(GroupName="pg", Strategy="cluster", TagSpecifications=[tags("placement-group", run="r")])
    assert refused(ec2.create_placement_group, GroupName="pg", Strategy="cluster") == "InvalidPlacementGroup.Duplicate"
    assert refused(launch, ec2, InstanceType="t3.micro", Placement={"GroupName": "pg"}) == "InvalidParameterCombination"
    made = launch(ec2, Placement={"GroupName": "pg"})
    assert made[0]["Placement"]["GroupName"] == "pg"
    found = ec2.describe_placement_groups(Filters=[{"Name": "tag:run", "Values": ["r"]}])["PlacementGroups"]
    assert [(g["GroupName"], g["State"], g["Tags"]) for g in found] == [("pg", "available", [{"Key": "run", "Value": "r"}])]
    assert refused(ec2.delete_placement_group, GroupName="pg") == "InvalidPlacementGroup.InUse"
    ec2.terminate_instances(InstanceIds=ids(made))
    cloud.settle()
    ec2.delete_placement_group(GroupName="pg")
    assert not cloud.left()


def test_spot_has_a_request_and_an_end(cloud, ec2):
    made = launch(ec2, InstanceMarketOptions={"MarketType": "spot"}, TagSpecifications=[tags("spot-instances-request", run="r")])[0]
    assert made["InstanceLifecycle"] == "spot"
    request = ec2.describe_spot_instance_requests(SpotInstanceRequestIds=[made["SpotInstanceRequestId"]])["SpotInstanceRequests"][0]
    assert (request["State"], request["InstanceId"], request["Tags"][0]["Value"]) == ("active", made["InstanceId"], "r")
    cloud.interrupt_spot(made["InstanceId"], seconds=0.1)
    wait_for(lambda: cloud.launched()[made["InstanceId"]]["state"] == "terminated", 30, "the end")
    seen = ec2.describe_instances(InstanceIds=[made["InstanceId"]])["Reservations"][0]["Instances"][0]
    assert seen["StateReason"]["Code"] == "Server.SpotInstanceTermination" and not cloud.left()


def test_filters_that_moto_lacks(cloud, ec2):
    one = ids(launch(ec2, ClientToken="a"))
    launch(ec2, ClientToken="b", InstanceMarketOptions={"MarketType": "spot"})

    def found(name, value):
        return [i["InstanceId"] for r in ec2.describe_instances(Filters=[{"Name": name, "Values": [value]}])["Reservations"] for i in r["Instances"]]
    assert found("client-token", "a") == one and len(found("instance-lifecycle", "spot")) == 1
    assert not found("client-token", "c")


def test_what_is_new_is_not_seen_at_once(cloud, ec2):
    cloud.lag.update({"instance": 1000, "security-group": 1000})
    group = group_of(ec2)
    assert refused(launch, ec2, SecurityGroupIds=[group]) == "InvalidGroup.NotFound"
    assert refused(ec2.describe_security_groups, GroupIds=[group]) == "InvalidGroup.NotFound"
    made = ids(launch(ec2))
    assert not ec2.describe_instances()["Reservations"]
    assert refused(ec2.describe_instances, InstanceIds=made) == "InvalidInstanceID.NotFound"
    assert ("instance", made[0]) in cloud.truth() and ("security-group", group) in cloud.truth()
    cloud.lag.clear()
    assert ec2.describe_instances(InstanceIds=made)["Reservations"] and ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]


def test_a_template_says_what_the_request_does_not(cloud, ec2):
    data = {"ImageId": images.DEFAULT, "InstanceType": "c5.large", "InstanceInitiatedShutdownBehavior": "terminate",
            "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}, "UserData": base64.b64encode(b"#!/bin/sh\n").decode()}
    made = ec2.create_launch_template(LaunchTemplateName="lt", LaunchTemplateData=data, ClientToken="t")["LaunchTemplate"]["LaunchTemplateId"]
    again = ec2.create_launch_template(LaunchTemplateName="lt", LaunchTemplateData=data, ClientToken="t")["LaunchTemplate"]["LaunchTemplateId"]
    assert made == again
    other = {**data, "InstanceType": "c5.xlarge"}
    assert refused(ec2.create_launch_template, LaunchTemplateName="lt", LaunchTemplateData=other, ClientToken="t") == "IdempotentParameterMismatch"
    one = ec2.run_instances(LaunchTemplate={"LaunchTemplateId": made}, MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"]
    facts = cloud.launched()[one]
    assert (facts["type"], facts["shutdown"], facts["metadata_tokens"], facts["hop_limit"]) == ("c5.large", "terminate", "required", 1)


def test_describe_comes_in_pages(cloud, ec2):
    made = ids(launch(ec2, MinCount=7, MaxCount=7))
    for n in range(4):
        group_of(ec2, f"g{n}")

    def pages(name, key, **kw):
        return [page[key] for page in ec2.get_paginator(name).paginate(**kw)]
    assert [len(page) for page in pages("describe_instances", "Reservations", PaginationConfig={"PageSize": 5})] == [5, 2]
    cloud.page_size = 3
    found = pages("describe_instances", "Reservations")
    assert [len(page) for page in found] == [3, 3, 1]
    assert [i["InstanceId"] for page in found for r in page for i in r["Instances"]] == made
    assert [len(page) for page in pages("describe_security_groups", "SecurityGroups")] == [3, 2]
    assert len(ec2.describe_instances()["Reservations"]) == 3


def test_an_account_without_a_default_vpc(cloud, ec2):
    cloud.remove_default_vpc()
    assert not ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"]
    assert refused(launch, ec2) == "VPCIdNotSpecified"


def test_tags_may_vanish_with_an_instance(cloud, ec2):
    cloud.tags_vanish = True
    made = ids(launch(ec2, TagSpecifications=[tags("instance", run="r")]))
    ec2.terminate_instances(InstanceIds=made)
    cloud.settle()
    assert not ec2.describe_instances(Filters=[{"Name": "tag:run", "Values": ["r"]}])["Reservations"]
    assert ec2.describe_instances(InstanceIds=made)["Reservations"][0]["Instances"][0]["State"]["Name"] == "terminated"
