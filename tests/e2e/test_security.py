"""Each defence of the HTTP service, attacked."""
import contextlib
import itertools
import os
import pathlib
import re
import resource
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse

import pytest

from conftest import BINARY, ROOT, processes, wait_for
from service import Service

METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"]
CLASSES = ["open", "read", "submit", "admin"]  # beside these "node": for a node's own token only
ROUTES = [(m, p, c.lower()) for m, p, c in
          re.findall(r'ROUTE\("([A-Z]+)", "([^"]+)", API_([A-Z]+),', (ROOT / "src/master/api/api.c").read_text())]
PATHS = sorted({p for _, p, _ in ROUTES})
HEADS = [("HEAD", p, c) for m, p, c in ROUTES if m == "GET" and p != "/login"]  # a GET without its body
sources = (f"127.0.{i // 250 + 1}.{i % 250 + 1}" for i in itertools.count())  # an address for each few failures


def concrete(path):
    """A path of the table with names that no run, log or token has."""
    return re.sub(r":\w+", "nothing", path)


# Who may call what.

def test_the_table_has_a_class_for_each_route():
    assert len(ROUTES) > 35 and {c for _, _, c in ROUTES} == {*CLASSES, "node"}
    assert {p for _, p, c in ROUTES if c == "open"} == {"/", "/run/:run", "/suites", "/suite/:suite", "/compare", "/assets/:name",
                                                        "/bin/:sha256", "/login", "/healthz"}


@pytest.mark.parametrize("who", ["nobody", "wrong", "expired", "revoked", "malformed", "old session"])
def test_no_route_answers_a_caller_without_a_valid_token(regatta, service, who):
    expired = service.new_token("admin", valid_ms=1)
    revoked = service.call("POST", "/api/v1/tokens", {"scope": "admin"}).json
    assert service.call("DELETE", f"/api/v1/tokens/{revoked['id']}").status == 200
    headers = {
        "nobody": {}, "wrong": {"Authorization": "Bearer " + "0" * 64},
        "expired": {"Authorization": f"Bearer {expired}"}, "revoked": {"Authorization": f"Bearer {revoked['token']}"},
        "malformed": {"Authorization": f"Basic {service.token}"},
        "old session": {"Cookie": f"regatta_session_{service.port}=" + "1" * 64, "Regatta-Request": "1"},
    }[who]
    time.sleep(0.002)  # the expired one lives for a millisecond
    source = next(sources)
    for i, (path, method) in enumerate(itertools.product(PATHS, METHODS)):
        if i % 8 == 0:
            source = next(sources)
        got = service.call(method, concrete(path), token=None, headers=headers, source=source)
        is_open = (method, path, "open") in ROUTES + HEADS
        if is_open:
            assert got.status in (200, 403, 404), (who, method, path, got)
            assert "error" not in got.headers
        else:
            assert got.status == 401, (who, method, path, got)
            assert got.headers["www-authenticate"] == "Bearer"
    assert regatta.json("version")  # the master is there, nobody shut it down


@pytest.mark.parametrize("scope", ["read", "submit", "admin"])
def test_a_scope_reaches_its_own_routes_and_no_more(regatta, service, scope):
    token = service.new_token(scope)
    for method, path, need in ROUTES + HEADS:
        if path == "/api/v1/shutdown" and scope == "admin" or path.endswith("/events") or path == "/login":
            continue
        got = service.call(method, concrete(path), token=token)
        if need == "node":
            assert got.status == 401, (method, path, got)
        elif CLASSES.index(scope) >= CLASSES.index(need):
            assert got.status not in (401, 403), (method, path, got)
        else:
            assert got.status == 403, (method, path, got)
            assert method == "HEAD" or "scope" in got.json["error"]["message"]


