"""What is really there, read from moto's own tables: never through a call, and so never late or lied about."""
from moto.ec2.models import ec2_backends
from moto.iam.models import iam_backends
from moto.s3.models import FakeDeleteMarker, s3_backends

ENDED = ("terminated",)


def tags_of(backend, number):
    return dict(backend.tags.get(number, {}))


def instance_facts(backend, instance):
    return {"tags": tags_of(backend, instance.id), "state": instance.state, "type": instance.instance_type, "zone": instance.placement.zone,
            "subnet": instance.subnet_id, "groups": sorted(g.id for g in instance.security_groups), "private": instance.private_ip_address if instance.nics else None,
            "public": instance.public_ip_address if instance.nics else None, "token": instance.client_token, "index": instance.ami_launch_index,
            "shutdown": instance.instance_initiated_shutdown_behavior, "metadata_tokens": instance.metadata_options.http_tokens,
            "hop_limit": instance.metadata_options.http_put_response_hop_limit, "image": instance.image_id, "lifecycle": instance.lifecycle,
            "monitoring": instance.monitoring_state, "placement_group": instance.placement.group_name, "reservation": getattr(instance, "capacity_reservation", None),
            "profile": (instance.iam_instance_profile or {}).get("Arn")}


def rule_facts(rule):
    return (rule.ip_protocol, rule.from_port, rule.to_port, rule.ip_range.get("CidrIp") or rule.source_group.get("GroupId"))


def is_true(value):
    """moto has some as texts."""
    return str(value).lower() == "true"


def ec2_truth(account, region, backend, rules, ended):
    found = {}

    def put(kind, number, **facts):
        found[(kind, number)] = {"account": account, "region": region, **facts}

    for reservation in list(backend.reservations.values()):
        for instance in reservation.instances:
            if ended or instance.state not in ENDED:
                put("instance", instance.id, **instance_facts(backend, instance))
    for volume in backend.volumes.values():
        put("volume", volume.id, tags=tags_of(backend, volume.id), size=volume.size, attached=bool(volume.attachment))
    for nic in backend.enis.values():
        put("network-interface", nic.id, tags=tags_of(backend, nic.id), subnet=nic.subnet.id, groups=sorted(g.id for g in nic.group_set))
    for groups in backend.groups.values():
        for group in groups.values():
            put("security-group", group.id, tags=tags_of(backend, group.id), name=group.name, is_default=group.name == "default", vpc=group.vpc_id,
                ingress=sorted(map(repr, map(rule_facts, group.ingress_rules))), egress=sorted(map(repr, map(rule_facts, group.egress_rules))))
    for subnets in backend.subnets.values():
        for subnet in subnets.values():
            put("subnet", subnet.id, tags=tags_of(backend, subnet.id), cidr=subnet.cidr_block, vpc=subnet.vpc_id, zone=subnet.availability_zone,
                is_default=is_true(subnet.default_for_az))
    for vpc in backend.vpcs.values():
        put("vpc", vpc.id, tags=tags_of(backend, vpc.id), cidr=vpc.cidr_block, is_default=is_true(vpc.is_default))
    for template in backend.launch_templates.values():
        put("launch-template", template.id, tags=tags_of(backend, template.id), name=template.name)
    for key in backend.key_pairs.values():
        put("key-pair", key.id, tags=tags_of(backend, key.id), name=key.key_name)
    for request in backend.spot_instance_requests.values():
        if request.state in ("open", "active"):
            put("spot-request", request.id, tags=tags_of(backend, request.id))
    for address in backend.addresses:
        put("address", address.allocation_id, tags=tags_of(backend, address.allocation_id))
    for (owner, where, name), group in rules.placement_groups.items():
        if (owner, where) == (account, region):
            put("placement-group", name, tags=dict(group["tags"]), strategy=group["strategy"])
    return found


def s3_truth(account, backend):
    found = {}
    for bucket in backend.buckets.values():
        found[("bucket", bucket.name)] = {"account": account, "region": bucket.region_name, "tags": dict(backend.tagger.get_tag_dict_for_resource(bucket.arn))}
        for name, key in bucket.keys.items():
            if isinstance(key, FakeDeleteMarker):
                continue  # deleted, in a bucket that keeps versions
            found[("object", f"{bucket.name}/{name}")] = {"account": account, "size": key.size, "etag": key.etag, "tags": {}}
        for number, part in bucket.multiparts.items():
            found[("upload", f"{bucket.name}/{part.key_name}#{number}")] = {"account": account, "tags": {}}
    return found


def iam_tags(tags):
    """moto keeps them in two ways."""
    return {tag["Key"]: tag["Value"] for tag in (tags.values() if isinstance(tags, dict) else tags or [])}


def iam_truth(account, backend):
    found = {}
    for role in backend.roles.values():
        found[("role", role.name)] = {"account": account, "tags": iam_tags(role.tags),
                                      "policies": sorted(role.policies), "attached": sorted(role.managed_policies)}
    for profile in backend.instance_profiles.values():
        found[("instance-profile", profile.name)] = {"account": account, "tags": iam_tags(profile.tags),
                                                     "roles": [role.name for role in profile.roles]}
    for policy in backend.managed_policies.values():
        if policy.arn.split(":")[4] == account:
            found[("policy", policy.name)] = {"account": account, "tags": {}}
    for user in backend.users.values():
        found[("user", user.name)] = {"account": account, "tags": {}}
    return found


def read(rules, ended=False):
    """{(kind, id): facts}; ended: terminated instances too."""
    found = {}
    for account, regions in list(ec2_backends.items()):
        for region, backend in list(regions.items()):
            found.update(ec2_truth(account, region, backend, rules, ended))
    for account, partitions in list(s3_backends.items()):
        found.update(s3_truth(account, partitions["aws"]))
    for account, partitions in list(iam_backends.items()):
        found.update(iam_truth(account, partitions["aws"]))
    return found
