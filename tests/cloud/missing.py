"""Actions that moto does not have, or answers wrongly: placement groups, public parameters, quotas, who the caller is."""
import json
import re
import time
from xml.sax.saxutils import escape

from . import images, policy
from .errors import Answer, Refused, request_id

XML = [("Content-Type", "text/xml;charset=UTF-8")]
JSON = [("Content-Type", "application/x-amz-json-1.1")]
EC2_NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"
QUOTAS = {"L-1216C47A": ("Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", ("standard", "on-demand")),
          "L-34B43A08": ("All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", ("standard", "spot")),
          "L-DB2E81BA": ("Running On-Demand G and VT instances", ("g", "on-demand")),
          "L-3819A6DF": ("All G and VT Spot Instance Requests", ("g", "spot")),
          "L-417A185B": ("Running On-Demand P instances", ("p", "on-demand")),
          "L-7212CCBC": ("All P4, P3 and P2 Spot Instance Requests", ("p", "spot"))}
UNLIMITED = 1000000


def ec2_answer(action, inside):
    number = request_id()
    body = (f'<?xml version="1.0" encoding="UTF-8"?>\n<{action}Response xmlns="{EC2_NAMESPACE}"><requestId>{number}</requestId>'
            f"{inside}</{action}Response>")
    return Answer(200, [*XML, ("x-amzn-RequestId", number)], body.encode())


def json_answer(value):
    return Answer(200, [*JSON, ("x-amzn-RequestId", request_id())], json.dumps(value).encode())


def listed(params, name):
    """Values of Name.1, Name.2, ..."""
    return [value for key, value in sorted(params.items()) if re.fullmatch(rf"{name}\.\d+", key)]


def filters_of(params):
    return {value: listed(params, key[:-len("Name")] + "Value") for key, value in params.items() if re.fullmatch(r"Filter\.\d+\.Name", key)}


# ---- placement groups ----

def place(call, name):
    return (call.caller.account, call.region, name)


