"""Signatures of random requests: the product's against botocore's."""
import datetime
import hashlib
import os
import random
import string

from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth, SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from urllib.parse import quote, urlsplit

import botocore.auth

from .aws_tool import AwsTool

COUNT = 10_000
BATCH = 100
TEXT = string.ascii_letters + string.digits + " !\"#$%&'()*+,-./:;<=>?@[]^_`{|}~äλ日\U0001f680"
VALUE = string.ascii_letters + string.digits + "  -_.,;:/=+*'()<>[]{}|~"


def word(rng, alphabet, least, most):
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(least, most)))


class Request:
    """One that both may be asked to sign."""

    def __init__(self, rng):
        self.service = rng.choice(["s3", "ec2", "iam", "sts", "ssm"])
        self.presign = rng.random() < 0.3
        self.region = rng.choice(["us-east-1", "eu-central-1", "cn-north-1", "us-gov-west-1"])
        self.method = rng.choice(["GET", "PUT", "POST", "DELETE", "HEAD"])
        self.time = datetime.datetime(2020, 1, 1) + datetime.timedelta(seconds=rng.randrange(400_000_000))
        self.key, self.secret = word(rng, string.ascii_uppercase, 16, 20), word(rng, TEXT[:62] + "/+", 40, 40)
        self.token = word(rng, TEXT[:62] + "/+=", 20, 400) if rng.random() < 0.5 else None
        self.path = "/" + "/".join(quote(word(rng, TEXT, 1, 12), safe="-_.~") for _ in range(rng.randint(0, 4)))
        if self.service != "s3":
            self.path = "/" + "/".join(part for part in self.path.split("/") if part not in ("", ".", ".."))
        pairs = [(word(rng, TEXT, 1, 8) + str(i), word(rng, TEXT, 0, 20)) for i in range(rng.randint(0, 5))]
        self.query = "&".join(f"{quote(k, safe='-_.~')}={quote(v, safe='-_.~')}" for k, v in pairs)
        self.headers = {f"X-{word(rng, string.ascii_letters, 1, 8)}-{i}": word(rng, VALUE, 0, 30)
                        for i in range(rng.randint(0, 4))}
        self.headers["Host"] = rng.choice(["example.amazonaws.com", "127.0.0.1:8080", "bucket.s3.amazonaws.com"])
        self.body = b"" if self.presign else rng.randbytes(rng.randint(0, 200))
        self.expires = rng.randint(1, 604_800)

    def by_botocore(self, monkeypatch):
        freeze(monkeypatch, self.time)
        request = AWSRequest(self.method, f"https://{self.headers['Host']}{self.path}" + (f"?{self.query}" if self.query else ""),
                             headers={**self.headers}, data=self.body)
        keys = Credentials(self.key, self.secret, self.token)
        if self.presign:
            kind = S3SigV4QueryAuth if self.service == "s3" else SigV4QueryAuth
            kind(keys, self.service, self.region, expires=self.expires).add_auth(request)
            return urlsplit(request.url).query
        kind = S3SigV4Auth if self.service == "s3" else SigV4Auth
        request.context["payload_signing_enabled"] = True
        kind(keys, self.service, self.region).add_auth(request)
        self.sent = dict(request.headers.items())
        return self.sent["Authorization"]

    def for_the_product(self):
        headers = dict(self.headers)
        payload = hashlib.sha256(self.body).hexdigest()
        if self.presign:
            payload = "UNSIGNED-PAYLOAD" if self.service == "s3" else payload
        else:
            signed = self.sent["Authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
            own = {name.lower() for name in headers}  # a random one may be X-amz-1
            for name in signed:  # X-Amz-Date and its like, as botocore sent them
                if name.startswith("x-amz-") and name not in own:
                    headers[name] = next(v for k, v in self.sent.items() if k.lower() == name)
        return dict(service=self.service, region=self.region, method=self.method, path=self.path, query=self.query,
                    headers=[[k, v] for k, v in headers.items()], payload=payload, access_key=self.key,
                    secret_key=self.secret, token=self.token, presign=self.presign, expires=self.expires,
                    time_ms=int(self.time.replace(tzinfo=datetime.timezone.utc).timestamp() * 1000))


def freeze(monkeypatch, moment):
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda remove_tzinfo=True: moment)


def signature(text):
    for mark in ("Signature=", "X-Amz-Signature="):
        if mark in text:
            return text.split(mark)[1][:64]
    raise AssertionError(text)


def test_ten_thousand_random_requests_have_botocores_signature(monkeypatch):
    seed = int(os.environ.get("SEED", "0")) or random.randrange(2**32)
    rng = random.Random(seed)
    print(f"SEED={seed}")
    with AwsTool({}) as tool:
        for start in range(0, COUNT, BATCH):
            batch = [Request(rng) for _ in range(BATCH)]
            wanted = [signature(request.by_botocore(monkeypatch)) for request in batch]
            for request in batch:
                tool.send("sign", **request.for_the_product())
            tool.process.stdin.flush()
            for i, request in enumerate(batch):
                said = tool.read()
                assert said["ok"], said
                got = signature(said["query" if request.presign else "authorization"])
                assert got == wanted[i], (f"SEED={seed}, request {start + i}", vars(request), said)
