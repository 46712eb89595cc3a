"""The HTTP service as docs/api.md and docs/openapi.yaml describe it, checked against the running binary."""
import base64
import contextlib
import hashlib
import http.client
import json
import os
import re
import shutil
import socket
import sqlite3
import ssl
import stat
import subprocess
import urllib.parse
import urllib.request

import jsonschema
import openapi_spec_validator
import pytest
import yaml

from conftest import ROOT, wait_for
from service import Service, start_service


def peer(name):
    """A program of Debian's prometheus: installed, or unpacked by tools/setup."""
    return shutil.which(name, path=os.environ["PATH"] + os.pathsep + str(ROOT / "build/peers/usr/bin"))


SPEC = yaml.safe_load((ROOT / "docs" / "openapi.yaml").read_text())
OPERATIONS = {o["operationId"]: (m.upper(), p, o) for p, item in SPEC["paths"].items() for m, o in item.items()
              if m != "parameters"}
JOB = """
name = "demo"
command = ["sh", "-c", "echo begin; for i in 1 2 3; do echo step $i loss=0.$i; done; echo oops >&2"]
[metrics.loss]
pattern = 'step (?<step>\\d+) loss=(?<value>\\S+)'
better = "lower"
"""


def check_answer(operation, answer):
    """The answer is one that the OpenAPI file allows for this operation."""
    method, path, o = OPERATIONS[operation]
    response = o["responses"].get(str(answer.status)) or o["responses"].get("default")
    assert response, f"{method} {path}: {answer.status} is not described"
    while "$ref" in response:
        response = SPEC["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
    for name, header in response.get("headers", {}).items():
        value = answer.headers.get(name)
        assert value is not None, f"{method} {path}: no header {name}"
        validate(value, header["schema"])
    content = response.get("content")
    if not content:
        assert not answer.body
        return answer
    assert answer.type in content, f"{method} {path}: {answer.type} is not one of {list(content)}"
    schema = content[answer.type]["schema"]
    if answer.type == "application/json":
        validate(answer.json, schema)
    elif answer.type == "application/x-ndjson":
        lines = answer.body.splitlines()
        assert lines
        for line in lines:
            validate(json.loads(line), schema)
    else:
        validate(answer.text, schema)
    return answer


def validate(value, schema):
    jsonschema.validate(value, {**schema, "components": SPEC["components"]}, cls=jsonschema.Draft202012Validator)


@pytest.fixture
def service(regatta):
    return start_service(regatta, "--listen", "127.0.0.1:0")


@pytest.fixture
def run(regatta, service):
    run = regatta.submit(regatta.job(JOB))
    assert regatta.wait(run)["verdict"] == "succeeded"
    return run


# The description.

def test_the_openapi_file_is_valid():
    openapi_spec_validator.validate(SPEC)


def test_the_openapi_file_has_every_route_with_its_class_and_no_other():
    table = re.findall(r'ROUTE\("([A-Z]+)", "([^"]+)", API_([A-Z]+),', (ROOT / "src/master/api/api.c").read_text())
    assert len(table) > 30
    routes = {(m, re.sub(r":(\w+)", r"{\1}", p)): c.lower() for m, p, c in table}
    described = {(m, p): "open" if o.get("security") == [] else o.get("x-scope") for m, p, o in OPERATIONS.values()}
    assert described == routes


def test_every_answer_is_as_described(regatta, service, run):
    """All operations that leave the run as it is; each is called, and none is forgotten."""
    blob = b"some archive"
    digest = hashlib.sha256(blob).hexdigest()
    url = service.call("POST", "/api/v1/login", {}).json["url"]
    token = service.call("POST", "/api/v1/tokens", {"scope": "read", "name": "x", "valid_ms": 1000})
    second = regatta.submit(regatta.job(JOB))
    regatta.wait(second)
    log = f"{run}/worker-0.log"
    calls = {
        "healthz": ("GET", "/healthz", None), "page": ("GET", "/", None), "runPage": ("GET", f"/run/{run}", None),
        "comparePage": ("GET", "/compare", None), "asset": ("GET", "/assets/app.js", None),
        "login": ("GET", url[len(service.url):], None), "version": ("GET", "/api/v1/version", None),
        "me": ("GET", "/api/v1/me", None), "loginCode": ("POST", "/api/v1/login", {"scope": "read"}),
        "logout": ("POST", "/api/v1/logout", None), "tokens": ("GET", "/api/v1/tokens", None),
        "tokenNew": ("POST", "/api/v1/tokens", {"scope": "submit"}),
        "tokenRevoke": ("DELETE", f"/api/v1/tokens/{token.json['id']}", None),
        "runs": ("GET", "/api/v1/runs?limit=5", None), "run": ("GET", f"/api/v1/runs/{run}", None),
        "watch": ("GET", f"/api/v1/runs/{run}/watch", None), "runEvents": ("GET", f"/api/v1/runs/{run}/events", None),
        "log": ("GET", f"/api/v1/runs/{run}/logs/worker-0", None),
        "runMetrics": ("GET", f"/api/v1/runs/{run}/metrics?name=loss", None),
        "metricsCsv": ("GET", f"/api/v1/runs/{run}/metrics.csv", None),
        "report": ("GET", f"/api/v1/runs/{run}/report", None), "job": ("GET", f"/api/v1/runs/{run}/job", None),
        "plan": ("GET", f"/api/v1/runs/{run}/plan", None),
        "compare": ("GET", f"/api/v1/compare?run={run}&run={second}", None),
        "blobPut": ("PUT", f"/api/v1/blobs/{digest}", blob), "blobHead": ("HEAD", f"/api/v1/blobs/{digest}", None),
        "prometheus": ("GET", "/metrics", None), "oldStatus": ("GET", "/status", None),
        "oldListLogs": ("GET", "/list_logs", None), "oldLog": ("GET", f"/log/{log}", None),
        "oldLogCoded": ("GET", f"/log/{urllib.parse.quote(log, safe='')}", None),
        "submit": ("POST", "/api/v1/runs", {"request_id": "request-of-the-walk", "base_dir": str(regatta.cwd),
                                            "job": {"name": "posted", "command": ["true"]}, "client_env": {}}),
        "cancel": ("POST", f"/api/v1/runs/{run}/cancel", {"hurry": True}),
        "cleanupRun": ("POST", f"/api/v1/runs/{second}/cleanup", None),
        "oldCleanup": ("POST", "/cleanup", None), "shutdown": ("POST", "/api/v1/shutdown", {"cancel": True}),
    }
    assert set(calls) | {"events"} == set(OPERATIONS)  # the stream has tests of its own
    for operation, (method, path, body) in calls.items():
        answer = check_answer(operation, service.call(method, path, body))
        assert answer.status < 400, (operation, answer)


def test_errors_have_one_shape(service, run):
    for operation, method, path, body, status in [
            ("run", "GET", "/api/v1/runs/nothing", None, 404),
            ("runs", "GET", "/api/v1/runs?limit=-1", None, 400),
            ("runs", "GET", "/api/v1/runs?state=odd", None, 400),
            ("runs", "GET", "/api/v1/runs?full=1&limit=201", None, 400),
            ("runs", "GET", "/api/v1/runs?full=1&limit=0", None, 400),  # 0 is all of them
            ("compare", "GET", f"/api/v1/compare?run={run}&run={run}&samples=1&use=mean", None, 400),
            ("log", "GET", f"/api/v1/runs/{run}/logs/nobody", None, 404),
            ("log", "GET", f"/api/v1/runs/{run}/logs/worker-0?stream=odd", None, 400),
            ("submit", "POST", "/api/v1/runs", "{not json", 400),
            ("submit", "POST", "/api/v1/runs", [], 400),
            ("submit", "POST", "/api/v1/runs", {"request_id": "x" * 16, "base_dir": "/", "job": {"comand": 1}}, 400),
            ("tokenNew", "POST", "/api/v1/tokens", {"scope": "all"}, 400),
            ("tokenNew", "POST", "/api/v1/tokens", {"scope": "read", "valid_ms": -1}, 400),
            ("tokenNew", "POST", "/api/v1/tokens", {"scope": "read", "name": "x" * 65}, 400),
            ("tokenRevoke", "DELETE", "/api/v1/tokens/0", None, 404),
            ("loginCode", "POST", "/api/v1/login", "[]", 400),
            ("events", "GET", "/api/v1/events?after=x", None, 400),
            ("oldLog", "GET", f"/log/{run}/nobody.log", None, 404),
            ("asset", "GET", "/assets/nothing.js", None, 404)]:
        answer = check_answer(operation, service.call(method, path, body))
        assert answer.status == status, (path, answer)


def test_a_submitted_run_is_the_same_run_when_it_is_submitted_again(regatta, service):
    body = {"request_id": "the-same-request-twice", "base_dir": str(regatta.cwd), "job": {"name": "j", "command": ["true"]}, "client_env": {}}
    first, again = service.call("POST", "/api/v1/runs", body), service.call("POST", "/api/v1/runs", body)
    assert (first.status, again.status) == (201, 200)
    assert first.json["id"] == again.json["id"]
    regatta.wait(first.json["id"])


def test_a_log_is_read_by_range_and_by_its_end(regatta, service):
    run = regatta.submit("--", "sh", "-c", "seq 1 1000")
    regatta.wait(run)
    path = f"/api/v1/runs/{run}/logs/worker-0"
    whole = service.get(path).body
    assert whole == b"".join(b"%d\n" % i for i in range(1, 1001))
    part = service.get(f"{path}?offset=10&limit=7")
    assert (part.body, part.headers["regatta-offset"]) == (whole[10:17], "10")
    tail = service.get(f"{path}?tail=2")
    assert (tail.body, tail.headers["regatta-offset"]) == (b"999\n1000\n", str(len(whole) - 9))
    assert service.get(f"{path}?offset=999999").body == b""


def test_a_head_is_a_get_without_its_body(regatta, service, run):
    for path in ["/", "/healthz", "/assets/app.js", "/api/v1/version", "/api/v1/runs?limit=1", f"/api/v1/runs/{run}",
                 f"/api/v1/runs/{run}/logs/worker-0", f"/api/v1/runs/{run}/job", f"/api/v1/runs/{run}/metrics.csv", "/list_logs",
                 "/status", f"/log/{run}/worker-0.log", "/api/v1/runs/nothing", "/nothing"]:
        head, get = service.call("HEAD", path), service.get(path)
        assert head.body == b"" and head.status == get.status, (path, head)
        for name in set(get.headers) - {"Date"}:
            assert head.headers[name] == get.headers[name], (path, name)
    # A stream would never end: its head is all, and the connection goes on.
    live = regatta.submit("--", "sleep", "1000")
    regatta.wait(live, state="running")
    c = http.client.HTTPConnection(service.host, service.port, timeout=10)
    for path in ["/api/v1/events", "/api/v1/events?after=0", f"/api/v1/runs/{live}/watch", f"/api/v1/runs/{live}/events?follow=1",
                 f"/api/v1/runs/{live}/logs/worker-0?follow=1", "/healthz"]:
        c.request("HEAD", path, headers={"Authorization": f"Bearer {service.token}"})
        r = c.getresponse()
        assert (r.status, r.read()) == (200, b""), path
    c.close()
    wait_for(lambda: "regatta_event_viewers 0" in service.get("/metrics").text, what="no viewer")
    regatta("kill", "--now", live)
    regatta.wait(live)
    regatta("cleanup", live)  # nobody watches it
    # Who looks whether a login link is good does not spend it.
    link = regatta("ui", "--print").out.strip()[len(service.url):]
    assert service.call("HEAD", link, token=None).status == 401
    assert service.call("HEAD", link).status == 405
    assert service.get(link, token=None).status == 303


def test_the_same_archive_may_be_brought_by_several_at_once(regatta, service):
    blob = os.urandom(200_000)
    path = f"/api/v1/blobs/{hashlib.sha256(blob).hexdigest()}"
    head = (f"PUT {path} HTTP/1.1\r\nHost: {service.own}\r\nAuthorization: Bearer {service.token}\r\n"
            f"Content-Length: {len(blob)}\r\n\r\n").encode()
    socks = [socket.create_connection((service.host, service.port), timeout=20) for _ in range(4)]
    for s in socks:
        s.sendall(head + blob[:100_000])
    parts = regatta.home / "blobs"
    wait_for(lambda: len(list(parts.iterdir())) == 4, what="four uploads")
    socks.pop().close()  # one leaves: the others do not care, and nothing is left of it
    wait_for(lambda: len(list(parts.iterdir())) == 3, what="three uploads")
    for s in socks:
        s.sendall(blob[100_000:])
        assert s.recv(4096).startswith(b"HTTP/1.1 201"), path
        assert service.call("HEAD", path).status == 200
        s.close()
    assert [p.name for p in parts.iterdir()] == [path.split("/")[-1]]
    assert (parts / path.split("/")[-1]).read_bytes() == blob
    # What a master left that was killed goes with the next upload.
    stale = parts / (path.split("/")[-1] + ".0x1.part")
    stale.write_bytes(b"half")
    os.utime(stale, (1, 1))
    assert service.call("PUT", path, blob).status == 201
    assert not stale.exists()


def test_progress_is_kept(regatta, service):
    """Of a run that has ended, and over a restart."""
    run = regatta.submit("-n", "2", regatta.job("""
name = "far"
command = ["sh", "-c", "for i in 1 2 3; do echo step $i/40 loss=0.$i; done; exit $REGATTA_RANK"]
[metrics.loss]
pattern = 'step (?<step>\\d+)/(?<total>\\d+) loss=(?<value>\\S+)'
"""))
    assert regatta.wait(run)["verdict"] == "failed"
    first = service.get(f"/api/v1/runs/{run}").json["progress"]
    assert first["total"] in (40, 80) and first["step"] == 3 * first["total"] // 40
    regatta("master", "--stop")
    again = start_service(regatta, "--listen", "127.0.0.1:0")
    assert again.get(f"/api/v1/runs/{run}").json["progress"] == first


# Where it listens.

def test_the_next_free_port_is_taken_and_told(regatta):
    held = socket.socket()
    try:
        held.bind(("127.0.0.1", 5436))
        held.listen()
    except OSError:
        pass  # somebody else has it, which is as good
    regatta("run", "--", "true")
    service = Service(regatta)
    assert service.host == "127.0.0.1" and 5436 < service.port <= 5499
    assert service.get("/api/v1/version").json["http"] == service.url
    held.close()
    regatta("master", "--stop")
    assert not (regatta.home / "http").exists()


def test_without_a_free_port_runs_go_on_and_ui_says_so(regatta):
    held = []
    for port in range(5436, 5500):
        s = socket.socket()
        try:
            s.bind(("127.0.0.1", port))
            s.listen()
            held.append(s)
        except OSError:
            s.close()
    try:
        regatta("run", "--", "true")
        assert "no HTTP port between 5436 and 5499" in (regatta.home / "master.log").read_text()
        assert regatta.json("version") and not (regatta.home / "http").exists()
        assert "no HTTP port" in regatta("ui", code=8).err
    finally:
        for s in held:
            s.close()


def test_an_address_that_cannot_be_had_is_an_error(regatta):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        assert "taken" in regatta("master", "--listen", f"127.0.0.1:{s.getsockname()[1]}", code=2).err
    assert "ADDRESS:PORT" in regatta("master", "--listen", "5436", code=2).err
    assert "numeric" in regatta("master", "--listen", "example.org:5436", code=2).err


def test_an_ipv6_loopback_address_works(regatta):
    service = start_service(regatta, "--listen", "[::1]:0")
    assert service.url.startswith("http://[::1]:")
    c = http.client.HTTPConnection("::1", service.port, timeout=10)
    c.request("GET", "/api/v1/me", headers={"Authorization": f"Bearer {service.token}", "Host": f"[::1]:{service.port}"})
    assert c.getresponse().status == 200


# TLS.

@pytest.fixture
def tls(regatta):
    return start_service(regatta, "--listen", "0.0.0.0:0")


def https(port, path, headers, **kw):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for k, v in kw.items():
        setattr(context, k, v)
    c = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=10)
    c.connect()
    pin = spki_pin(c.sock.getpeercert(binary_form=True))
    c.request("GET", path, headers=headers)
    r = c.getresponse()
    body = r.read()
    c.close()
    return r, body, pin


