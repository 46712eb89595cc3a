"""`regatta ui` of a master that only commands reach, through a provider that passes requests on: the page is served from here."""
import contextlib
import http.client
import http.server
import json
import select
import signal
import socket
import ssl
import threading

import pytest

from conftest import wait_for
from service import EventReader
from test_context import Lab, laptop, lab  # noqa: F401

PROXY = "/api/v1/namespaces/team/services/https:far-regatta:5436/proxy"
JOB = "name = \"far\"\ncommand = [\"sh\", \"-c\", \"echo begun; until [ -e go ]; do sleep 0.05; done; echo done\"]\n"


class ApiServer:
    """Of Kubernetes, as far as the service proxy goes: whoever has its token is passed on, and the token is not."""

    def __init__(self, address, port):
        outer = self
        self.paths = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
                assert self.headers["Authorization"] == "Bearer of-the-cluster" and self.path.startswith(PROXY)
                path = self.path[len(PROXY):]
                outer.paths.append((self.command, path))
                passed = {n: v for n, v in self.headers.items() if n.lower() in ("x-regatta-token", "content-type", "accept")}
                c = http.client.HTTPSConnection(address, port, context=ssl._create_unverified_context(), timeout=60)
                self.close_connection = True  # of an answer that is not whole
                with contextlib.closing(c), contextlib.suppress(OSError):
                    c.request(self.command, path, body, passed)
                    self.relay(c.getresponse())

            def relay(self, r):
                self.send_response(r.status)
                for name, value in r.headers.items():
                    if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                        self.send_header(name, value)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                while not select.select([self.connection], [], [], 0)[0] and (piece := r.read1(65536)):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\n\r\n")
                self.close_connection = False

            do_GET = do_POST = do_DELETE = answer
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def cluster(lab, laptop, tmp_path):  # noqa: F811
    """The lab's master is in a cluster, and the laptop has a context with it."""
    made = ApiServer(lab.address, lab.service.port)
    config = tmp_path / "kubeconfig"
    config.write_text(f"current-context: c\nclusters: [{{name: c, cluster: {{server: \"http://127.0.0.1:{made.server.server_port}\"}}}}]\n"
                      "users: [{name: u, user: {token: of-the-cluster}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n")
    laptop.env["KUBECONFIG"] = str(config)
    (laptop.home / "contexts").mkdir(parents=True)
    laptop.home.chmod(0o700)
    context = laptop.home / "contexts/far.json"
    context.write_text(json.dumps({"url": "kube://team/far-regatta:5436", "pin": lab.pin, "token": lab.service.token}))
    context.chmod(0o600)
    yield made
    made.close()


class Page:
    """What a browser does with the link."""

    def __init__(self, child):
        self.child = child
        self.link = child.stdout.readline().decode().strip()
        self.own = self.link.split("/")[2]
        self.host, port = self.own.split(":")
        self.port = int(port)
        self.cookie = None

    def call(self, method, path, body=None, **headers):
        c = http.client.HTTPConnection(self.host, self.port, timeout=30)
        with contextlib.closing(c):
            sent = {"Cookie": self.cookie, "Sec-Fetch-Site": "same-origin", **{n.replace("_", "-"): v for n, v in headers.items()}}
            c.request(method, path, body, {n: v for n, v in sent.items() if v is not None})
            r = c.getresponse()
            return r.status, r.headers, r.read()

    def log_in(self):
        status, headers, _ = self.call("GET", self.link.split(self.own)[1])
        assert status == 303, status
        self.cookie = headers["Set-Cookie"].split(";")[0]
        assert "HttpOnly; SameSite=Strict" in headers["Set-Cookie"]
        return headers["Location"]

    def events(self):
        s = socket.create_connection((self.host, self.port), timeout=30)
        s.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: {self.own}\r\nCookie: {self.cookie}\r\n\r\n".encode())
        return s, EventReader(s)

    def end(self):
        self.child.send_signal(signal.SIGINT)
        assert self.child.wait(30) == 0, self.child.stderr.read()


def test_the_page_of_a_run_in_a_cluster_is_whole(lab, laptop, cluster):  # noqa: F811
    run = lab.user.submit(lab.user.job(JOB))
    lab.user.wait(run, state="running")
    page = Page(laptop.start("ui", "--print", "--master", "far", run))
    assert page.call("GET", "/api/v1/runs")[0] == 401  # nobody but whoever has the link
    assert page.log_in() == f"/run/{run}"
    assert page.call("GET", page.link.split(page.own)[1])[0] == 403  # once
    status, headers, body = page.call("GET", f"/run/{run}")
    assert status == 200 and headers["Content-Encoding"] == "gzip" and "default-src 'none'" in headers["Content-Security-Policy"] and body
    assert json.loads(page.call("GET", f"/api/v1/runs/{run}")[2])["state"] == "running"
    s, events = page.events()
    with contextlib.closing(s):
        (lab.user.cwd / "go").touch()
        wait_for(lambda: b"done" in page.call("GET", f"/api/v1/runs/{run}/logs/worker-0")[2], what="the log, passed on")
        events.until(lambda e: any("succeeded" in json.dumps(data) for _, data in e.seen))
    assert page.call("GET", "/api/v1/runs/nowhere")[0] == 404
    assert not [path for _, path in cluster.paths if not path.startswith("/api/v1/")]
    page.end()


def test_other_pages_and_names_get_nothing(lab, laptop, cluster):  # noqa: F811
    run = lab.user.submit(lab.user.job(JOB))
    page = Page(laptop.start("ui", "--print", "--master", "far", run))
    page.log_in()
    before = len(cluster.paths)
    for method, path, headers in (("GET", "/api/v1/runs", {"Host": "evil.test"}), ("GET", "/", {"Host": "evil.test"}),
                                  ("GET", "/api/v1/runs", {"Origin": "http://127.0.0.1:1"}),
                                  ("GET", "/api/v1/runs", {"Sec_Fetch_Site": "cross-site"}), ("POST", f"/api/v1/runs/{run}/cancel", {})):
        assert page.call(method, path, **headers)[0] == 403, (method, path, headers)
    assert page.call("GET", "/elsewhere/than/the/page")[0] == 404
    assert len(cluster.paths) == before
    assert page.call("POST", f"/api/v1/runs/{run}/cancel", "{}", Regatta_Request="1", Content_Type="application/json")[0] == 200
    lab.user.wait(run)
    page.end()


def test_a_page_for_readers_changes_nothing(lab, laptop, cluster):  # noqa: F811
    run = lab.user.submit(lab.user.job(JOB))
    page = Page(laptop.start("ui", "--print", "--scope", "read", "--master", "far", run))
    page.log_in()
    assert json.loads(page.call("GET", "/api/v1/me")[2])["scope"] == "read"
    assert page.call("POST", f"/api/v1/runs/{run}/cancel", "{}", Regatta_Request="1")[0] == 403
    lab.user("kill", run)
    lab.user.wait(run)
    lab.kill()
    status, _, body = page.call("GET", "/api/v1/runs")
    assert status == 502 and b"message" in body, (status, body)
    page.end()
