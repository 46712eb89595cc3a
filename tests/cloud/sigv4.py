"""Signatures are checked: AWS Signature Version 4 in the header or the query, written apart from the product."""
import base64
import calendar
import hashlib
import hmac
import re
import time
import urllib.parse

import boto3

from .errors import Refused

ALGORITHM = "AWS4-HMAC-SHA256"
REGIONS = {region for part in ("aws", "aws-cn", "aws-us-gov") for region in boto3.session.Session().get_available_regions("ec2", part)}
SKEW_SECONDS = 300
S3_SKEW_SECONDS = 900
UNSIGNED = "UNSIGNED-PAYLOAD"


def quote(text):
    return urllib.parse.quote(text, safe="-_.~")


def canonical_query(raw):
    pairs = []
    for part in raw.split("&") if raw else []:
        key, _, value = part.partition("=")
        if key != "X-Amz-Signature":
            pairs.append((quote(urllib.parse.unquote(key)), quote(urllib.parse.unquote(value))))
    return "&".join(f"{k}={v}" for k, v in sorted(pairs))


def canonical_path(call):
    if call.service == "s3":
        return call.raw_path or "/"
    return urllib.parse.quote(call.raw_path or "/", safe="/-_.~")


def header_value(call, name):
    return " ".join(call.headers.get(name, "").split())


def hash_of(call):
    """The payload's hash as the signer wrote it, held against the payload."""
    said = call.headers.get("x-amz-content-sha256")
    if said and re.fullmatch("[0-9a-f]{64}", said) and said != hashlib.sha256(call.body).hexdigest():
        raise Refused("XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.")
    return said or hashlib.sha256(call.body).hexdigest()


def signature(call, secret, scope, signed_headers, stamp, payload_hash):
    lines = [call.method, canonical_path(call), canonical_query(call.raw_query),
             *[f"{name}:{header_value(call, name)}" for name in signed_headers], "", ";".join(signed_headers), payload_hash]
    request = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    text = "\n".join([ALGORITHM, stamp, "/".join(scope), request])
    key = f"AWS4{secret}".encode()
    for word in (*scope[:3], "aws4_request"):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def when(stamp):
    try:
        return calendar.timegm(time.strptime(stamp, "%Y%m%dT%H%M%SZ"))
    except ValueError:
        return 0


class Claim:
    """What a request says about who signed it; None if it is not signed."""

    def __init__(self, key, scope, headers, stamp, given, token, expires=None):
        self.key, self.scope, self.headers, self.stamp = key, scope, headers, stamp
        self.given, self.token, self.expires = given, token, expires


def claim_of(headers, query):
    text = headers.get("authorization", "")
    if text.startswith(ALGORITHM):
        fields = dict(part.strip().partition("=")[::2] for part in text[len(ALGORITHM):].split(","))
        key, *scope = fields.get("Credential", "").split("/")
        return Claim(key, scope, fields.get("SignedHeaders", "").split(";"), headers.get("x-amz-date", ""),
                     fields.get("Signature", ""), headers.get("x-amz-security-token"))
    if "X-Amz-Signature" in query:
        key, *scope = query.get("X-Amz-Credential", "").split("/")
        return Claim(key, scope, query.get("X-Amz-SignedHeaders", "").split(";"), query.get("X-Amz-Date", ""),
                     query["X-Amz-Signature"], query.get("X-Amz-Security-Token"), int(query.get("X-Amz-Expires", "0") or 0))
    return None


# By service: code and status of (no signature, unknown key, wrong signature, too old, expired session).
REFUSALS = {
    "ec2": (("MissingAuthenticationToken", 403), ("AuthFailure", 401), ("AuthFailure", 401), ("RequestExpired", 400), ("RequestExpired", 400)),
    "s3": (("AccessDenied", 403), ("InvalidAccessKeyId", 403), ("SignatureDoesNotMatch", 403), ("RequestTimeTooSkewed", 403), ("ExpiredToken", 400)),
    "query": (("MissingAuthenticationToken", 403), ("InvalidClientTokenId", 403), ("SignatureDoesNotMatch", 403), ("SignatureDoesNotMatch", 403), ("ExpiredToken", 403)),
    "json": (("MissingAuthenticationTokenException", 400), ("UnrecognizedClientException", 400), ("InvalidSignatureException", 400), ("InvalidSignatureException", 400), ("ExpiredTokenException", 400)),
}
TEXTS = ("Request is missing Authentication Token", "AWS was not able to validate the provided access credentials",
         "The request signature we calculated does not match the signature you provided.",
         "Signature expired: the time of the request is too far from the server's", "The provided token has expired.")


def refuse(call, which):
    family = call.service if call.service in REFUSALS else "query" if call.is_query else "json"
    code, status = REFUSALS[family][which]
    raise Refused(code, TEXTS[which], status)


def verify(call, callers, now):
    """The caller, or Refused.  callers: key id -> Caller or None; now: the cloud's clock."""
    claim = call.claim
    if not claim:
        refuse(call, 0)
    caller = callers(claim.key)
    if not caller:
        refuse(call, 1)
    if caller.token != claim.token:
        refuse(call, 1)
    if caller.expires and now >= caller.expires:
        refuse(call, 4)
    if claim.expires is not None:
        if now > when(claim.stamp) + claim.expires:
            raise Refused("AccessDenied", "Request has expired", 403)
    elif abs(now - when(claim.stamp)) > (S3_SKEW_SECONDS if call.service == "s3" else SKEW_SECONDS):
        refuse(call, 3)
    if claim.scope[1:2] and claim.scope[1] not in REGIONS:
        raise Refused("SignatureDoesNotMatch", f"Credential should be scoped to a valid region, not '{claim.scope[1]}'.", 403)
    payload = UNSIGNED if claim.expires is not None and call.service == "s3" else hash_of(call)
    expected = signature(call, caller.secret, claim.scope, claim.headers, claim.stamp, payload)
    if len(claim.scope) != 4 or "host" not in claim.headers or not hmac.compare_digest(expected, claim.given):
        refuse(call, 2)
    return caller


def check_md5(call):
    said = call.headers.get("content-md5")
    if said is None:
        return
    try:
        right = base64.b64decode(said, validate=True)
    except ValueError:
        right = b""
    if len(right) != 16:
        raise Refused("InvalidDigest", "The Content-MD5 you specified is not valid.")
    if right != hashlib.md5(call.body).digest():
        raise Refused("BadDigest", "The Content-MD5 you specified did not match what we received.")