def spki_pin(der):
    pem = ssl.DER_cert_to_PEM_cert(der)
    key = subprocess.run(["openssl", "x509", "-pubkey", "-noout"], input=pem.encode(), capture_output=True, check=True).stdout
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "DER"], input=key, capture_output=True, check=True).stdout
    return "sha256//" + base64.b64encode(hashlib.sha256(der).digest()).decode()


def test_beyond_this_machine_there_is_tls_with_a_pinned_key(regatta, tls):
    assert tls.url == f"https://127.0.0.1:{tls.port}"
    pin = (regatta.home / "http").read_text().split()[1]
    headers = {"Authorization": f"Bearer {tls.token}"}
    r, body, seen = https(tls.port, "/api/v1/me", headers)
    assert r.status == 200 and json.loads(body)["scope"] == "admin"
    assert seen == pin
    assert stat.S_IMODE(os.stat(regatta.home / "tls.key").st_mode) == 0o600
    assert https(tls.port, "/api/v1/me", {})[0].status == 401
    assert pin in (regatta.home / "master.log").read_text()
    # A large answer comes whole, and so does a file.
    run = regatta.submit("--", "sh", "-c", "seq 1 300000")
    regatta.wait(run)
    _, log, _ = https(tls.port, f"/api/v1/runs/{run}/logs/worker-0", headers)
    assert log == b"".join(b"%d\n" % i for i in range(1, 300001))
    # The key stays.
    regatta("master", "--stop")
    again = start_service(regatta, "--listen", "0.0.0.0:0")
    assert https(again.port, "/healthz", {})[2] == pin