def test_methods_that_a_path_does_not_have_are_405(service):
    for path in PATHS:
        known = {m for m, p, _ in ROUTES + HEADS if p == path}
        for method in set(METHODS) - known:
            got = service.call(method, concrete(path))
            assert got.status == 405, (method, path, got)
            assert set(got.headers["allow"].split(", ")) == known
    for path in ["/api", "/api/v1", "/api/v1/", "/api/v2/runs", "/API/V1/runs", "//api/v1/runs", "/api/v1/runs/", "/metrics/",
                 "/run", "/assets", "/assets/", "/login/", "/.git/config", "/api/v1/runs/x/logs", "/a/b/c/d/e/f/g/h/i/j"]:
        got = service.get(path)
        assert got.status == 404, (path, got)
        assert service.get(path, token=None).status == 401


def test_a_token_cannot_make_a_stronger_one(service):
    for scope in ("read", "submit"):
        token = service.new_token(scope)
        assert service.call("POST", "/api/v1/tokens", {"scope": "admin"}, token=token).status == 403
        assert service.call("POST", "/api/v1/login", {}, token=token).status == 403


def test_wrong_tokens_are_slowed_down_and_right_ones_are_not(service):
    source = next(sources)
    wrong = [service.get("/api/v1/me", token="f" * 64, source=source) for _ in range(40)]
    assert wrong[0].status == 401 and wrong[-1].status == 429, [w.status for w in wrong]
    assert sum(w.status == 401 for w in wrong) <= 20
    assert [w for w in wrong if w.status == 429][0].headers["retry-after"] == "1"
    assert service.get("/api/v1/me", source=source).status == 200
    assert service.get("/api/v1/me", token="f" * 64, source=next(sources)).status == 401
    codes = [service.get("/login?code=" + "e" * 64, token=None, source=source).status for _ in range(30)]
    assert codes[-1] == 429


def test_another_user_cannot_use_the_socket(regatta, service):
    if os.geteuid() != 0:
        pytest.skip("needs another user")
    sock = str(regatta.home / "api.sock")
    for path in [regatta.home, *regatta.home.parents]:  # let it come as far as the socket itself
        if str(path).startswith("/tmp/"):
            os.chmod(path, 0o755)
    os.chmod(sock, 0o666)
    script = ("import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
              "s.sendall(b'GET /api/v1/me HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n')\nprint(s.recv(4096).decode())")
    done = subprocess.run(["python3", "-c", script, sock], capture_output=True, text=True, user=65534, group=65534)
    assert " 403 " in done.stdout and "another user" in done.stdout, done


# Browsers.

BAD_HOSTS = ["evil.example", "evil.example:{port}", "127.0.0.1:1", "127.0.0.1", "localhost", "127.0.0.1.evil.example:{port}",
             "localhost.evil.example:{port}", "127.0.0.2:{port}", "[::1]evil:{port}", "evil@127.0.0.1:{port}", "0.0.0.0:{port}",
             "127.1:{port}", "2130706433:{port}", "127.0.0.1:{port}:80", "127.0.0.1:{port}.", "", None]


def test_a_host_that_is_not_ours_is_refused(service):
    """DNS rebinding: a name of the attacker that resolves to 127.0.0.1."""
    for host in BAD_HOSTS:
        value = host.format(port=service.port) if host else host
        for path in ["/", "/healthz", "/api/v1/runs", "/login?code=x"]:
            got = service.get(path, headers={"Host": value})
            assert got.status in (400, 403), (value, path, got)
    for host in ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"]:
        assert service.get("/api/v1/me", headers={"Host": f"{host}:{service.port}"}).status == 200


def test_an_origin_that_is_not_ours_is_refused_on_every_method(service):
    cookie = service.login()
    for origin in ["http://evil.example", "null", "", f"https://{service.own}", "http://127.0.0.1", "http://127.0.0.1:1",
                   f"http://{service.own}.evil.example", f"http://{service.own}/", f"http://localhost:{service.port}", "file://"]:
        for method in METHODS:
            for auth in ({"Authorization": f"Bearer {service.token}"}, {"Cookie": cookie, "Regatta-Request": "1"}):
                got = service.call(method, "/api/v1/runs", token=None, headers={"Origin": origin, **auth})
                assert got.status == 403, (origin, method, got)
                assert "access-control-allow-origin" not in got.headers
    assert service.get("/api/v1/me", headers={"Origin": f"http://{service.own}"}).status == 200


