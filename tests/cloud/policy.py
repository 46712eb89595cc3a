"""Who may do what: the policies of the caller's user or role, evaluated for each call.

As far as a least-privilege policy needs it: Action, NotAction, Resource, NotResource, Condition on tags, strings, ARNs,
booleans and numbers; deny beats allow; nothing said is a deny.
"""
import fnmatch
import ipaddress
import json
import re

from .errors import Refused

KINDS = {"i": "instance", "sg": "security-group", "sgr": "security-group-rule", "subnet": "subnet", "vol": "volume",
         "eni": "network-interface", "vpc": "vpc", "ami": "image", "lt": "launch-template", "pg": "placement-group",
         "sir": "spot-instances-request", "key": "key-pair", "snap": "snapshot", "rtb": "route-table", "igw": "internet-gateway"}
RESOURCE_ID = re.compile(r"(i|sgr?|subnet|vol|eni|vpc|ami|lt|pg|sir|key|snap|rtb|igw)-[0-9a-f]{6,}")
# What a create makes; its ARN ends in an asterisk, and the request's tags are its context.
CREATES = {"RunInstances": ("instance", "volume", "network-interface"), "CreateSecurityGroup": ("security-group",),
           "CreateSubnet": ("subnet",), "CreatePlacementGroup": ("placement-group",), "CreateLaunchTemplate": ("launch-template",),
           "CreateVolume": ("volume",), "CreateKeyPair": ("key-pair",), "CreateVpc": ("vpc",)}
S3_BUCKET_ACTIONS = {"ListBucket", "CreateBucket", "DeleteBucket", "GetBucketLocation", "ListBucketMultipartUploads",
                     "ListBucketVersions"}


def as_list(value):
    return value if isinstance(value, list) else [] if value is None else [value]


def like(pattern, text):
    """AWS' wildcards: * and ? only."""
    return fnmatch.fnmatchcase(text, re.sub(r"\[", "[[]", pattern))


def compare_number(check):
    return lambda want, have: check(float(have), float(want))


OPERATORS = {
    "StringEquals": lambda want, have: have == want,
    "StringEqualsIgnoreCase": lambda want, have: have.lower() == want.lower(),
    "StringLike": like,
    "ArnEquals": like,
    "ArnLike": like,
    "Bool": lambda want, have: have.lower() == want.lower(),
    "NumericEquals": compare_number(lambda a, b: a == b),
    "NumericLessThan": compare_number(lambda a, b: a < b),
    "NumericLessThanEquals": compare_number(lambda a, b: a <= b),
    "NumericGreaterThan": compare_number(lambda a, b: a > b),
    "NumericGreaterThanEquals": compare_number(lambda a, b: a >= b),
    "IpAddress": lambda want, have: ipaddress.ip_address(have) in ipaddress.ip_network(want, strict=False),
}
NEGATIVE = {"StringNotEquals": "StringEquals", "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase", "StringNotLike": "StringLike",
            "ArnNotEquals": "ArnEquals", "ArnNotLike": "ArnLike", "NumericNotEquals": "NumericEquals", "NotIpAddress": "IpAddress"}


def condition_holds(operator, wanted, have):
    """have: the values of the key in this request (a list), or None if it has none."""
    qualifier, _, operator = operator.rpartition(":")
    if operator == "Null":
        return (have is None) == (wanted[0].lower() == "true")
    if operator.endswith("IfExists"):
        operator = operator[:-len("IfExists")]
        if have is None:
            return True
    negative = operator in NEGATIVE
    check = OPERATORS[NEGATIVE.get(operator, operator)]
    if have is None:
        return negative or qualifier == "ForAllValues"
    each = [any(check(want, value) for want in wanted) != negative for value in have]
    return all(each) if qualifier == "ForAllValues" or negative else any(each)


