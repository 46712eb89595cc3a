"""moto's EC2 made strict: what it accepts and EC2 refuses, what it forgets and EC2 keeps.

The rules are put into moto's own classes once (install); they act for the cloud that is running (Rules.now).
"""
import base64
import copy
import functools
import hashlib
import re
import time

import moto.ec2.models.elastic_network_interfaces as moto_interfaces
import moto.ec2.utils as moto_utils
from moto.core.parse import default_timestamp_parser
from moto.core.responses import ActionResult
from moto.core.types import Base64EncodedString
from moto.core.utils import utcnow
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import ec2_backends
from moto.ec2.models.amis import Ami, AmiBackend
from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.models.instances import Instance, InstanceBackend, InstanceState, StateReason
from moto.ec2.models.security_groups import SecurityGroupBackend
from moto.ec2.models.spot_requests import LaunchSpecification, SpotInstanceRequest
from moto.ec2.models.subnets import SubnetBackend
from moto.ec2.responses import EC2Response
from moto.ec2.responses._base_response import EC2BaseResponse
from moto.ec2.responses.instances import InstanceResponse

from . import images, meter, network

USER_DATA_BYTES = 16384
CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}
TAGGED_AT_LAUNCH = ("instance", "volume", "network-interface", "spot-instances-request")
FAMILIES = (("standard", "acdhimrtz"), ("g", "g"), ("vt", "v"), ("p", "p"), ("inf", ""), ("trn", ""))
CLUSTER_REFUSES = ("t1", "t2", "t3", "t3a", "t4g", "m1", "m2", "m3", "a1", "mac1", "mac2")


def refuse(code, message):
    raise EC2ClientError(code, message)


def family(instance_type):
    """The quota that a type counts against."""
    for name in ("inf", "trn", "vt"):
        if instance_type.startswith(name):
            return name
    return next((name for name, letters in FAMILIES if instance_type[0] in letters), "standard")


def vcpus(instance_type):
    if instance_type in INSTANCE_TYPES:
        return INSTANCE_TYPES[instance_type]["VCpuInfo"]["DefaultVCpus"]
    return meter.read_vcpus()[instance_type]