def test_a_cookie_alone_changes_nothing(regatta, service):
    cookie = service.login()
    run = regatta.submit("--", "sleep", "1000")
    regatta.wait(run, state="running")
    own = f"http://{service.own}"
    for method, path, need in [(m, p.replace(":run", run), c) for m, p, c in ROUTES if m not in ("GET", "HEAD")]:
        for headers in ({}, {"Origin": own}, {"Regatta-Request": "0"}, {"Regatta-Request": "1", "Origin": "http://evil.example"},
                        {"Regatta-Request": "1", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"},
                        {"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"}):
            got = service.call(method, concrete(path), "{}", token=None, headers={"Cookie": cookie, **headers})
            assert got.status == (401 if need == "node" else 403), (method, path, headers, got)
    assert regatta.status(run)["state"] == "running" and not regatta.status(run)["cancel_asked"]
    good = {"Cookie": f"other=1; {cookie}", "Regatta-Request": "1", "Origin": own, "Sec-Fetch-Site": "same-origin"}
    assert service.call("POST", f"/api/v1/runs/{run}/cancel", '{"hurry":true}', token=None, headers=good).status == 200
    assert regatta.wait(run)["verdict"] == "cancelled"


def test_a_page_on_another_port_cannot_read_with_our_cookie(service):
    """Cookies know no ports: the browser sends it, and says where from."""
    cookie = service.login()
    for site in ("cross-site", "same-site"):
        for mode in ("no-cors", "cors", "websocket"):
            got = service.get("/api/v1/runs", token=None,
                              headers={"Cookie": cookie, "Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode})
            assert got.status == 403, (site, mode, got)
    assert service.get("/api/v1/runs", token=None, headers={"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}).status == 200


def test_a_session_ends_with_logout(service):
    cookie = service.login()
    headers = {"Cookie": cookie, "Regatta-Request": "1"}
    assert service.get("/api/v1/me", token=None, headers=headers).status == 200
    gone = service.call("POST", "/api/v1/logout", token=None, headers=headers)
    assert gone.status == 200 and "Max-Age=0" in gone.headers["set-cookie"]
    assert service.get("/api/v1/me", token=None, headers=headers).status == 401


def test_streams_end_with_what_they_were_opened_with(regatta, service):
    """A revoked or expired token, or a session that was left, does not go on watching."""
    run = regatta.submit("--", "sh", "-c", "while true; do echo x; sleep 0.05; done")
    regatta.wait(run, state="running")
    made = service.call("POST", "/api/v1/tokens", {"scope": "read"}).json
    cookie = service.login()
    expired = service.new_token("read", valid_ms=3000)
    kinds = {"expired": {"Authorization": f"Bearer {expired}"}, "revoked": {"Authorization": f"Bearer {made['token']}"},
             "session": {"Cookie": cookie}, "own": {"Authorization": f"Bearer {service.token}"}}
    paths = ("/api/v1/events", f"/api/v1/runs/{run}/watch", f"/api/v1/runs/{run}/logs/worker-0?follow=1")
    streams = {}
    for (kind, headers), path in itertools.product(kinds.items(), paths):
        s = socket.create_connection((service.host, service.port), timeout=20)
        lines = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: {service.own}\r\n{lines}\r\n".encode())
        assert s.recv(4096).startswith(b"HTTP/1.1 200"), (kind, path)
        streams[kind, path] = s
    assert service.call("DELETE", f"/api/v1/tokens/{made['id']}").status == 200
    leave = service.call("POST", "/api/v1/logout", token=None, headers={"Cookie": cookie, "Regatta-Request": "1"})
    assert leave.status == 200
    for (kind, _), s in streams.items():
        try:
            while kind != "own" and s.recv(65536):  # a stream that goes on is a timeout
                pass
        except ConnectionError:
            pass
    for path in paths:
        streams["own", path].setblocking(False)
        with pytest.raises(BlockingIOError):
            while streams["own", path].recv(1 << 20):
                pass
    for s in streams.values():
        s.close()
    regatta("kill", "--now", run)


def test_every_answer_forbids_what_browsers_might_do_with_it(service):
    csp = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
           "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
    for path in ["/", "/assets/app.js", "/healthz", "/login?code=x", "/api/v1/runs", "/metrics", "/list_logs", "/status",
                 "/api/v1/runs/nothing", "/nothing"]:
        for token in ("own", None):
            got = service.get(path, token=token)
            assert got.headers["content-security-policy"] == csp, path
            assert got.headers["x-content-type-options"] == "nosniff"
            assert got.headers["referrer-policy"] == "no-referrer"
            assert got.headers["cache-control"] == ("no-cache" if path in ("/", "/assets/app.js") else "no-store")
            assert got.type in ("text/html", "text/javascript", "text/plain", "application/json"), path
    # A request that no handler sees.
    raw = raw_exchange(service, b"GET /\x01 HTTP/1.1\r\n\r\n")
    assert raw.startswith(b"HTTP/1.1 400") and b"nosniff" in raw and b"text/plain" in raw


XSS = ["<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "</title><svg/onload=alert(1)>", "javascript:alert(1)",
       "{{constructor.constructor('alert(1)')()}}", "\u2028<script>", "<!--", "]]>", "\x1b[31m", "%3Cscript%3E", "';alert(1)//"]


def test_what_a_job_says_is_never_html(regatta, service):
    regatta.script("import sys\n" + "".join(f"print({x!r}); print({x!r}, file=sys.stderr)\n" for x in XSS) + "sys.exit(3)\n")
    run = regatta.submit(regatta.job(f'name = "x"\ncommand = ["python3", "{regatta.cwd}/job.py", "<script>alert(2)</script>"]\n'))
    regatta.wait(run)
    for path, kind in [(f"/api/v1/runs/{run}", "application/json"), (f"/api/v1/runs/{run}/logs/worker-0", "application/octet-stream"),
                       (f"/log/{run}/worker-0.log", "text/plain"), (f"/log/{run}/worker-0.err.log", "text/plain"),
                       (f"/api/v1/runs/{run}/job", "application/toml"), (f"/api/v1/runs/{run}/plan", "application/json"),
                       (f"/api/v1/runs/{run}/events", "application/x-ndjson"), ("/list_logs", "text/plain")]:
        got = service.get(path)
        assert (got.status, got.type) == (200, kind), (path, got)
        assert got.headers["x-content-type-options"] == "nosniff"
    assert service.get(f"/api/v1/runs/{run}/logs/worker-0").body == "".join(x + "\n" for x in XSS).encode()
    for x in XSS:  # what is not found is named in the error, as JSON
        got = service.get("/api/v1/runs/" + urllib.parse.quote(x, safe=""))
        assert got.status in (404, 400) and got.type == "application/json" and got.json["error"]["message"]


# Paths.

def traversals():
    """More than 500 spellings of a path that leads out of the directory."""
    dots = ["..", "%2e%2e", "%2E%2E", ".%2e", "%2e.", "%252e%252e", "..;", "%c0%ae%c0%ae", "%uff0e%uff0e", "..%00", "....", "%e0%40%ae"]
    slashes = ["/", "%2f", "%2F", "\\", "%5c", "%252f", "//", "/./", "%c0%af", "%2f%2f"]
    targets = ["etc/passwd", "token", "regatta.db", "master.log", "tls.key"]
    for d, s, t in itertools.product(dots, slashes, targets):
        yield (d + s) * 3 + t.replace("/", s)
    yield from ["/etc/passwd", "%2fetc%2fpasswd", "file:///etc/passwd", "%00", "x%00.log", ".", "..", "worker-0.log%00",
                "worker-0.log/", "/worker-0.log", "./worker-0.log", "worker-0.log%2f..", "con", "%%%", "%", "%zz", "*", "~root"]


def test_no_spelling_leads_out_of_the_logs(regatta, service):
    run = regatta.submit("--", "true")
    regatta.wait(run)
    secret = service.token.encode()
    tried = 0
    for bad in traversals():
        for path in (f"/log/{bad}", f"/log/{run}/{bad}", f"/api/v1/runs/{run}/logs/{bad}", f"/api/v1/runs/{bad}"):
            raw = raw_exchange(service, f"GET {path} HTTP/1.1\r\nHost: {service.own}\r\nAuthorization: Bearer {service.token}\r\n"
                                        "Connection: close\r\n\r\n".encode())
            status = int(raw.split(b" ", 2)[1])
            assert status in (400, 404), (path, raw)
            assert b"root:" not in raw and secret not in raw and b"SQLite" not in raw, path
            tried += 1
    assert tried > 2000
    # The name itself, coded or not, is found.
    assert service.get(f"/log/{run}/worker-0.log").status == 200
    assert service.get(f"/log/{run}%2Fworker-0%2Elog").status == 200


def test_a_link_among_the_logs_is_not_followed(regatta, service):
    run = regatta.submit("--", "true")
    regatta.wait(run)
    log = regatta.home / "runs" / run / "logs" / "worker-0.log"
    log.unlink()
    log.symlink_to("/etc/passwd")
    for path in (f"/log/{run}/worker-0.log", f"/api/v1/runs/{run}/logs/worker-0"):
        assert b"root:" not in service.get(path).body


# Limits.

def raw_exchange(service, request, seconds=15):
    """Sends bytes; all that comes until the end, or until the server has cut us."""
    with socket.create_connection((service.host, service.port), timeout=seconds) as s:
        got = b""
        try:
            s.sendall(request)
            s.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        try:
            while chunk := s.recv(65536):
                got += chunk
        except ConnectionError:
            pass
        return got


def test_what_is_too_large_is_refused(service):
    head = f"Host: {service.own}\r\nAuthorization: Bearer {service.token}\r\n"
    assert raw_exchange(service, f"GET /{'a' * 20000} HTTP/1.1\r\n{head}\r\n".encode()).startswith(b"HTTP/1.1 414")
    assert raw_exchange(service, f"GET / HTTP/1.1\r\n{head}X: {'a' * 20000}\r\n\r\n".encode()).startswith(b"HTTP/1.1 431")
    many = "".join(f"X-{i}: 1\r\n" for i in range(100))
    assert raw_exchange(service, f"GET / HTTP/1.1\r\n{head}{many}\r\n".encode()).startswith(b"HTTP/1.1 431")
    big = f"POST /api/v1/runs HTTP/1.1\r\n{head}Content-Length: {2 << 20}\r\n\r\n".encode()
    assert raw_exchange(service, big + b"x" * 1000).startswith(b"HTTP/1.1 413")
    for length in ("-1", "+5", "1e3", "0x10", "99999999999999999999", "5, 5", ""):
        bad = f"POST /api/v1/runs HTTP/1.1\r\n{head}Content-Length: {length}\r\n\r\n".encode()
        assert raw_exchange(service, bad).startswith((b"HTTP/1.1 400", b"HTTP/1.1 413")), length
    # Nobody uploads without a token, and nothing is stored for them.
    blob = f"PUT /api/v1/blobs/{'0' * 64} HTTP/1.1\r\nHost: {service.own}\r\nContent-Length: 100000\r\n\r\n".encode()
    assert raw_exchange(service, blob + b"x" * 1000).startswith(b"HTTP/1.1 401")
    assert list((service.user.home / "blobs").iterdir()) == []
    deep = "[" * 100000
    assert service.call("POST", "/api/v1/runs", deep).status == 400
    assert service.get("/healthz").status == 200


def test_a_body_that_nobody_reads_is_not_taken(service):
    """Else a stranger could have us keep a megabyte for each connection."""
    for path, token in (("/healthz", None), ("/", None), ("/api/v1/runs", service.token)):
        auth = f"Authorization: Bearer {token}\r\n" if token else ""
        for method in ("GET", "HEAD"):
            with socket.create_connection((service.host, service.port), timeout=10) as s:
                s.sendall(f"{method} {path} HTTP/1.1\r\nHost: {service.own}\r\n{auth}Content-Length: 1000000\r\n\r\n".encode())
                got = s.recv(65536)  # at once, though the body does not come
                assert got.startswith(b"HTTP/1.1 400") and b"Connection: close" in got, (method, path, got)
            empty = service.call(method, path, token=token, headers={"Content-Length": "0"})
            assert empty.status == 200, (method, path, empty)


def test_requests_that_two_servers_would_read_differently_are_refused(service):
    head = f"Host: {service.own}\r\nAuthorization: Bearer {service.token}\r\n"
    for lines in ["Content-Length: 5\r\nContent-Length: 6\r\n", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                  "Transfer-Encoding: chunked\r\n", f"Host: {service.own}\r\n", "X: a\r\n b\r\n", "X : a\r\n", "X: a\nY: b\r\n",
                  ": a\r\n", "X\x00: a\r\n"]:
        got = raw_exchange(service, f"POST /api/v1/runs HTTP/1.1\r\n{head}{lines}\r\nhello".encode())
        assert got.startswith((b"HTTP/1.1 400", b"HTTP/1.1 411")), (lines, got)
        assert got.count(b"HTTP/1.1 ") == 1
    assert raw_exchange(service, f"GET http://{service.own}/healthz HTTP/1.1\r\n{head}\r\n".encode()).startswith(b"HTTP/1.1 400")
    assert raw_exchange(service, b"GET /healthz HTTP/1.1\r\n\r\n").startswith((b"HTTP/1.1 400", b"HTTP/1.1 403"))


# Slow and many.

class Watcher(threading.Thread):
    """Another client, all the while: its slowest answer."""

    def __init__(self, service):
        super().__init__(daemon=True)
        self.service, self.stop, self.worst, self.n, self.error = service, threading.Event(), 0, 0, None

    def run(self):
        try:
            while not self.stop.is_set():
                start = time.monotonic()
                assert self.service.get("/api/v1/me").status == 200
                self.worst = max(self.worst, time.monotonic() - start)
                self.n += 1
                self.stop.wait(0.02)
        except Exception as e:  # told by end()
            self.error = e

    def end(self):
        self.stop.set()
        self.join(60)
        assert self.error is None, self.error
        assert self.n > 10 and self.worst < 5, (self.n, self.worst)


@pytest.mark.skipif(not shutil.which("slowhttptest"), reason="slowhttptest (Debian) is not installed")
@pytest.mark.parametrize("mode", ["-H", "-B", "-X"])
def test_slow_clients_do_not_hinder_others(service, tmp_path, mode):
    watcher = Watcher(service)
    watcher.start()
    url = f"{service.url}/healthz"
    done = subprocess.run(["slowhttptest", mode, "-c", "300", "-r", "300", "-l", "13", "-i", "2", "-p", "3", "-u", url,
                           "-o", str(tmp_path / "slow"), "-w", "1", "-y", "2", "-n", "2", "-z", "1"],
                          cwd=tmp_path, capture_output=True, text=True, timeout=60)
    watcher.end()
    assert "slow" in done.stdout.lower(), done
    assert service.get("/healthz").status == 200


def test_a_request_that_is_never_finished_is_cut(service):
    begun = [b"GET / HTTP/1.1\r\nHost: x\r\n", b"G"]
    socks = []
    for text in begun:
        s = socket.create_connection((service.host, service.port), timeout=30)
        s.sendall(text)
        socks.append(s)
    start = time.monotonic()
    for s in socks:
        while s.recv(4096):
            pass
        s.close()
    assert time.monotonic() - start < 20


def test_thousands_of_idle_connections_do_not_stop_runs(regatta, service):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    want = min(10_000, hard - 500)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    socks = []
    try:
        for i in range(want):
            s = socket.socket()
            s.bind((f"127.1.{i // 5000}.1", 0))
            s.settimeout(10)
            s.connect((service.host, service.port))
            socks.append(s)
        assert len(socks) >= 2000
        done = regatta("run", "-n", "4", "--", "sh", "-c", "echo $REGATTA_RANK; seq 1 1000")
        assert "succeeded" in done.out
        assert service.get("/api/v1/me").status == 200
    finally:
        for s in socks:
            s.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_master_with_few_descriptors_keeps_some_for_its_agents(regatta):
    """More connections than it has files: the API takes half of them, does not spin, and runs go on."""
    limited = subprocess.Popen(["sh", "-c", f"ulimit -n 120; exec {BINARY} master --listen 127.0.0.1:0"], env=regatta.env,
                               cwd=regatta.cwd, stderr=subprocess.DEVNULL)
    regatta.children.append(limited)
    wait_for(lambda: (regatta.home / "api.sock").exists(), what="the master")
    url = (regatta.home / "http").read_text().split()[0]
    host, port = url.split("//")[1].split(":")
    socks = [socket.create_connection((host, int(port))) for _ in range(300)]

    def cpu():
        fields = pathlib.Path(f"/proc/{limited.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    before = cpu()
    time.sleep(1)
    assert cpu() - before < 0.5
    assert len(os.listdir(f"/proc/{limited.pid}/fd")) < 100
    assert "succeeded" in regatta("run", "-n", "2", "--", "true").out
    for s in socks:
        s.close()


def test_a_run_with_more_nodes_than_descriptors_is_refused_at_once(regatta):
    """64 are for the master, 50 for logs, and 86 are left for connections."""
    limited = subprocess.Popen(["sh", "-c", f"ulimit -n 200; exec {BINARY} master --listen 127.0.0.1:0"], env=regatta.env,
                               cwd=regatta.cwd, stderr=subprocess.DEVNULL)
    regatta.children.append(limited)
    wait_for(lambda: (regatta.home / "api.sock").exists(), what="the master")
    for nodes in (400, 87):
        refused = regatta("run", "-d", "-n", nodes, "--", "true", code=5)
        assert f"{nodes} nodes" in refused.err and "200 (ulimit -n)" in refused.err
    assert regatta.json("ps", "-a") == []
    assert not list((regatta.home / "runs").glob("*/*.node"))
    busy = regatta.submit("-n", 40, "--", "sleep", "1000")  # what runs counts too
    regatta.wait(busy, state="running")
    assert len(os.listdir(f"/proc/{limited.pid}/fd")) < 200
    assert "87 nodes" in regatta("run", "-d", "-n", 47, "--", "true", code=5).err
    assert "succeeded" in regatta("run", "-n", 46, "--", "true").out
    regatta("kill", "--now", busy)


def test_more_logs_than_descriptors_are_stored_whole(regatta):
    """50 of 160 logs can be open; each gets a line again and again, the last one after all others are closed for it."""
    limited = subprocess.Popen(["sh", "-c", f"ulimit -n 200; exec {BINARY} master --listen 127.0.0.1:0"], env=regatta.env,
                               cwd=regatta.cwd, stderr=subprocess.DEVNULL)
    regatta.children.append(limited)
    wait_for(lambda: (regatta.home / "api.sock").exists(), what="the master")
    go = regatta.cwd / "go"
    job = f"for i in 1 2 3; do while [ ! -e {go}$i ]; do sleep 0.5; done; echo out $i; echo err $i >&2; done"
    run = regatta.submit("-n", 80, "--", "sh", "-c", job)
    logs = regatta.home / "runs" / run / "logs"

    def open_logs():
        n = 0
        for fd in os.listdir(f"/proc/{limited.pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                n += os.readlink(f"/proc/{limited.pid}/fd/{fd}").startswith(str(logs))
        return n
    for i in (1, 2, 3):
        if i > 1:
            assert 0 < open_logs() <= 50
        (regatta.cwd / f"go{i}").touch()
        for kind in ("out", "err"):
            text = "".join(f"{kind} {n}\n" for n in range(1, i + 1))
            names = [logs / f"worker-{rank}{'.err' if kind == 'err' else ''}.log" for rank in range(80)]
            wait_for(lambda: all(f.exists() and f.read_text() == text for f in names), what=f"line {i}")
    assert regatta.wait(run)["verdict"] == "succeeded"


def test_the_user_gets_in_when_every_connection_is_at_work(regatta):
    limited = subprocess.Popen(["sh", "-c", f"ulimit -n 120; exec {BINARY} master --listen 127.0.0.1:0"], env=regatta.env,
                               cwd=regatta.cwd, stderr=subprocess.DEVNULL)
    regatta.children.append(limited)
    wait_for(lambda: (regatta.home / "api.sock").exists(), what="the master")
    service = Service(regatta)
    token = service.new_token("read")
    socks = []
    for _ in range(200):
        s = socket.create_connection((service.host, service.port), timeout=10)
        socks.append(s)
        s.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: {service.own}\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        if not s.recv(4096).startswith(b"HTTP/1.1 200"):
            break
    assert 10 < len(socks) < 100
    assert service.get("/healthz").status == 503  # for strangers it is full
    assert "succeeded" in regatta("run", "--", "true").out
    assert len(regatta.json("ps", "-a")) == 1
    for s in socks:
        s.close()


def test_a_job_gets_the_limit_of_open_files_that_the_user_has(regatta):
    done = subprocess.run(["sh", "-c", f"ulimit -Sn 777; exec {BINARY} run -f -- sh -c 'ulimit -Sn'"], env=regatta.env,
                          cwd=regatta.cwd, capture_output=True, text=True)
    assert "| 777" in done.stdout + done.stderr, done


# Secrets.

def test_secrets_are_nowhere_in_plain_text(regatta, service):
    """Every token, code and cookie, in every file of the home, every command line and environment, and in the log."""
    made = regatta("token", "new", "--scope", "admin", "--name", "canary").out.strip()
    code = regatta("ui", "--print").out.strip().split("code=")[1]
    cookie = service.get(f"/login?code={code}", token=None).headers["set-cookie"].split(";")[0].split("=")[1]
    spare = regatta("ui", "--print").out.strip().split("code=")[1]
    assert service.get("/api/v1/me", token=made).status == 200
    assert service.get("/api/v1/me?token=" + made, token=None).status == 401  # and it is not logged either
    run = regatta.submit("--", "sh", "-c", "env; cat /proc/self/environ")
    regatta.wait(run)
    status = service.get("/status").body
    regatta("master", "--stop")
    secrets = {"made": made, "code": code, "cookie": cookie, "spare": spare, "user's": service.token}
    for path in (p for p in regatta.home.rglob("*") if p.is_file()):
        content = path.read_bytes()
        for name, secret in secrets.items():
            if name == "user's" and path.name == "token":
                assert path.stat().st_mode & 0o077 == 0
                continue
            assert secret.encode() not in content, (name, path)
            assert bytes.fromhex(secret) not in content, (name, path)
    for name, secret in secrets.items():
        assert secret.encode() not in status, name
        for pid, (cmd, env) in processes().items():
            if pid != os.getpid():
                assert secret.encode() not in cmd and secret.encode() not in env, (name, pid, cmd)