def statement_fits(statement, action, resource, context):
    def matches(patterns, text, fold):
        return any(like(p.lower(), text.lower()) if fold else like(p, text) for p in patterns)

    if "Action" in statement and not matches(as_list(statement["Action"]), action, True):
        return False
    if "NotAction" in statement and matches(as_list(statement["NotAction"]), action, True):
        return False
    if "Resource" in statement and not matches(as_list(statement["Resource"]), resource, False):
        return False
    if "NotResource" in statement and matches(as_list(statement["NotResource"]), resource, False):
        return False
    keys = {key.lower(): value for key, value in context.items()}
    for operator, conditions in statement.get("Condition", {}).items():
        for key, wanted in conditions.items():
            have = keys.get(key.lower())
            wanted = [str(w).lower() if isinstance(w, bool) else str(w) for w in as_list(wanted)]
            if not condition_holds(operator, wanted, None if have is None else as_list(have)):
                return False
    return True


def allowed(documents, action, resource, context):
    allow = False
    for document in documents:
        document = json.loads(document) if isinstance(document, str) else document
        for statement in as_list(document.get("Statement")):
            if statement_fits(statement, action, resource, context):
                if statement["Effect"] == "Deny":
                    return False
                allow = True
    return allow


# ---- what a call asks for ----

def tag_specifications(params):
    """{resource type: {key: value}} of a request."""
    found = {}
    for name, value in params.items():
        spec = re.fullmatch(r"(TagSpecifications?)\.(\d+)\.ResourceType", name)
        if spec:
            tags = found.setdefault(value, {})
            prefix = f"{spec[1]}.{spec[2]}.Tag"
            for key, text in params.items():
                tag = re.fullmatch(re.escape(prefix) + r"s?\.(\d+)\.Key", key)
                if tag:
                    tags[text] = params.get(key[:-len("Key")] + "Value", "")
    return found


def plain_tags(params):
    """Those of CreateTags, CreateRole and their like."""
    found = {}
    for name, value in params.items():
        tag = re.fullmatch(r"(Tags?\.(?:member\.)?\d+)\.Key", name)
        if tag:
            found[value] = params.get(f"{tag[1]}.Value", "")
    return found


def tag_context(tags):
    context = {f"aws:RequestTag/{key}": value for key, value in tags.items()}
    if tags:
        context["aws:TagKeys"] = list(tags)
    return context


def resource_context(tags):
    return {f"{prefix}:ResourceTag/{key}": value for key, value in tags.items() for prefix in ("aws", "ec2")}


def ec2_asks(call, tags_of):
    """[(action, resource, context)]; tags_of(id) gives the tags that a resource has."""
    base = {"aws:RequestedRegion": call.region, "ec2:Region": call.region, "aws:SourceIp": call.source}
    arn = f"arn:aws:ec2:{call.region}:{call.caller.account}:"
    if call.action.startswith(("Describe", "Get")):
        return [(f"ec2:{call.action}", "*", base)]
    specs, asks = tag_specifications(call.params), []
    request = tag_context(plain_tags(call.params))
    if "InstanceType" in call.params:
        base["ec2:InstanceType"] = call.params["InstanceType"]
    for kind in CREATES.get(call.action, ()):
        # EC2 takes tags of an instance for a request to tag the instance, and so on, for each type alone.
        asks.append((f"ec2:{call.action}", f"{arn}{kind}/*", {**base, **tag_context(specs.get(kind, {}))}))
    ids = [value for name, value in sorted(call.params.items()) if RESOURCE_ID.fullmatch(value) and not name.startswith("Tag")]
    for number in dict.fromkeys(ids):
        kind = KINDS[number.split("-")[0]]
        owner = "" if kind == "image" else call.caller.account
        asks.append((f"ec2:{call.action}", f"arn:aws:ec2:{call.region}:{owner}:{kind}/{number}",
                     {**base, **request, **resource_context(tags_of(number))}))
    if call.action == "DeletePlacementGroup":
        asks.append((f"ec2:{call.action}", f"{arn}placement-group/{call.params.get('GroupName', '')}",
                     {**base, **resource_context(tags_of(call.params.get("GroupName", "")))}))
    for kind, tags in specs.items():
        asks.append(("ec2:CreateTags", f"{arn}{kind}/*", {**base, **tag_context(tags), "ec2:CreateAction": call.action}))
    return asks or [(f"ec2:{call.action}", "*", base)]