def create_placement_group(cloud, call):
    name, strategy = call.params.get("GroupName", ""), call.params.get("Strategy", "cluster")
    if not name:
        raise Refused("MissingParameter", "The request must contain the parameter GroupName")
    if strategy not in ("cluster", "spread", "partition"):
        raise Refused("InvalidParameterValue", f"Value ({strategy}) for parameter strategy is invalid.")
    groups = cloud.rules.placement_groups
    if place(call, name) in groups:
        raise Refused("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
    number = f"pg-{len(cloud.calls):017x}"
    groups[place(call, name)] = {"name": name, "id": number, "strategy": strategy, "state": "available",
                                 "tags": policy.tag_specifications(call.params).get("placement-group", {})}
    return ec2_answer("CreatePlacementGroup", "<return>true</return>" + placement_group(call, groups[place(call, name)], "placementGroup"))


def tag_placement_group(cloud, call):
    """CreateTags of a placement group, which moto does not know."""
    number = call.params.get("ResourceId.1", "")
    if not number.startswith("pg-"):
        return None
    for group in cloud.rules.placement_groups.values():
        if group["id"] == number:
            group["tags"].update(policy.plain_tags(call.params))
            return ec2_answer("CreateTags", "<return>true</return>")
    raise Refused("InvalidPlacementGroupId.Malformed", f"Invalid placement group id '{number}'")


def members(cloud, call, name):
    return [i.id for i in cloud.rules.alive(call.caller.account) if i.placement.group_name == name and i.region_name == call.region]


def delete_placement_group(cloud, call):
    name = call.params.get("GroupName", "")
    if place(call, name) not in cloud.rules.placement_groups:
        raise Refused("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    if members(cloud, call, name):
        raise Refused("InvalidPlacementGroup.InUse", f"The placement group '{name}' is in use and may not be deleted.")
    del cloud.rules.placement_groups[place(call, name)]
    return ec2_answer("DeletePlacementGroup", "<return>true</return>")


def placement_group(call, group, tag):
    tags = "".join(f"<item><key>{escape(k)}</key><value>{escape(v)}</value></item>" for k, v in group["tags"].items())
    return (f"<{tag}><groupName>{escape(group['name'])}</groupName><groupId>{group['id']}</groupId><strategy>{group['strategy']}</strategy>"
            f"<state>{group['state']}</state><groupArn>arn:aws:ec2:{call.region}:{call.caller.account}:placement-group/{escape(group['name'])}</groupArn>"
            f"<tagSet>{tags}</tagSet></{tag}>")


def describe_placement_groups(cloud, call):
    names, ids, filters = listed(call.params, "GroupName"), listed(call.params, "GroupId"), filters_of(call.params)
    found = [group for (account, region, _), group in cloud.rules.placement_groups.items()
             if (account, region) == (call.caller.account, call.region)]
    for name in names:
        if name not in [group["name"] for group in found]:
            raise Refused("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    for key, values in filters.items():
        def have(group, key=key):
            if key.startswith("tag:"):
                return [group["tags"].get(key[4:])]
            return list(group["tags"]) if key == "tag-key" else [group.get({"group-name": "name", "group-id": "id"}.get(key, key))]
        found = [group for group in found if set(have(group)) & set(values)]
    found = [g for g in found if (not names or g["name"] in names) and (not ids or g["id"] in ids)]
    return ec2_answer("DescribePlacementGroups", f"<placementGroupSet>{''.join(placement_group(call, g, 'item') for g in found)}</placementGroupSet>")


# ---- parameters ----

def parameter(call, name):
    kind = "String"
    return {"Name": name, "Type": kind, "Value": images.PARAMETERS[name], "Version": 1, "LastModifiedDate": 1780272000.0,
            "ARN": f"arn:aws:ssm:{call.region}::parameter{name}", "DataType": "text"}


def get_parameter(_, call):
    name = call.json.get("Name", "")
    if not name.startswith("/aws/service/"):
        return None
    if name not in images.PARAMETERS:
        raise Refused("ParameterNotFound", "")
    return json_answer({"Parameter": parameter(call, name)})


def get_parameters(_, call):
    names = call.json.get("Names", [])
    if not all(name.startswith("/aws/service/") for name in names):
        return None
    return json_answer({"Parameters": [parameter(call, n) for n in names if n in images.PARAMETERS],
                        "InvalidParameters": [n for n in names if n not in images.PARAMETERS]})


def get_parameters_by_path(_, call):
    path = call.json.get("Path", "")
    if not path.startswith("/aws/service"):
        return None
    return json_answer({"Parameters": [parameter(call, n) for n in sorted(images.PARAMETERS) if n.startswith(path.rstrip("/") + "/")]})


# ---- quotas ----

def quota(cloud, call, code):
    name, key = QUOTAS[code]
    limit = cloud.vcpu_quota.get(key)
    return {"ServiceCode": "ec2", "ServiceName": "Amazon Elastic Compute Cloud (Amazon EC2)", "QuotaCode": code, "QuotaName": name,
            "QuotaArn": f"arn:aws:servicequotas:{call.region}:{call.caller.account}:ec2/{code}", "Value": float(UNLIMITED if limit is None else limit),
            "Unit": "None", "Adjustable": True, "GlobalQuota": False}


def get_service_quota(cloud, call):
    if call.json.get("ServiceCode") != "ec2" or call.json.get("QuotaCode") not in QUOTAS:
        raise Refused("NoSuchResourceException", "The request failed because the specified quota does not exist.")
    return json_answer({"Quota": quota(cloud, call, call.json["QuotaCode"])})


def list_service_quotas(cloud, call):
    return json_answer({"Quotas": [quota(cloud, call, code) for code in QUOTAS] if call.json.get("ServiceCode") == "ec2" else []})


# ---- others ----

def get_caller_identity(_, call):
    inside = f"<Arn>{call.caller.arn}</Arn><UserId>{call.caller.id}</UserId><Account>{call.caller.account}</Account>"
    number = request_id()
    body = (f'<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>{inside}'
            f"</GetCallerIdentityResult><ResponseMetadata><RequestId>{number}</RequestId></ResponseMetadata></GetCallerIdentityResponse>")
    return Answer(200, [*XML, ("x-amzn-RequestId", number)], body.encode())


def describe_spot_price_history(cloud, call):
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    kinds = listed(call.params, "InstanceType") or sorted(cloud.prices)
    items = "".join(f"<item><instanceType>{kind}</instanceType><productDescription>Linux/UNIX</productDescription>"
                    f"<spotPrice>{cloud.spot_price(kind):.6f}</spotPrice><timestamp>{stamp}</timestamp><availabilityZone>{call.region}{letter}</availabilityZone></item>"
                    for kind in kinds if kind in cloud.prices for letter in "ab")
    return ec2_answer("DescribeSpotPriceHistory", f"<spotPriceHistorySet>{items}</spotPriceHistorySet><nextToken/>")


def describe_capacity_reservations(cloud, call):
    wanted = listed(call.params, "CapacityReservationId")
    for number in wanted:
        if number not in cloud.reservations:
            raise Refused("InvalidCapacityReservationId.NotFound", f"The capacity reservation '{number}' does not exist")
    items = "".join(f"<item><capacityReservationId>{number}</capacityReservationId><instanceType>{r['type']}</instanceType><availabilityZone>{r['zone']}</availabilityZone>"
                    f"<totalInstanceCount>{r['count']}</totalInstanceCount><availableInstanceCount>{r['count']}</availableInstanceCount><state>active</state></item>"
                    for number, r in cloud.reservations.items() if not wanted or number in wanted)
    return ec2_answer("DescribeCapacityReservations", f"<capacityReservationSet>{items}</capacityReservationSet>")


# A handler answers, refuses, or leaves the call to moto (None).
HANDLERS = {
    ("ec2", "CreateTags"): tag_placement_group,
    ("ec2", "CreatePlacementGroup"): create_placement_group, ("ec2", "DeletePlacementGroup"): delete_placement_group,
    ("ec2", "DescribePlacementGroups"): describe_placement_groups, ("ec2", "DescribeSpotPriceHistory"): describe_spot_price_history,
    ("ec2", "DescribeCapacityReservations"): describe_capacity_reservations,
    ("ssm", "GetParameter"): get_parameter, ("ssm", "GetParameters"): get_parameters, ("ssm", "GetParametersByPath"): get_parameters_by_path,
    ("servicequotas", "GetServiceQuota"): get_service_quota, ("servicequotas", "ListServiceQuotas"): list_service_quotas,
    ("sts", "GetCallerIdentity"): get_caller_identity,
}
