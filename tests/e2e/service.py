"""The HTTP service of a master, spoken to from the outside."""
import contextlib
import http.client
import json
import socket
import time

from conftest import wait_for


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode(errors="replace")

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def type(self):
        return (self.headers.get("content-type") or "").split(";")[0]

    def __repr__(self):
        return f"<{self.status} {dict(self.headers)} {self.body[:300]!r}>"


class Service:
    """Of one user: where it is, and calls to it."""

    def __init__(self, user):
        self.user = user
        self.url = (user.home / "http").read_text().split()[0]
        self.host, port = self.url.split("//")[1].rsplit(":", 1)
        self.port = int(port)
        self.own = f"{self.host}:{self.port}"
        self.token = (user.home / "token").read_text().strip()

    def call(self, method, path, body=None, token="own", headers=None, source=None, timeout=30):
        """`token`: "own" is the user's, None is none.  `headers` replace what would be sent."""
        sent = {"Authorization": f"Bearer {self.token if token == 'own' else token}"} if token else {}
        sent.update(headers or {})
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        c = http.client.HTTPConnection(self.host, self.port, timeout=timeout,
                                       source_address=(source, 0) if source else None)
        try:
            c.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in {"Host": self.own, **sent}.items():
                if value is not None:
                    c.putheader(name, value)
            if isinstance(body, str):
                body = body.encode()
            if body is not None or method in ("POST", "PUT", "PATCH"):
                c.putheader("Content-Length", str(len(body or b"")))
            c.endheaders(body)
            r = c.getresponse()
            return Answer(r.status, r.headers, r.read())
        finally:
            c.close()

    def get(self, path, **kw):
        return self.call("GET", path, **kw)

    def new_token(self, scope, **kw):
        a = self.call("POST", "/api/v1/tokens", {"scope": scope, **kw})
        assert a.status == 201, a
        return a.json["token"]

    def login(self):
        """A cookie header of a new session."""
        url = self.user("ui", "--print").out.strip()
        a = self.get(url[len(self.url):], token=None)
        assert a.status == 303, a
        return a.headers["set-cookie"].split(";")[0]

    @contextlib.contextmanager
    def events(self, path="/api/v1/events", headers=None):
        """A reader of server-sent events: call it with a condition on the list of events."""
        s = socket.create_connection((self.host, self.port), timeout=30)
        lines = "".join(f"{k}: {v}\r\n" for k, v in (headers or {}).items())
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: {self.own}\r\nAuthorization: Bearer {self.token}\r\n{lines}\r\n".encode())
        try:
            yield EventReader(s)
        finally:
            s.close()


class EventReader:
    """Reads as EventSource does: (id, data) of every event, comments apart."""

    def __init__(self, sock):
        self.file = sock.makefile("rb")
        self.sock = sock
        self.status = int(self.file.readline().split()[1])
        while self.file.readline().strip():
            pass
        self.seen, self.comments, self.last_id, self.text = [], 0, None, b""

    def until(self, condition, seconds=30):
        deadline = time.monotonic() + seconds
        while not condition(self):
            left = deadline - time.monotonic()
            assert left > 0, f"waited {seconds} s; events: {self.seen[-5:]}"
            self.sock.settimeout(left)
            size = int(self.file.readline().strip() or b"0", 16)
            if not size:
                raise AssertionError(f"the stream ended; events: {self.seen[-5:]}")
            self.text += self.file.read(size)
            self.file.readline()
            self.take()
        return self.seen

    def take(self):
        while b"\n\n" in self.text:
            block, self.text = self.text.split(b"\n\n", 1)
            data = None
            for line in block.decode().split("\n"):
                if line.startswith(":"):
                    self.comments += 1
                elif line.startswith("id: "):
                    self.last_id = int(line[4:])
                elif line.startswith("data: "):
                    data = json.loads(line[6:])
            if data is not None:
                self.seen.append((self.last_id, data))


def start_service(user, listen="127.0.0.1:0"):
    """A master in the foreground; its service."""
    child = user.start("master", "--listen", listen)
    wait_for(lambda: (user.home / "api.sock").exists() or child.poll() is not None, what="the master")
    assert child.poll() is None, child.stderr.read()
    return Service(user)
