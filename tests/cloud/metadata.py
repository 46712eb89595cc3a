"""The metadata service of an instance, as it is at 169.254.169.254: IMDSv2, identity, user data, credentials, spot notice.

It is a WSGI application for one instance; machines reach it on their wire, and for stand-ins without one the endpoint
has it at /imds/INSTANCE.
"""
import base64
import json
import secrets
import socket
import time

from . import identity

VERSIONS = ("1.0", "2009-04-04", "2016-09-02", "2018-09-24", "2021-03-23", "2022-09-24", "latest")
MAX_TOKEN_SECONDS = 21600


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


class Metadata:
    def __init__(self, cloud, instance):
        self.cloud, self.instance, self.tokens, self.caller, self.reads = cloud, instance, {}, None, []
        self.began = time.time()
        self.hook = None  # (method, path) -> None, or a status to answer with

    # ---- the protocol ----

    def __call__(self, environ, start_response):
        path = environ["PATH_INFO"]
        prefix = f"/imds/{self.instance.id}"
        status, body = self.answer(environ["REQUEST_METHOD"], path.removeprefix(prefix) or "/", environ)
        words = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed"}
        headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(body))), ("Server", "EC2ws")]
        if status == 200 and environ["REQUEST_METHOD"] == "PUT":
            headers.append(("X-aws-ec2-metadata-token-ttl-seconds", environ["HTTP_X_AWS_EC2_METADATA_TOKEN_TTL_SECONDS"]))
            # A token does not get further than the hop limit says: a container behind a bridge is one hop more.
            environ["werkzeug.socket"].setsockopt(socket.IPPROTO_IP, socket.IP_TTL, self.instance.metadata_options.http_put_response_hop_limit)
        start_response(f"{status} {words.get(status, 'Error')}", headers)
        return [body]

    def answer(self, method, path, environ):
        self.reads.append((method, path))
        status = self.hook(method, path) if self.hook else None
        if status:
            return status, b""
        options = self.instance.metadata_options
        if options.http_endpoint == "disabled":
            return 403, b""
        if method == "PUT":
            return self.make_token(path, environ)
        if method != "GET":
            return 405, b""
        token = environ.get("HTTP_X_AWS_EC2_METADATA_TOKEN")
        if token is None and options.http_tokens == "required":
            return 401, b""
        if token is not None and self.tokens.get(token, 0) < time.monotonic():
            return 401, b""
        with self.cloud.lock:
            return self.read(path)

    def make_token(self, path, environ):
        ttl = environ.get("HTTP_X_AWS_EC2_METADATA_TOKEN_TTL_SECONDS", "")
        if path != "/latest/api/token":
            return 404, b""
        if "HTTP_X_FORWARDED_FOR" in environ:
            return 403, b""
        if not ttl.isdigit() or not 1 <= int(ttl) <= MAX_TOKEN_SECONDS:
            return 400, b""
        token = secrets.token_urlsafe(40)
        self.tokens[token] = time.monotonic() + int(ttl)
        return 200, token.encode()

    def read(self, path):
        words = [word for word in path.split("/") if word]
        if not words:
            return 200, "\n".join(VERSIONS).encode()
        if words[0] not in VERSIONS:
            return 404, b""
        if words[1:] == ["user-data"]:
            data = self.instance.user_data
            return (200, base64.b64decode(str(data))) if data else (404, b"")
        here = self.tree()
        for word in words[1:]:
            if not isinstance(here, dict) or word not in here:
                return 404, b""
            here = here[word]
        if isinstance(here, dict):
            return 200, "\n".join(name + ("/" if isinstance(value, dict) else "") for name, value in here.items()).encode()
        return 200, (here() if callable(here) else str(here)).encode()

    # ---- the facts ----

    def tree(self):
        tree = {"dynamic": {"instance-identity": {"document": self.document, "signature": "none", "pkcs7": "none"}}, "meta-data": self.facts()}
        if self.instance.user_data:
            tree["user-data"] = ""
        return tree

    def facts(self):
        instance, nic = self.instance, self.instance.nics[0]
        subnet = nic.subnet
        vpc = instance.ec2_backend.get_vpc(subnet.vpc_id)
        wire = {"device-number": 0, "interface-id": nic.id, "local-hostname": instance.private_dns_name, "local-ipv4s": nic.private_ip_address,
                "mac": nic.mac_address, "owner-id": instance.owner_id, "security-group-ids": "\n".join(g.id for g in instance.security_groups),
                "security-groups": "\n".join(g.name for g in instance.security_groups), "subnet-id": subnet.id,
                "subnet-ipv4-cidr-block": subnet.cidr_block, "vpc-id": subnet.vpc_id, "vpc-ipv4-cidr-block": vpc.cidr_block}
        zone = instance.placement.zone
        facts = {"ami-id": instance.image_id, "ami-launch-index": instance.ami_launch_index, "ami-manifest-path": "(unknown)",
                 "block-device-mapping": {"ami": instance.root_device_name, "root": instance.root_device_name},
                 "hostname": instance.private_dns_name, "instance-action": "none", "instance-id": instance.id,
                 "instance-life-cycle": "spot" if instance.lifecycle == "spot" else "on-demand", "instance-type": instance.instance_type,
                 "local-hostname": instance.private_dns_name, "local-ipv4": nic.private_ip_address, "mac": nic.mac_address,
                 "network": {"interfaces": {"macs": {nic.mac_address: wire}}},
                 "placement": {"availability-zone": zone, "availability-zone-id": zone, "region": zone[:-1]},
                 "reservation-id": "r-0", "security-groups": wire["security-groups"], "services": {"domain": "amazonaws.com", "partition": "aws"}}
        if nic.public_ip:
            facts.update({"public-ipv4": nic.public_ip, "public-hostname": instance.public_dns_name})
            wire["public-ipv4s"] = nic.public_ip
        if instance.placement.group_name:
            facts["placement"]["group-name"] = instance.placement.group_name
        if instance.metadata_options.instance_metadata_tags == "enabled":
            facts["tags"] = {"instance": dict(instance.ec2_backend.tags.get(instance.id, {}))}
        facts.update(self.role_facts())
        facts.update(self.spot_facts())
        return facts

    def document(self):
        i = self.instance
        return json.dumps({"accountId": i.owner_id, "architecture": i.architecture, "availabilityZone": i.placement.zone, "imageId": i.image_id,
                           "instanceId": i.id, "instanceType": i.instance_type, "pendingTime": i.launch_time.strftime("%Y-%m-%dT%H:%M:%SZ"),
                           "privateIp": i.private_ip_address, "region": i.placement.zone[:-1], "version": "2017-09-30"}, indent=1)

    def role(self):
        arn = (self.instance.iam_instance_profile or {}).get("Arn")
        return identity.role_of_profile(self.instance.owner_id, arn.rpartition("/")[2]) if arn else None

    def role_facts(self):
        role = self.role()
        if not role or time.time() < self.began + self.cloud.role_seconds:
            return {}
        return {"iam": {"info": json.dumps({"Code": "Success", "InstanceProfileArn": self.instance.iam_instance_profile["Arn"]}),
                        "security-credentials": {role.name: self.credentials}}}

    def credentials(self):
        """Of the role of the instance's profile, made anew when half of their time is over."""
        role, seconds = self.role(), self.cloud.credential_seconds
        if not self.caller or self.caller.name != role.name or self.caller.expires < time.time() + seconds / 2:
            self.caller = self.cloud.callers.session(self.instance.owner_id, role.name, self.instance.id, seconds)
        return json.dumps({"Code": "Success", "LastUpdated": stamp(time.time()), "Type": "AWS-HMAC", "AccessKeyId": self.caller.key,
                           "SecretAccessKey": self.caller.secret, "Token": self.caller.token, "Expiration": stamp(self.caller.expires)})

    def spot_facts(self):
        notice = getattr(self.instance, "spot_notice", None)
        if not notice:
            return {}
        return {"spot": {"instance-action": json.dumps({"action": "terminate", "time": stamp(notice)}), "termination-time": stamp(notice)}}