def test_tls_refuses_what_is_old_plain_or_misnamed(regatta, tls):
    with pytest.raises((ssl.SSLError, ConnectionError)):
        https(tls.port, "/healthz", {}, minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1_1)
    assert https(tls.port, "/healthz", {}, maximum_version=ssl.TLSVersion.TLSv1_2)[0].status == 200
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        tls.get("/healthz")
    assert https(tls.port, "/healthz", {"Host": f"evil.example:{tls.port}"})[0].status == 403
    url = regatta("ui", "--print").out.strip()
    r, _, _ = https(tls.port, url.split(str(tls.port), 1)[1], {})
    assert r.status == 303 and r.headers["set-cookie"].endswith("; Secure")


# Events.

def test_events_of_all_runs_come_as_they_happen(regatta, service):
    with service.events() as live:
        assert live.status == 200
        a, b = regatta.submit("--", "true"), regatta.submit("--", "false")
        ends = {a: "succeeded", b: "failed"}
        seen = live.until(lambda r: {d["run"]: d["kind"] for _, d in r.seen if d["kind"] in ends.values()} == ends)
    numbers = [n for n, _ in seen]
    assert numbers == sorted(set(numbers))
    for n, data in seen:
        validate(data, SPEC["components"]["schemas"]["AnyEvent"])
    for run in ends:  # every event of the run, in its own order
        of_run = [d["seq"] for _, d in seen if d["run"] == run]
        stored = [json.loads(x) for x in service.get(f"/api/v1/runs/{run}/events").body.splitlines()]
        assert of_run == [e["seq"] for e in stored]


