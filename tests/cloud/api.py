"""The endpoint: one WSGI application for all services, in front of moto's.

A request is understood, logged, hit by the fault script, checked (signature, policy, strict rules), answered by moto or
in moto's place, and hit by the fault script again.
"""
import ctypes
import io
import re
import socket
import sys
import threading
import time
import traceback

from moto.iam.models import iam_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import WSGIRequestHandler, make_server

from . import identity, missing, paging, policy, sigv4, truth
from .call import Call
from .errors import Answer, Refused, answer
from .faults import Lost

AF_UNSPEC = bytes(16)
LIBC = ctypes.CDLL(None, use_errno=True)
CODE = re.compile(rb"<Code>([^<]+)</Code>|\"__type\": ?\"([^\"]+)\"")
IAM_BORN = {"CreateRole": ("RoleName", "role"), "CreateInstanceProfile": ("InstanceProfileName", "instance-profile"),
            "AddRoleToInstanceProfile": ("InstanceProfileName", "instance-profile")}


class Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_):
        pass

    def send_response(self, code, message=None):
        """Without a date of its own: the cloud's clock says what time it is."""
        self.send_response_only(code, message)


def reset_connection(environ):
    """Both sides see a reset, now: a socket that is connected to nothing."""
    LIBC.connect(environ["werkzeug.socket"].fileno(), AF_UNSPEC, 16)
    raise ConnectionResetError


def listen(address, port=0):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port))
    s.listen(256)
    return s


class Server:
    """An application on a socket that is listening already."""

    def __init__(self, sock, app, tls=None):
        host, self.port = sock.getsockname()[:2]
        self.sock = sock
        self.http = make_server(host, self.port, app, threaded=True, request_handler=Handler, fd=sock.fileno(), ssl_context=tls)
        self.http.daemon_threads = True
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def close(self):
        self.http.shutdown()
        self.thread.join(5)
        self.http.server_close()
        self.sock.close()


