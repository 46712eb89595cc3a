"""Things of somebody else in the same account, VPC and bucket, some with names and tags like ours: nobody may touch them."""
import boto3

from . import images

# Tags that look like those of a launcher's own, and are not.
LOOKALIKES = {"Name": "regatta-nightly", "regatta": "yes", "regatta-install": "0000", "Owner": "somebody", "Role": "TRAINER"}


def place(cloud):
    """Make them; {(kind, id): facts} as they are now."""
    before = set(cloud.truth())
    client = boto3.client("ec2", **cloud.client_options(cloud.somebody))
    specs = [{"ResourceType": kind, "Tags": [{"Key": k, "Value": v} for k, v in LOOKALIKES.items()]} for kind in ("instance", "volume", "network-interface")]
    vpc = client.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"][0]
    group = client.create_security_group(GroupName="regatta-somebody", Description="of somebody else", VpcId=vpc["VpcId"],
                                         TagSpecifications=[{**specs[0], "ResourceType": "security-group"}])["GroupId"]
    client.authorize_security_group_ingress(GroupId=group, IpPermissions=[{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22,
                                                                           "UserIdGroupPairs": [{"GroupId": group}]}])
    client.create_subnet(VpcId=vpc["VpcId"], CidrBlock="172.31.128.0/24", TagSpecifications=[{**specs[0], "ResourceType": "subnet"}])
    client.create_placement_group(GroupName="regatta-somebody", Strategy="cluster")
    client.create_volume(AvailabilityZone=f"{cloud.region}a", Size=8, TagSpecifications=[{**specs[0], "ResourceType": "volume"}])
    with cloud.without_machines():
        client.run_instances(ImageId=images.DEFAULT, InstanceType="t3.micro", MinCount=2, MaxCount=2, SecurityGroupIds=[group],
                             TagSpecifications=specs, InstanceInitiatedShutdownBehavior="terminate")
    cloud.settle()
    now = cloud.truth()
    return {key: now[key] for key in now if key not in before}


def place_objects(cloud, bucket, names):
    client = boto3.client("s3", **cloud.client_options(cloud.somebody))
    before = set(cloud.truth())
    for name in names:
        client.put_object(Bucket=bucket, Key=name, Body=b"of somebody else")
    now = cloud.truth()
    return {key: now[key] for key in now if key not in before}