def test_events_resume_where_they_stopped_also_after_a_restart(regatta, service):
    first = regatta.submit("--", "true")
    regatta.wait(first)
    with service.events("/api/v1/events?after=0") as past:
        seen = list(past.until(lambda r: r.seen and r.seen[-1][1]["kind"] == "succeeded"))
    middle = seen[len(seen) // 2][0]
    regatta("master", "--stop")
    again = start_service(regatta, "--listen", "127.0.0.1:0")
    with again.events("/api/v1/events?after=0", {"Last-Event-ID": str(middle)}) as rest:
        assert rest.until(lambda r: r.seen and r.seen[-1][1]["kind"] == "succeeded") == \
            [(n, {**d}) for n, d in seen if n > middle]
        # It goes on with what is new, without a gap.
        second = regatta.submit("--", "true")
        rest.until(lambda r: r.seen[-1][1]["run"] == second and r.seen[-1][1]["kind"] == "succeeded")
        assert all(n > seen[-1][0] for n, d in rest.seen if d["run"] == second)


def test_numbers_of_removed_events_are_not_given_again(regatta, service):
    run = regatta.submit("--", "true")
    regatta.wait(run)
    with service.events("/api/v1/events?after=0") as past:
        last = past.until(lambda r: r.seen and r.seen[-1][1]["kind"] == "succeeded")[-1][0]
    regatta("cleanup", run)
    regatta("master", "--stop")
    again = start_service(regatta, "--listen", "127.0.0.1:0")
    with again.events(headers={"Last-Event-ID": str(last)}) as live:
        second = regatta.submit("--", "true")
        seen = live.until(lambda r: r.seen and r.seen[-1][1]["kind"] == "succeeded")
    assert {d["run"] for _, d in seen} == {second} and seen[0][0] > last
    assert [d["seq"] for _, d in seen] == list(range(1, len(seen) + 1))


def test_a_long_past_is_sent_in_pieces_without_loss(regatta, service):
    regatta("run", "--repeat", "30", "--parallel", "4", "--", "true", timeout=120)
    with service.events("/api/v1/events?after=0") as past:
        seen = past.until(lambda r: sum(d["kind"] == "succeeded" for _, d in r.seen) == 30)
    runs = {d["run"] for _, d in seen}
    assert len(runs) == 30 and len(seen) > 400
    for run in runs:
        seqs = [d["seq"] for _, d in seen if d["run"] == run]
        assert seqs == list(range(1, len(seqs) + 1))


def test_a_silent_stream_has_a_heartbeat(service):
    with service.events() as live:
        live.until(lambda r: r.comments >= 1, seconds=20)
        assert not live.seen


# Prometheus.

@pytest.mark.skipif(not peer("promtool"), reason="promtool (Debian: prometheus) is not installed")
def test_metrics_pass_promtool_with_any_name(regatta, service):
    regatta.script(r"""
import os, time
print('**metrics_data: we"ird\\x{y}=0.25', flush=True)
while not os.path.exists(os.environ["DONE"]):
    time.sleep(0.02)
""")
    regatta.job(f"""
name = "prom"
command = ["python3", "{regatta.cwd}/job.py"]
env = {{DONE = "{regatta.cwd}/done"}}
""")
    run = regatta.submit(regatta.cwd / "job.toml")
    text = wait_for(lambda: (lambda t: t if 'metric="we\\"ird\\\\x{y}"} 0.25' in t else None)(service.get("/metrics").text),
                    what="the metric")
    assert f'run="{run}",node="worker-0"' in text
    assert 'regatta_runs{state="running"} 1' in text and 'regatta_nodes{state="running"} 1' in text
    done = subprocess.run([peer("promtool"), "check", "metrics"], input=text.encode(), capture_output=True)
    assert done.returncode == 0 and not done.stdout + done.stderr, (done, text)
    (regatta.cwd / "done").touch()
    regatta.wait(run)
    assert 'regatta_metric{' not in service.get("/metrics").text
    assert re.search(r"regatta_log_bytes_total [1-9]", service.get("/metrics").text)


@pytest.mark.skipif(not peer("prometheus"), reason="prometheus (Debian) is not installed")
def test_prometheus_scrapes_it(regatta, service, tmp_path):
    token = service.new_token("read", name="prometheus")
    (tmp_path / "token").write_text(token)
    (tmp_path / "prometheus.yml").write_text(f"""
global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}
scrape_configs:
  - job_name: regatta
    authorization: {{credentials_file: {tmp_path}/token}}
    static_configs: [{{targets: ["{service.own}"]}}]
""")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    child = subprocess.Popen([peer("prometheus"), f"--config.file={tmp_path}/prometheus.yml", f"--web.listen-address=127.0.0.1:{port}",
                              f"--storage.tsdb.path={tmp_path}/tsdb"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def scraped():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?query=regatta_build_info", timeout=2) as r:
                return json.load(r)["data"]["result"]
        except OSError:
            return None
    try:
        found = wait_for(scraped, 30, "prometheus to scrape")
        assert found[0]["value"][1] == "1" and found[0]["metric"]["version"]
    finally:
        child.kill()
        child.wait()


# Lists.

def copies(regatta, run, n):
    """n more runs like this one, written into the database of a master that has left."""
    with contextlib.closing(sqlite3.connect(regatta.home / "regatta.db")) as db:
        columns = [c[1] for c in db.execute("PRAGMA table_info(run)") if c[1] not in ("no", "id", "request_id")]
        for i in range(n):
            no = db.execute(f"INSERT INTO run (id, request_id, {', '.join(columns)}) SELECT 'many-{i:04}', 'request-of-{i:08}', "
                            f"{', '.join(columns)} FROM run WHERE id = ?", (run,)).lastrowid
            db.execute("INSERT INTO job SELECT ?, base_dir, source_sha256, client_env, secret, json FROM job LIMIT 1", (no,))
        db.commit()


def test_an_ended_run_in_the_list_says_why_and_how_far_it_was(regatta, service):
    job = regatta.job("""
name = "part"
command = ["sh", "-c", "echo step 3/8 loss=0.5; exit 3"]
[metrics.loss]
pattern = 'step (?<step>\\d+)/(?<total>\\d+) loss=(?<value>\\S+)'
""")
    failed = regatta.submit(job)
    assert regatta.wait(failed)["verdict"] == "failed"
    good = regatta.submit("--", "true")
    regatta.wait(good)
    killed = regatta.submit("--", "sleep", "1000")
    regatta.wait(killed, state="running")
    regatta("kill", killed)
    regatta.wait(killed)
    whole = {run: service.get(f"/api/v1/runs/{run}").json for run in (failed, good, killed)}
    assert whole[failed]["cause"] == "worker-0 exited with code 3"
    assert whole[failed]["progress"] == {"step": 3, "total": 8}
    assert (whole[good]["cause"], whole[good]["progress"]) == (None, None) and whole[killed]["cause"]

    def check(at):
        listed = {r["id"]: r for r in check_answer("runs", at.get("/api/v1/runs")).json["runs"]}
        assert {i: (r["cause"], r["progress"]) for i, r in listed.items()} == \
            {i: (r["cause"], r["progress"]) for i, r in whole.items()}
        assert not any("nodes" in r for r in listed.values())  # from the rows, not from a run in memory
    check(service)
    table = regatta("ps", "--all").out.splitlines()
    assert next(line for line in table if line.startswith(failed)).endswith("worker-0 exited with code 3")
    assert next(line for line in table if line.startswith(good)).endswith(" -")
    regatta("master", "--stop")
    check(start_service(regatta, "--listen", "127.0.0.1:0"))


def test_whole_runs_come_in_pages(regatta, service):
    first = regatta.submit("--", "true")
    regatta.wait(first)
    regatta("master", "--stop")
    copies(regatta, first, 250)
    again = start_service(regatta, "--listen", "127.0.0.1:0")
    page = again.get("/api/v1/runs?full=1&limit=200").json["runs"]
    assert len(page) == 200 and all("nodes" in r for r in page)
    rest = again.get(f"/api/v1/runs?full=1&limit=200&before={page[-1]['id']}").json["runs"]
    assert [r["id"] for r in rest] == [f"many-{i:04}" for i in reversed(range(50))] + [first]
    refused = again.get("/api/v1/runs?full=1&limit=10000")
    assert refused.status == 400 and "from 1 to 200" in refused.json["error"]["message"]
    assert len(again.get("/api/v1/runs?limit=10000").json["runs"]) == 251
    # The command turns the pages itself.
    assert [r["id"] for r in regatta.json("ps", "--all", "--limit", "10000")] == [r["id"] for r in page + rest]
    assert len(regatta.json("ps", "--all", "--limit", "240")) == 240


def test_samples_are_compared_by_their_median_only(service, run):
    described = {p["name"]: p for p in OPERATIONS["compare"][2]["parameters"]}
    assert "use=median only" in described["samples"]["description"]
    for use in described["use"]["schema"]["enum"]:
        answer = check_answer("compare", service.get(f"/api/v1/compare?run={run}&run={run}&samples=1&use={use}"))
        assert answer.status == (200 if use == "median" else 400), (use, answer)


def test_agents_that_leave_because_they_were_released_are_no_news(regatta, service):
    job = regatta.job('''
name = "bad"
[roles.worker]
count = 8
command = ["sh", "-c", "exit 3"]
''')
    for _ in range(10):  # whether the last words come together with the end is a matter of luck
        run = regatta.submit(job)
        assert regatta.wait(run)["verdict"] == "failed"
        kinds = [json.loads(line)["kind"] for line in service.get(f"/api/v1/runs/{run}/events").body.splitlines()]
        assert kinds[-1] == "failed" and "exited" in kinds and "dropped" not in kinds, kinds


# Clients that take their time.

def ask(service, path):
    """A request whose answer nobody has read yet."""
    s = socket.create_connection((service.host, service.port), timeout=30)
    s.sendall(f"GET {path} HTTP/1.1\r\nHost: {service.own}\r\nAuthorization: Bearer {service.token}\r\n\r\n".encode())
    return s


def lines_of(s):
    """The whole answer; one that was cut is an IncompleteRead."""
    with s, http.client.HTTPResponse(s) as answer:
        answer.begin()
        assert answer.status == 200
        return [json.loads(line) for line in answer.read().splitlines()]


def test_forty_thousand_events_reach_a_client_that_is_slow(regatta, service):
    run = regatta.submit("--", "true")
    regatta.wait(run)
    regatta("master", "--stop")
    with contextlib.closing(sqlite3.connect(regatta.home / "regatta.db")) as db:
        no, seq, n = db.execute("SELECT run, max(seq), max(n) FROM event").fetchone()
        db.executemany("INSERT INTO event (run, seq, time_ms, kind, node, text, n) VALUES (?, ?, 1, 'note', -1, ?, ?)",
                       ((no, seq + i, "x" * 300, n + i) for i in range(1, 40001)))
        db.commit()
    again = start_service(regatta, "--listen", "127.0.0.1:0")
    for path in (f"/api/v1/runs/{run}/events", f"/api/v1/runs/{run}/events?follow=1"):
        s = ask(again, path)
        assert again.get("/healthz").status == 200  # it was asked before, and is being answered
        refused = again.call("POST", f"/api/v1/runs/{run}/cleanup")  # not under somebody who reads
        assert refused.status == 409 and "watched" in refused.json["error"]["message"]
        assert [e["seq"] for e in lines_of(s)] == list(range(1, seq + 40001))
    assert wait_for(lambda: again.call("POST", f"/api/v1/runs/{run}/cleanup").status == 200, what="the clean-up")


def test_a_watcher_that_is_slow_gets_fewer_objects_and_the_last(regatta, service):
    regatta.script("""
import os, time
for i in range(0, 3000, 50):
    print("**metrics_data: " + ",".join(f"m{k}=1" for k in range(i, i + 50)), flush=True)
while not os.path.exists(os.environ["DONE"]):
    print("**metrics_data: m0=2", flush=True)
    time.sleep(0.02)
""")
    run = regatta.submit(regatta.job(f'''
name = "wide"
command = ["python3", "{regatta.cwd}/job.py"]
env = {{DONE = "{regatta.cwd}/done"}}
'''))

    def seen():
        return service.get(f"/api/v1/runs/{run}").json["metrics"].get("m0", {}).get("count", 0)
    wait_for(lambda: len(service.get(f"/api/v1/runs/{run}").json["metrics"]) == 3000, what="all metrics")
    s = ask(service, f"/api/v1/runs/{run}/watch")
    begin = seen()
    wait_for(lambda: seen() >= begin + 200, what="changes that fill every buffer")
    (regatta.cwd / "done").touch()
    end = regatta.wait(run)
    objects = lines_of(s)
    assert objects[-1]["verdict"] == objects[-1]["state"] == "succeeded"
    assert objects[-1]["metrics"]["m0"] == end["metrics"]["m0"]
    counts = [o["metrics"]["m0"]["count"] for o in objects]
    assert counts == sorted(counts) and counts[-1] - counts[-2] > 20, counts  # the last waited for the one before


# The old tool's paths.

def test_the_old_paths_keep_their_shapes(regatta, service, run):
    status = service.get("/status")
    assert status.type == "text/plain" and "HTTP on" in status.text
    names = service.get("/list_logs").text.splitlines()
    assert f"{run}/worker-0.log" in names and f"{run}/worker-0.err.log" in names
    assert service.get(f"/log/{run}/worker-0.log").body == regatta.log(run, "worker-0")
    assert service.get(f"/log/{run}/worker-0.err.log").body == b"oops\n"
    assert service.get(f"/log/{run}/worker-0.log").type == "text/plain"
    assert service.get(f"/log/{run}/worker-1.log").status == 404
    assert service.get(f"/log/{run[:-1]}/worker-0.log").status == 404  # a name, not a prefix


def test_the_names_of_many_logs_come_in_pages(regatta, service):
    first = regatta.submit("--", "true")
    regatta.wait(first)
    assert "link" not in service.get("/list_logs").headers
    regatta("master", "--stop")
    copies(regatta, first, 1000)
    for i in range(1000):
        logs = regatta.home / "runs" / f"many-{i:04}" / "logs"
        logs.mkdir(parents=True)
        (logs / "worker-0.log").touch()
    again = start_service(regatta, "--listen", "127.0.0.1:0")
    page = again.get("/list_logs")
    names = page.text.splitlines()
    assert len(names) == 1000 and f"{first}/worker-0.log" not in names
    link = re.fullmatch(r'<(/list_logs\?before=many-0000)>; rel="next"', page.headers["link"]).group(1)
    rest = again.get(link)
    assert f"{first}/worker-0.log" in rest.text.splitlines() and "link" not in rest.headers
    assert again.get("/list_logs?before=nothing").status == 404


def test_the_old_cleanup_cancels_everything_and_answers_at_once(regatta, service):
    runs = [regatta.submit("--", "sleep", "1000") for _ in range(2)]
    for run in runs:
        regatta.wait(run, state="running")
    answer = service.call("POST", "/cleanup")
    assert (answer.status, answer.text) == (200, "cleanup in progress\n")
    for run in runs:
        assert regatta.wait(run)["verdict"] == "cancelled"


# The command line.

def test_tokens_are_made_listed_and_revoked(regatta, service):
    token = regatta("token", "new", "--scope", "read", "--name", "grafana", "--expires", "7d").out.strip()
    assert re.fullmatch("[0-9a-f]{64}", token)
    assert service.get("/api/v1/me", token=token).json["scope"] == "read"
    listed = regatta.json("token", "list")["tokens"]
    assert [(t["name"], t["scope"]) for t in listed] == [("grafana", "read")] and listed[0]["used_ms"]
    assert token not in regatta("token", "list").out and "grafana" in regatta("token", "list").out
    # They survive a restart, and so does when they were used.
    regatta("master", "--stop")
    again = start_service(regatta, "--listen", "127.0.0.1:0")
    assert regatta.json("token", "list")["tokens"] == listed
    assert again.get("/api/v1/me", token=token).status == 200
    regatta("token", "revoke", listed[0]["id"])
    assert again.get("/api/v1/me", token=token).status == 401
    assert "no token" in regatta("token", "revoke", listed[0]["id"], code=3).err
    assert "--scope" in regatta("token", "new", code=2).err
    assert "duration" in regatta("token", "new", "--scope", "read", "--expires", "soon", code=2).err
    assert "which" in regatta("token", "revoke", code=2).err


def test_ui_prints_a_link_that_leads_in_once(regatta, service):
    url = regatta("ui").out.strip()
    assert url.startswith(f"{service.url}/login?code=")
    first = service.get(url[len(service.url):], token=None)
    assert first.status == 303 and first.headers["location"] == "/"
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Path=/" in cookie and "Secure" not in cookie
    assert service.get("/api/v1/me", token=None, headers={"Cookie": cookie.split(";")[0]}).json["scope"] == "admin"
    assert cookie.startswith(f"regatta_session_{service.port}=")  # two masters do not take each other's
    again = service.get(url[len(service.url):], token=None)
    assert again.status == 403 and "set-cookie" not in again.headers
    reader = service.get(regatta("ui", "--scope", "read").out.strip()[len(service.url):], token=None)
    assert service.get("/api/v1/me", token=None,
                       headers={"Cookie": reader.headers["set-cookie"].split(";")[0]}).json["scope"] == "read"