def s3_asks(call):
    bucket, key = call.bucket, call.key
    base = {"aws:RequestedRegion": call.region, "aws:SourceIp": call.source, "s3:prefix": call.query.get("prefix", "")}
    if not bucket:
        return [(f"s3:{call.permission}", "*", base)]
    return [(f"s3:{call.permission}", f"arn:aws:s3:::{bucket}" + (f"/{key}" if key else ""), base)]


IAM_NAMES = (("RoleName", "role"), ("InstanceProfileName", "instance-profile"), ("UserName", "user"))


def iam_asks(call, tags_of):
    base = {"aws:RequestedRegion": call.region, "aws:SourceIp": call.source, **tag_context(plain_tags(call.params))}
    arn = f"arn:aws:iam::{call.caller.account}:"
    names = [(kind, call.params[name]) for name, kind in IAM_NAMES if name in call.params]
    if call.action in ("AddRoleToInstanceProfile", "RemoveRoleFromInstanceProfile"):
        names = [(kind, name) for kind, name in names if kind == "instance-profile"]
    path = call.params.get("Path", "/")
    asks = [(f"iam:{call.action}", f"{arn}{kind}{path}{name}", {**base, **{k: v for k, v in resource_context(tags_of(name)).items() if k.startswith("aws:")}})
            for kind, name in names]
    return asks or [(f"iam:{call.action}", call.params.get("PolicyArn", "*"), base)]


def pass_role_asks(call, role_of_profile):
    """An instance with a profile, or a profile that is given a role, passes that role."""
    role = None
    if call.service == "ec2" and call.action in ("RunInstances", "AssociateIamInstanceProfile", "ReplaceIamInstanceProfileAssociation"):
        name = call.params.get("IamInstanceProfile.Name") or call.params.get("IamInstanceProfile.Arn", "").rpartition("/")[2]
        role = role_of_profile(name) if name else None
    elif call.service == "iam" and call.action == "AddRoleToInstanceProfile":
        role = f"arn:aws:iam::{call.caller.account}:role/{call.params.get('RoleName', '')}"
    return [("iam:PassRole", role, {"iam:PassedToService": "ec2.amazonaws.com"})] if role else []


FREE = {("sts", "GetCallerIdentity")}


def authorize(call, documents, tags_of, role_of_profile):
    """Refused if a policy document does not allow all that the call asks for.  documents None: the account's root."""
    if documents is None or (call.service, call.action) in FREE:
        return
    if call.service == "ec2":
        asks = ec2_asks(call, tags_of)
    elif call.service == "s3":
        asks = s3_asks(call)
    elif call.service == "iam":
        asks = iam_asks(call, tags_of)
    elif call.service == "ssm":
        asks = [(f"ssm:{call.action}", f"arn:aws:ssm:{call.region}::parameter{name}", {}) for name in call.parameter_names] or [(f"ssm:{call.action}", "*", {})]
    elif call.service == "sts":
        asks = [(f"sts:{call.action}", call.params.get("RoleArn", "*"), {})]
    else:
        context = {"aws:RequestedRegion": call.region, "cloudwatch:namespace": call.params.get("Namespace", "")}
        asks = [(f"{PREFIXES.get(call.service, call.service)}:{call.action}", "*", context)]
    for action, resource, context in asks + pass_role_asks(call, role_of_profile):
        if not allowed(documents, action, resource, {**context, "aws:PrincipalArn": call.caller.arn}):
            deny(call, action, resource)


PREFIXES = {"monitoring": "cloudwatch"}


def deny(call, action, resource):
    code = "UnauthorizedOperation" if call.service == "ec2" else "AccessDenied" if call.service in ("s3", "iam", "sts") else "AccessDeniedException"
    raise Refused(code, f"User: {call.caller.arn} is not authorized to perform: {action} on resource: {resource} "
                        f"because no identity-based policy allows the {action} action", 400 if code == "AccessDeniedException" else 403)