class Api:
    def __init__(self, cloud):
        self.cloud = cloud
        self.moto = DomainDispatcherApplication(create_backend_app)
        self.count_lock, self.count, self.tokens = threading.Lock(), 0, {}

    def __call__(self, environ, start_response):
        for prefix, page in self.cloud.pages.items():
            if environ["PATH_INFO"].startswith(prefix):
                return page(environ, start_response)
        call = Call(environ)
        with self.count_lock:
            self.count += 1
            call.number = self.count
        started = time.monotonic()
        try:
            done = self.serve(call)
        except Lost:
            call.code = "(lost)"
            reset_connection(environ)
        finally:
            call.seconds = time.monotonic() - started
            self.cloud.note_call(call)
        start_response(f"{done.status} {'OK' if done.status < 400 else 'Error'}", self.headers(done))
        return [done.body] if done.cut is None else self.part_of(done, environ)

    @staticmethod
    def part_of(done, environ):
        yield done.body[:done.cut]
        reset_connection(environ)

    def headers(self, done):
        stamp = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(self.cloud.clock()))
        kept = [(k, v) for k, v in done.headers if k.lower() not in ("date", "content-length", "connection", "status", "transfer-encoding")]
        length = next((v for k, v in done.headers if k.lower() == "content-length"), str(len(done.body)))
        return [*kept, ("Date", stamp), ("Content-Length", length if not done.body else str(len(done.body)))]

    def serve(self, call):
        caller = self.cloud.callers.find(call.claim.key) if call.claim else None
        faults = [] if caller and caller.is_stage else self.cloud.script.of(call)
        try:
            done = self.strike(call, faults, "before")
            if not done:
                done = self.apply(call)
                call.applied = done.status < 400
                self.after_apply(call, done)
                done = self.strike(call, faults, "after") or done
                for fault in faults:
                    done = fault.reshape(done)
        except Refused as refused:
            done = answer(call.service, refused, call.method)
        call.status = done.status
        if done.status >= 400:
            found = CODE.search(done.body)
            call.code = (found[1] or found[2]).decode() if found else str(done.status)
        return done

    @staticmethod
    def strike(call, faults, when):
        for fault in faults:
            if fault.when == when:
                done = fault.strike(call)
                if done:
                    return done
        return None

    def apply(self, call):
        cloud = self.cloud
        with cloud.lock:
            call.caller = sigv4.verify(call, cloud.callers.find, cloud.clock())
            if call.service == "s3":
                sigv4.check_md5(call)
            policy.authorize(call, identity.documents_of(call.caller), lambda number: self.tags_of(call, number),
                             lambda name: self.role_arn(call, name))
            if call.service == "ec2" and call.params.get("DryRun", "").lower() == "true":
                raise Refused("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
            self.check_strict(call)
            return self.replayed(call, lambda: paging.paged(call, cloud.page_size, self.answer_of))

    def answer_of(self, call):
        handler = missing.HANDLERS.get((call.service, call.action))
        done = handler(self.cloud, call) if handler else None
        return done or self.ask_moto(call)

    def replayed(self, call, make):
        """A create that carries a token is made once; RunInstances sees to it itself."""
        token = call.params.get("ClientToken") if call.service == "ec2" and call.action.startswith("Create") else None
        if not token:
            return make()
        key, said = (call.caller.account, call.region, call.action, token), {k: v for k, v in call.params.items() if k != "ClientToken"}
        if key in self.tokens:
            before, done = self.tokens[key]
            if before != said:
                raise Refused("IdempotentParameterMismatch", "Arguments on this idempotent request are inconsistent with arguments used in previous request(s).")
            return done
        done = make()
        if done.status < 400:
            self.tokens[key] = (said, done)
        return done

    @staticmethod
    def tags_of(call, number):
        from moto.ec2.models import ec2_backends
        account = call.caller.account
        tags = ec2_backends[account][call.region].tags.get(number)
        if tags:
            return tags
        for role in iam_backends[account]["aws"].roles.values():
            if role.name == number:
                return truth.iam_tags(role.tags)
        from .ec2 import rules
        for (owner, region, name), group in rules().placement_groups.items():
            if (owner, region) == (account, call.region) and number in (name, group["id"]):
                return group["tags"]
        return {}

    @staticmethod
    def role_arn(call, profile):
        role = identity.role_of_profile(call.caller.account, profile)
        return role.arn if role else None

    # ---- strict rules that need no look into moto's classes ----

    def check_strict(self, call):
        if call.service == "s3" and call.bucket:
            self.check_bucket(call)
        if (call.service, call.action) == ("sts", "AssumeRole"):
            self.check_assume(call)

    @staticmethod
    def check_assume(call):
        arn = call.params.get("RoleArn", "")
        account = arn.split(":")[4] if arn.count(":") >= 5 else ""
        roles = iam_backends[account]["aws"].roles.values() if account else []
        role = next((r for r in roles if r.arn == arn), None)
        if not role or not identity.trusts(role, call.caller):
            raise Refused("AccessDenied", f"User: {call.caller.arn} is not authorized to perform: sts:AssumeRole on resource: {arn}", 403)

    @staticmethod
    def check_bucket(call):
        for account, backends in list(s3_backends.items()):
            bucket = backends["aws"].buckets.get(call.bucket)
            if not bucket:
                continue
            if account != call.caller.account:
                if call.action == "CreateBucket":
                    raise Refused("BucketAlreadyExists", "The requested bucket name is not available.", 409)
                raise Refused("AccessDenied", "Access Denied", 403)
            if call.action == "CreateBucket" and call.region != "us-east-1":
                raise Refused("BucketAlreadyOwnedByYou", "Your previous request to create the named bucket succeeded and you already own it.", 409)
            if bucket.region_name != call.region and call.action not in ("GetBucketLocation", "CreateBucket"):
                raise Refused("AuthorizationHeaderMalformed", f"The authorization header is malformed; the region '{call.region}' is wrong; "
                              f"expecting '{bucket.region_name}'", 400, [("x-amz-bucket-region", bucket.region_name)])

    def after_apply(self, call, done):
        if done.status >= 400:
            return
        if call.service == "iam" and call.action in IAM_BORN:
            name, kind = IAM_BORN[call.action]
            self.cloud.rules.note_birth(kind, f"{kind}/{call.params.get(name)}")
        self.cloud.after_call(call)

    # ---- moto ----

    def ask_moto(self, call):
        environ = {key: value for key, value in call.environ.items() if key not in ("HTTP_X_MOTO_ACCOUNT_ID", "HTTP_TRANSFER_ENCODING", "wsgi.input_terminated")}
        body = call.moto_body if call.moto_body is not None else call.body
        environ.update({"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body)), "HTTP_X_MOTO_ACCOUNT_ID": call.caller.account})
        seen = []
        self.cloud.enter_client_call()
        try:
            body = b"".join(self.moto(environ, lambda status, headers, exc=None: seen.extend((status, headers))))
        except NotImplementedError as e:
            raise Refused("InvalidAction", f"The action {call.action} is not valid for this web service ({e})") from e
        except Exception as e:  # a fault of moto or of this test cloud: the test must hear of it
            text = traceback.format_exc()
            self.cloud.broken.append(text)
            print(f"test cloud: {call.service}:{call.action}\n{text}", file=sys.stderr)
            raise Refused("InternalError", f"the test cloud failed: {type(e).__name__}: {e}", 500) from e
        finally:
            self.cloud.leave_client_call()
        return Answer(int(seen[0].split()[0]), seen[1], body)