class Rules:
    """State that moto has no place for, of one cloud."""

    now = None  # of the cloud that is running

    def __init__(self, cloud):
        self.cloud = cloud
        self.tokens, self.born, self.placement_groups, self.launches = {}, {}, {}, {}
        self.linger = 0.0  # how long groups and subnets stay in use after their last instance has ended
        self.gone_at = {}  # group or subnet -> when its last interface went

    # ---- visibility ----

    def note_birth(self, kind, number):
        self.born[number] = (kind, time.monotonic())

    def is_hidden(self, number):
        """Made too recently for others to see it."""
        if not self.cloud.is_client_call():
            return False
        kind, at = self.born.get(number, (None, 0))
        return kind is not None and time.monotonic() < at + self.cloud.lag.get(kind, 0)

    # ---- launching ----

    def room(self, instance_type, zone, spot):
        """How many more of a type a zone has; None: no limit."""
        rooms = []
        for (kind, where, market), most in self.cloud.capacity.items():
            if kind in (instance_type, "*") and where in (zone, "*") and market in ("any", "spot" if spot else "on-demand"):
                there = [i for i in self.alive() if kind in (i.instance_type, "*") and where in (i.placement.zone, "*")
                         and (market == "any" or (i.lifecycle == "spot") == spot)]
                rooms.append(max(0, most - len(there)))
        return min(rooms) if rooms else None

    @staticmethod
    def alive(account=None):
        for number, regions in list(ec2_backends.items()):
            if account in (None, number):
                for backend in list(regions.values()):
                    for reservation in list(backend.reservations.values()):
                        yield from (i for i in reservation.instances if i.state not in ("terminated", "stopped"))

    def check_quota(self, backend, instance_type, count, spot):
        limit = self.cloud.vcpu_quota.get((family(instance_type), "spot" if spot else "on-demand"))
        if limit is None:
            return
        used = sum(vcpus(i.instance_type) for i in self.alive(backend.account_id)
                   if i.ec2_backend is backend and family(i.instance_type) == family(instance_type) and (i.lifecycle == "spot") == spot)
        if used + count * vcpus(instance_type) > limit:
            if spot:
                refuse("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
            refuse("VcpuLimitExceeded", f"You have requested more vCPU capacity than your current vCPU limit of {limit} allows for the "
                                        "instance bucket that the specified instance type belongs to.")

    def set_state(self, instance, name):
        instance._state = InstanceState(name, CODES[name])
        self.cloud.note_state(instance, name)


def rules():
    return Rules.now


def is_hidden(number):
    return bool(rules()) and rules().is_hidden(number)


# ---- RunInstances ----

def fingerprint(response):
    items = sorted((k, v) for k, v in response.querystring.items() if k not in ("ClientToken", "Action", "Version") and not k.startswith("X-Amz"))
    return hashlib.sha256(repr(items).encode()).hexdigest()


TEMPLATE_KEYS = ("ImageId", "InstanceType", "UserData", "SecurityGroupIds", "NetworkInterfaces", "BlockDeviceMappings", "MetadataOptions",
                 "IamInstanceProfile", "Monitoring", "InstanceInitiatedShutdownBehavior", "Placement", "KeyName", "InstanceMarketOptions",
                 "DisableApiTermination", "TagSpecifications")


def use_template(response, backend):
    """What the request does not say, its launch template does; moto takes only some of it from there."""
    named = response._get_param("LaunchTemplate")
    if not named:
        return
    data = backend._get_template_from_args(named).data
    for key in TEMPLATE_KEYS:
        if key in data and not response.params.get(key):
            response.params[key] = str(data[key]) if key == "UserData" else copy.deepcopy(data[key])


def check_key(response, backend):
    name = response._get_param("KeyName")
    if name and name not in backend.key_pairs:
        refuse("InvalidKeyPair.NotFound", f"The key pair '{name}' does not exist")


def check_image(response, backend):
    number = response._get_param("ImageId")
    if not number:
        if response._get_param("LaunchTemplate"):
            return None
        refuse("MissingParameter", "The request must contain the parameter ImageId")
    if not re.fullmatch("ami-[0-9a-f]{8,17}", number):
        refuse("InvalidAMIID.Malformed", f'Invalid id: "{number}" (expecting "ami-...")')
    if number not in backend.amis:
        refuse("InvalidAMIID.NotFound", f"The image id '[{number}]' does not exist")
    return backend.amis[number]


def check_type(response, image):
    name = response._get_param("InstanceType")
    if name is None:
        name = "m1.small"
    if name not in INSTANCE_TYPES and name not in meter.read_vcpus():
        refuse("InvalidParameterValue", f"Invalid value '{name}' for InstanceType.")
    architectures = INSTANCE_TYPES.get(name, {}).get("ProcessorInfo", {}).get("SupportedArchitectures", [])
    if image and architectures and image.architecture not in architectures:
        refuse("InvalidParameterValue", f"The architecture '{image.architecture}' of the specified AMI does not match the architecture "
                                        f"'{architectures[0]}' of the specified instance type.")
    return name


def check_counts(response):
    least, most = response._get_param("MinCount"), response._get_param("MaxCount")
    if least is None or most is None:
        refuse("MissingParameter", f"The request must contain the parameter {'MinCount' if least is None else 'MaxCount'}")
    if not 1 <= int(least) <= int(most):
        refuse("InvalidParameterValue", f"Value ({least}) for parameter minCount is invalid: it must be from 1 to maxCount ({most})")
    return int(least), int(most)


def check_user_data(response):
    text = response._get_param("UserData")
    if text is None:
        return
    data = moto_utils.parse_user_data(text)
    if len(base64.b64decode(str(data))) > USER_DATA_BYTES:
        refuse("InvalidParameterValue", f"User data is limited to {USER_DATA_BYTES} bytes")


def interfaces_of(response):
    return response._get_param("NetworkInterfaces", []) or []


def check_network(response, backend):
    """(subnet or None, groups asked for)"""
    nics = interfaces_of(response)
    names = [number for nic in nics for number in nic.get("Groups") or []] or response._get_param("SecurityGroupIds", [])
    if nics and response._get_param("SecurityGroupIds", []):
        refuse("InvalidParameterCombination", "Network interfaces and an instance-level security groups may not be specified on the same request")
    subnet_id = next((nic["SubnetId"] for nic in nics if nic.get("SubnetId")), None) or response._get_param("SubnetId")
    subnet = backend.get_subnet(subnet_id) if subnet_id else None
    if subnet and is_hidden(subnet.id):
        refuse("InvalidSubnetID.NotFound", f"The subnet ID '{subnet.id}' does not exist")
    groups = []
    for number in names:
        group = backend.get_security_group_from_id(number)
        if not group or is_hidden(number):
            refuse("InvalidGroup.NotFound", f"The security group '{number}' does not exist")
        if subnet and group.vpc_id != subnet.vpc_id:
            refuse("InvalidParameter", f"Security group {number} and subnet {subnet.id} belong to different networks.")
        groups.append(group)
    if not subnet and not backend.get_default_vpc():
        refuse("VPCIdNotSpecified", "No default VPC for this user")
    return subnet, groups


def check_tags(response):
    for spec in response._get_param("TagSpecifications", []) or []:
        if spec.get("ResourceType") not in TAGGED_AT_LAUNCH:
            refuse("InvalidParameterValue", f"'{spec.get('ResourceType')}' is not a valid taggable resource type for this operation.")
        for tag in spec.get("Tags", []):
            if tag.get("Key", "").startswith("aws:"):
                refuse("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")


def check_placement(response, backend, instance_type):
    name = response._get_param("Placement.GroupName")
    if not name:
        return ""
    group = rules().placement_groups.get((backend.account_id, backend.region_name, name))
    if not group:
        refuse("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    if group["strategy"] == "cluster" and instance_type.split(".")[0] in CLUSTER_REFUSES:
        refuse("InvalidParameterCombination", f"The instance type '{instance_type}' is not supported with the Placement Group strategy 'cluster'.")
    return name


def check_profile(response, backend):
    from moto.iam.models import iam_backends
    name = response._get_param("IamInstanceProfile.Name") or (response._get_param("IamInstanceProfile.Arn") or "").rpartition("/")[2]
    if not name:
        return None
    found = [p for p in iam_backends[backend.account_id]["aws"].instance_profiles.values() if p.name == name]
    if not found or is_hidden(f"instance-profile/{name}"):
        refuse("InvalidParameterValue", f"Value ({name}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name")
    return found[0]


def set_root_volume(response, image):
    """The root volume is the image's unless the request says more; EBS deletes it with the instance by default."""
    if not image:
        return
    known = images.BY_ID.get(image.id)
    device, size = image.root_device_name, known.size_gb if known else 8
    mappings = response.params.setdefault("BlockDeviceMappings", [])
    root = next((m for m in mappings if m.get("DeviceName") == device), None)
    if not root:
        root = {"DeviceName": device, "Ebs": {}}
        mappings.insert(0, root)
    ebs = root.setdefault("Ebs", {})
    ebs.setdefault("VolumeSize", size)
    ebs.setdefault("DeleteOnTermination", True)
    if int(ebs["VolumeSize"]) < size:
        refuse("InvalidBlockDeviceMapping", f"Volume of size {ebs['VolumeSize']}GB is smaller than snapshot '{image.ebs_snapshot.id}', "
                                            f"expect size >= {size}GB")


def free_addresses(backend, subnet, least):
    """How many a subnet has left; five of it are EC2's own."""
    if not subnet:
        return 1 << 30
    free = subnet.cidr.num_addresses - 5 - sum(1 for nic in backend.enis.values() if nic.subnet is subnet)
    if free < least:
        refuse("InsufficientFreeAddressesInSubnet", f"There are not enough free addresses in subnet '{subnet.id}' to satisfy the requested number of instances.")
    return free


def choose_zone(response, backend, subnet, instance_type, least, most, spot):
    """(zone, count): where there is room."""
    asked = subnet.availability_zone if subnet else response._get_param("Placement.AvailabilityZone")
    zones = [asked] if asked else sorted(s.availability_zone for s in backend.get_default_subnets().values())
    offered = [z for z in zones if (instance_type, z) not in rules().cloud.unsupported]
    if not offered:
        refuse("Unsupported", f"Your requested instance type ({instance_type}) is not supported in your requested Availability Zone ({zones[0]}).")
    for zone in offered:
        room = rules().room(instance_type, zone, spot)
        if room is None or room >= least:
            return zone, most if room is None else min(most, room)
    where = f"in the Availability Zone you requested ({offered[0]})" if asked else "in any zone"
    refuse("InsufficientInstanceCapacity", f"We currently do not have sufficient {instance_type} capacity {where}.")


def check_reservation(response, instance_type, zone, least):
    """The capacity reservation that the instances come from, or None."""
    number = response._get_param("CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId")
    if not number:
        return None
    found = rules().cloud.reservations.get(number)
    if not found:
        refuse("InvalidCapacityReservationId.NotFound", f"The capacity reservation ID '{number}' does not exist")
    used = sum(1 for i in rules().alive() if getattr(i, "capacity_reservation", None) == number)
    if (found["type"], found["zone"]) != (instance_type, zone) or used + least > found["count"]:
        refuse("ReservationCapacityExceeded", "The requested reservation does not have sufficient compatible and available capacity for this request.")
    return number


def use_default_subnet(response, backend, zone):
    """Where a launch goes that names no subnet; moto would give it an address of nowhere."""
    number = backend.get_default_subnets()[zone].id
    nics = interfaces_of(response)
    if nics:
        nics[0]["SubnetId"] = number
    else:
        response.params["SubnetId"] = number


def make_spot_request(backend, response, instance):
    request = SpotInstanceRequest.__new__(SpotInstanceRequest)
    request.ec2_backend, request.id = backend, f"sir-{instance.id[2:10]}"
    request.launch_specification = LaunchSpecification(None, None, instance.image_id, None, instance.instance_type, instance.placement.zone,
                                                       False, instance.subnet_id)
    request.state, request._status_code, request.status_message = "active", "fulfilled", ""
    request.price = response._get_param("InstanceMarketOptions.SpotOptions.MaxPrice") or ""
    request.type, request.valid_from, request.valid_until, request.launch_group = "one-time", None, None, None
    request.availability_zone_group, request.instance_interruption_behaviour = None, "terminate"
    request.user_data, request.spot_fleet_id, request.launch_spec, request.instance = None, None, None, instance
    tags = next((s for s in response._get_param("TagSpecifications", []) or [] if s["ResourceType"] == "spot-instances-request"), {})
    backend.spot_instance_requests[request.id] = request
    request.add_tags({t["Key"]: t["Value"] for t in tags.get("Tags", [])})
    instance.lifecycle, instance.spot_instance_request_id = "spot", request.id
    return request


def finish_instance(response, backend, instance, index, groups, profile, group_name, token, spot):
    """What moto drops of a launch."""
    instance.ami_launch_index = index
    instance.client_token = token or ""
    instance.disable_api_termination = response._get_param("DisableApiTermination") is True
    instance._placement.group_name = group_name
    specs = {s["ResourceType"]: s for s in response._get_param("TagSpecifications", []) or []}
    asked = {int(nic.get("DeviceIndex", 0)): nic for nic in interfaces_of(response)}
    for place, nic in instance.nics.items():
        nic.mac_address = network.mac_of(nic.private_ip_address)
        nic.delete_on_termination = asked.get(place, {}).get("DeleteOnTermination", True) is not False
        nic.add_tags({t["Key"]: t["Value"] for t in specs.get("network-interface", {}).get("Tags", [])})
    instance.security_groups = list(groups) or list(instance.nics[0].group_set)
    if profile and instance.id not in backend.iam_instance_profile_associations:
        backend.associate_iam_instance_profile(instance_id=instance.id, iam_instance_profile_name=profile.name)
    if spot:
        make_spot_request(backend, response, instance)


def remember(backend, instance):
    note = rules().note_birth
    note("instance", instance.id)
    for nic in instance.nics.values():
        note("network-interface", nic.id)
    for _, device in instance.get_block_device_mapping:
        note("volume", device.volume_id)


def strict_run_instances(original):
    @functools.wraps(original)
    def run_instances(self):
        backend, token = self.ec2_backend, self._get_param("ClientToken")
        key, mark = (backend.account_id, backend.region_name, token), fingerprint(self)
        use_template(self, backend)
        if token and key in rules().tokens:
            before, reservation = rules().tokens[key]
            if before != mark:
                refuse("IdempotentParameterMismatch", "Arguments on this idempotent request are inconsistent with arguments used in previous request(s).")
            return ActionResult(copy.copy(reservation))
        image = check_image(self, backend)
        instance_type = check_type(self, image)
        least, most = check_counts(self)
        check_user_data(self)
        check_tags(self)
        check_key(self, backend)
        subnet, groups = check_network(self, backend)
        group_name = check_placement(self, backend, instance_type)
        profile = check_profile(self, backend)
        spot = self._get_param("InstanceMarketOptions.MarketType") == "spot"
        zone, count = choose_zone(self, backend, subnet, instance_type, least, most, spot)
        reserved = check_reservation(self, instance_type, zone, least)
        rules().check_quota(backend, instance_type, least, spot)
        count = min(count, free_addresses(backend, subnet, least))
        set_root_volume(self, image)
        self.params["MinCount"] = count
        if not subnet:
            use_default_subnet(self, backend, zone)
        original(self)
        reservation = list(backend.reservations.values())[-1]
        for index, instance in enumerate(reservation.instances):
            finish_instance(self, backend, instance, index, groups, profile, group_name, token, spot)
            instance.capacity_reservation = reserved
            remember(backend, instance)
            rules().set_state(instance, "pending")
        if token:
            rules().tokens[key] = (mark, reservation)
        for instance in reservation.instances:
            rules().cloud.launch(instance)
        return ActionResult(copy.copy(reservation))
    return run_instances


# ---- states ----

def strict_terminate_instances(original):
    @functools.wraps(original)
    def terminate_instances(self, instance_ids):
        if not instance_ids:
            return original(self, instance_ids)
        wanted = self.get_multi_instances_by_id(instance_ids)
        for instance in wanted:
            if instance.disable_api_termination is True:
                refuse("OperationNotPermitted", f"The instance '{instance.id}' may not be terminated. Modify its 'disableApiTermination' "
                                                "instance attribute and try again.")
        done = []
        for instance in wanted:
            before = copy.copy(instance._state)
            rules().cloud.end(instance, "Client.UserInitiatedShutdown", "User initiated shutdown")
            done.append((instance, before))
        return done
    return terminate_instances


def strict_terminate_answer(original):
    """moto says shutting-down whatever the state is."""
    @functools.wraps(original)
    def terminate_instances(self):
        result = original(self).result
        for item in result["TerminatingInstances"]:
            instance = self.ec2_backend.get_instance_by_id(item["InstanceId"])
            item["CurrentState"] = {"Code": instance.state_code, "Name": instance.state}
        return ActionResult(result)
    return terminate_instances


def strict_stop_instances(original):
    @functools.wraps(original)
    def stop_instances(self, instance_ids):
        done = original(self, instance_ids)
        for instance, _ in done:
            rules().cloud.halt(instance)
        return done
    return stop_instances


def strict_start_instances(original):
    @functools.wraps(original)
    def start_instances(self, instance_ids):
        done = original(self, instance_ids)
        for instance, before in done:
            if before.name == "stopped":
                rules().set_state(instance, "pending")
                rules().cloud.launch(instance)
        return done
    return start_instances


def finish_termination(instance, code, text):
    """The machine is gone: volumes, interfaces and the spot request go with it."""
    Instance.terminate(instance)
    instance.state_reason = StateReason(f"{code}: {text}", code)
    for request in instance.ec2_backend.spot_instance_requests.values():
        if request.instance is instance:
            request.state, request._status_code = "closed", "instance-terminated-by-user"
    at = time.monotonic()
    for name in [group.id for group in instance.security_groups] + [instance.subnet_id]:
        rules().gone_at[name] = at
    rules().set_state(instance, "terminated")
    if rules().cloud.tags_vanish:
        instance.ec2_backend.tags.pop(instance.id, None)


def fast_private_address(self):
    return self.nics[0].private_ip_address if self.nics else None


# ---- what is in use stays ----

def users_of_group(backend, group):
    for nic in backend.enis.values():
        if group in nic.group_set:
            return nic.id
    for others in backend.groups.values():
        for other in others.values():
            if other is not group and any(rule.source_group.get("GroupId") == group.id for rule in other.ingress_rules + other.egress_rules):
                return other.id
    return None


def lingers(number):
    return time.monotonic() < rules().gone_at.get(number, -1e9) + rules().linger


def strict_delete_group(original):
    @functools.wraps(original)
    def delete(self, vpc_id, group_id):
        group = self.get_security_group_from_id(group_id)
        if is_hidden(group_id):
            refuse("InvalidGroup.NotFound", f"The security group '{group_id}' does not exist")
        if group.name == "default":
            refuse("CannotDelete", "the specified group: \"%s\" name: \"default\" cannot be deleted by a user" % group_id)
        if users_of_group(self, group) or lingers(group_id):
            refuse("DependencyViolation", f"resource {group_id} has a dependent object")
        original(self, vpc_id, group_id)
        self.tags.pop(group_id, None)
    return delete


def moving_groups(original):
    """The groups of an instance are those of its first interface."""
    @functools.wraps(original)
    def modify(self, eni_id, group_ids, *args, **kw):
        original(self, eni_id, group_ids, *args, **kw)
        nic = self.get_network_interface(eni_id)
        if group_ids and nic.instance and str(nic.device_index) == "0":
            nic.instance.security_groups = list(nic._group_set)
    return modify


def strict_delete_subnet(original):
    @functools.wraps(original)
    def delete(self, subnet_id):
        if any(nic.subnet.id == subnet_id for nic in self.enis.values()) or lingers(subnet_id):
            refuse("DependencyViolation", f"The subnet '{subnet_id}' has dependencies and cannot be deleted.")
        gone = original(self, subnet_id)
        self.tags.pop(subnet_id, None)
        return gone
    return delete


# ---- visibility ----

def hiding_reservations(original):
    @functools.wraps(original)
    def all_reservations(self, filters=None):
        found = original(self, filters)
        for reservation in found:
            reservation.instances = [i for i in reservation.instances if not is_hidden(i.id)]
        return [r for r in found if r.instances]
    return all_reservations


def hiding(original):
    """For methods that return a list of things with an id.  A lag in them looks like an empty list, also for an id."""
    @functools.wraps(original)
    def describe(self, *args, **kw):
        return [thing for thing in original(self, *args, **kw) if not is_hidden(thing.id)]
    return describe


def hiding_groups(original):
    @functools.wraps(original)
    def describe(self, group_ids=None, groupnames=None, filters=None):
        for number in group_ids or []:
            if is_hidden(number):
                refuse("InvalidGroup.NotFound", f"The security group '{number}' does not exist")
        return [group for group in original(self, group_ids, groupnames, filters) if not is_hidden(group.id)]
    return describe


def noting_birth(kind):
    def wrap(original):
        @functools.wraps(original)
        def create(self, *args, **kw):
            thing = original(self, *args, **kw)
            if rules():
                rules().note_birth(kind, thing.id)
            return thing
        return create
    return wrap


def fast_tags(self):
    return [{"resource_id": self.id, "key": key, "value": value, "resource_type": moto_utils.EC2_PREFIX_TO_RESOURCE.get(moto_utils.get_prefix(self.id), "")}
            for key, value in self.ec2_backend.tags.get(self.id, {}).items()]


def console_output(self):
    instance = self.ec2_backend.get_instance(self._get_param("InstanceId"))
    text = rules().cloud.console(instance.id)
    result = {"InstanceId": instance.id, "Timestamp": utcnow()}
    if text:
        result["Output"] = Base64EncodedString.from_raw_string(text[-65536:])
    return ActionResult(result)


def load_images(self):
    for image in images.IMAGES:
        facts = image.for_moto()
        self.amis[image.id] = Ami(self, **{**facts, "creation_date": default_timestamp_parser(facts["creation_date"])})


def with_size(moto_mappings):
    def mappings(self):
        found = moto_mappings.fget(self)
        if self.id in images.BY_ID:
            found[0]["Ebs"]["VolumeSize"] = images.BY_ID[self.id].size_gb
        return found
    return property(mappings)


def wrap(where, name, wrapper):
    setattr(where, name, wrapper(getattr(where, name)))


def install():
    if getattr(Instance, "is_strict", False):
        return
    Instance.is_strict = True
    wrap(InstanceResponse, "run_instances", strict_run_instances)
    wrap(InstanceResponse, "terminate_instances", strict_terminate_answer)
    wrap(InstanceBackend, "terminate_instances", strict_terminate_instances)
    wrap(InstanceBackend, "stop_instances", strict_stop_instances)
    wrap(InstanceBackend, "start_instances", strict_start_instances)
    wrap(InstanceBackend, "all_reservations", hiding_reservations)
    wrap(SecurityGroupBackend, "_delete_security_group", strict_delete_group)
    wrap(SecurityGroupBackend, "describe_security_groups", hiding_groups)
    wrap(SecurityGroupBackend, "create_security_group", noting_birth("security-group"))
    wrap(moto_interfaces.NetworkInterfaceBackend, "modify_network_interface_attribute", moving_groups)
    wrap(SubnetBackend, "delete_subnet", strict_delete_subnet)
    wrap(SubnetBackend, "create_subnet", noting_birth("subnet"))
    wrap(SubnetBackend, "describe_subnets", hiding)
    wrap(moto_interfaces.NetworkInterfaceBackend, "describe_network_interfaces", hiding)
    wrap(Ami, "block_device_mappings", with_size)
    AmiBackend._load_amis = load_images
    EC2Response.get_console_output = console_output
    TaggedEC2Resource.get_tags = fast_tags
    Instance.private_ip = property(fast_private_address)
    moto_interfaces.random_public_ip = lambda: rules().cloud.next_public_address() if rules() else "203.0.113.1"
    EC2BaseResponse.RESPONSE_KEY_PATH_TO_TRANSFORMER.pop("RunInstances.Reservation.Instances.Instance.State")
    moto_utils.filter_dict_attribute_mapping.update({
        "client-token": "client_token", "placement-group-name": "placement.group_name", "instance-lifecycle": "lifecycle",
        "spot-instance-request-id": "spot_instance_request_id", "instance-state-code": "state_code", "availability-zone": "placement.zone"})
