"""One request, understood: which service, which action, whose, with which parameters."""
import json
import re
import time
import urllib.parse

from . import sigv4

# S3 says what it wants by method and query: (method, has a key, word in the query) -> action, permission.
S3_ACTIONS = {
    ("GET", False, ""): ("ListObjectsV2", "ListBucket"), ("HEAD", False, ""): ("HeadBucket", "ListBucket"),
    ("PUT", False, ""): ("CreateBucket", "CreateBucket"), ("DELETE", False, ""): ("DeleteBucket", "DeleteBucket"),
    ("GET", False, "location"): ("GetBucketLocation", "GetBucketLocation"),
    ("GET", False, "uploads"): ("ListMultipartUploads", "ListBucketMultipartUploads"),
    ("GET", False, "versions"): ("ListObjectVersions", "ListBucketVersions"),
    ("POST", False, "delete"): ("DeleteObjects", "DeleteObject"),
    ("PUT", False, "lifecycle"): ("PutBucketLifecycleConfiguration", "PutLifecycleConfiguration"),
    ("GET", False, "lifecycle"): ("GetBucketLifecycleConfiguration", "GetLifecycleConfiguration"),
    ("PUT", False, "tagging"): ("PutBucketTagging", "PutBucketTagging"),
    ("GET", False, "tagging"): ("GetBucketTagging", "GetBucketTagging"),
    ("PUT", False, "publicAccessBlock"): ("PutPublicAccessBlock", "PutBucketPublicAccessBlock"),
    ("PUT", False, "encryption"): ("PutBucketEncryption", "PutEncryptionConfiguration"),
    ("PUT", False, "policy"): ("PutBucketPolicy", "PutBucketPolicy"),
    ("PUT", False, "versioning"): ("PutBucketVersioning", "PutBucketVersioning"),
    ("GET", True, ""): ("GetObject", "GetObject"), ("HEAD", True, ""): ("HeadObject", "GetObject"),
    ("GET", True, "versionId"): ("GetObject", "GetObjectVersion"), ("HEAD", True, "versionId"): ("HeadObject", "GetObjectVersion"),
    ("PUT", True, ""): ("PutObject", "PutObject"), ("DELETE", True, ""): ("DeleteObject", "DeleteObject"),
    ("POST", True, "uploads"): ("CreateMultipartUpload", "PutObject"), ("PUT", True, "uploadId"): ("UploadPart", "PutObject"),
    ("POST", True, "uploadId"): ("CompleteMultipartUpload", "PutObject"),
    ("DELETE", True, "uploadId"): ("AbortMultipartUpload", "AbortMultipartUpload"),
    ("GET", True, "uploadId"): ("ListParts", "ListMultipartUploadParts"),
    ("PUT", True, "tagging"): ("PutObjectTagging", "PutObjectTagging"),
    ("GET", True, "tagging"): ("GetObjectTagging", "GetObjectTagging"),
}
S3_WORDS = sorted({word for _, _, word in S3_ACTIONS if word})
SECRET = re.compile("password|secret|token$", re.I)


class Call:
    """A request and, later, what became of it (status, code, applied, seconds)."""

    def __init__(self, environ):
        self.environ, self.time, self.number = environ, time.time(), 0
        self.method, self.source = environ["REQUEST_METHOD"], environ.get("REMOTE_ADDR", "")
        raw = environ.get("RAW_URI") or environ.get("REQUEST_URI") or environ["PATH_INFO"]
        self.raw_path, _, self.raw_query = raw.partition("?")
        self.query = dict(urllib.parse.parse_qsl(self.raw_query, keep_blank_values=True))
        self.headers = {key[5:].replace("_", "-").lower(): value for key, value in environ.items() if key.startswith("HTTP_")}
        for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            if environ.get(name):
                self.headers[name.replace("_", "-").lower()] = environ[name]
        self.body = self.read_body(environ)
        self.claim = sigv4.claim_of(self.headers, self.query)
        scope = self.claim.scope if self.claim else []
        self.region, self.service = (scope[1], scope[2]) if len(scope) == 4 else ("us-east-1", "s3")
        self.caller, self.status, self.code, self.applied, self.seconds = None, None, None, False, 0.0
        self.is_query, self.bucket, self.key, self.permission, self.parameter_names = False, "", "", "", []
        self.params, self.json, self.moto_body = {}, {}, None
        self.understand()

    @staticmethod
    def read_body(environ):
        if environ.get("wsgi.input_terminated"):
            return environ["wsgi.input"].read()
        return environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))

    def understand(self):
        target = self.headers.get("x-amz-target")
        if target:
            self.action = target.rpartition(".")[2]
            self.json = json.loads(self.body or b"{}")
            self.params = {key: value if isinstance(value, str) else json.dumps(value) for key, value in self.json.items()}
            if self.service == "ssm":
                self.parameter_names = self.json.get("Names") or [self.json.get("Name") or self.json.get("Path", "/")]
            return
        if self.service == "s3":
            self.understand_s3()
            return
        operation = re.fullmatch(r"/service/\w+/operation/(\w+)", self.raw_path)
        if operation:
            self.action = operation[1]
            return
        form = dict(urllib.parse.parse_qsl(self.body.decode(errors="replace"), keep_blank_values=True)) if self.method == "POST" else self.query
        self.is_query = "Action" in form
        self.action = form.get("Action", f"{self.method} {self.raw_path}")
        self.params = {key: value for key, value in form.items() if key not in ("Action", "Version") and not key.startswith("X-Amz-")}

    def understand_s3(self):
        path = urllib.parse.unquote(self.raw_path).lstrip("/")
        host = self.headers.get("host", "").partition(":")[0]
        first = host.partition(".")[0]
        if not re.fullmatch(r"[\d.]+|localhost|s3([.-].*)?", host) and first:
            self.bucket, self.key = first, path
        else:
            self.bucket, _, self.key = path.partition("/")
        word = next((w for w in S3_WORDS if w in self.query), "")
        if not self.bucket:
            self.action, self.permission = "ListBuckets", "ListAllMyBuckets"
        else:
            self.action, self.permission = S3_ACTIONS.get((self.method, bool(self.key), word),
                                                          (f"{self.method} {word}".strip(), f"{self.method.title()}Object"))
        self.params = {"Bucket": self.bucket, "Key": self.key, **{k: v for k, v in self.query.items() if not k.startswith("X-Amz-")}}

    def record(self):
        """A line of the call log."""
        return {"number": self.number, "time": self.time, "service": self.service, "action": self.action, "region": self.region,
                "caller": self.caller.arn if self.caller else None, "source": self.source, "status": self.status, "code": self.code,
                "applied": self.applied, "seconds": round(self.seconds, 3),
                "params": {k: "(hidden)" if SECRET.search(k) and k != "ClientToken" else v for k, v in self.params.items() if k != "UserData"}}
