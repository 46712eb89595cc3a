"""The HTTP service as docs/openapi.yaml describes it, checked against the running binary."""
import hashlib
import http.client
import re
import urllib.parse

import openapi_spec_validator

from conftest import BINARY, DEMO_JOB, ROOT, wait_for
from openapi import OPERATIONS, SPEC, check_answer


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
    second = regatta.submit(regatta.job(DEMO_JOB))
    regatta.wait(second)
    log = f"{run}/worker-0.log"
    calls = {
        "healthz": ("GET", "/healthz", None), "page": ("GET", "/", None), "runPage": ("GET", f"/run/{run}", None),
        "comparePage": ("GET", "/compare", None), "suitesPage": ("GET", "/suites", None), "suitePage": ("GET", "/suite/x", None), "asset": ("GET", "/assets/app.js", None),
        "program": ("GET", f"/bin/{hashlib.sha256(BINARY.read_bytes()).hexdigest()}", None),
        "login": ("GET", url[len(service.url):], None), "version": ("GET", "/api/v1/version", None),
        "me": ("GET", "/api/v1/me", None), "hosts": ("GET", "/api/v1/hosts", None),
        "loginCode": ("POST", "/api/v1/login", {"scope": "read"}),
        "logout": ("POST", "/api/v1/logout", None), "tokens": ("GET", "/api/v1/tokens", None),
        "tokenNew": ("POST", "/api/v1/tokens", {"scope": "submit"}),
        "tokenRevoke": ("DELETE", f"/api/v1/tokens/{token.json['id']}", None),
        "runs": ("GET", "/api/v1/runs?limit=5", None), "run": ("GET", f"/api/v1/runs/{run}", None),
        "watch": ("GET", f"/api/v1/runs/{run}/watch", None), "runEvents": ("GET", f"/api/v1/runs/{run}/events", None),
        "log": ("GET", f"/api/v1/runs/{run}/logs/worker-0", None),
        "runMetrics": ("GET", f"/api/v1/runs/{run}/metrics?name=loss", None),
        "runCost": ("GET", f"/api/v1/runs/{run}/cost", None),
        "metricsCsv": ("GET", f"/api/v1/runs/{run}/metrics.csv", None),
        "report": ("GET", f"/api/v1/runs/{run}/report", None), "job": ("GET", f"/api/v1/runs/{run}/job", None),
        "plan": ("GET", f"/api/v1/runs/{run}/plan", None), "runSize": ("GET", f"/api/v1/runs/{run}/size", None), "record": ("GET", f"/api/v1/runs/{run}/record", None), "outputList": ("GET", f"/api/v1/runs/{run}/outputs", None),
        "compare": ("GET", f"/api/v1/compare?run={run}&run={second}", None),
        "suites": ("GET", "/api/v1/suites?limit=5", None),
        "suiteSubmit": ("POST", "/api/v1/suites", {
            "request_id": "suite-of-the-walk", "suite": {"name": "walked", "suite": {"job": "j.toml"}}, "of": [0],
            "base_dir": str(regatta.cwd), "submissions": [{"job": {"command": ["true"]}, "base_dir": str(regatta.cwd)}]}),
        "suite": ("GET", "/api/v1/suites/walked", None), "suiteReport": ("GET", "/api/v1/suites/walked/report", None),
        "suiteFile": ("GET", "/api/v1/suites/walked/files/suite.toml", None), "suiteEngines": ("GET", "/api/v1/suites/walked/engines", None),
        "suiteCancel": ("POST", "/api/v1/suites/walked/cancel", {"now": True}),
        "blobPut": ("PUT", f"/api/v1/blobs/{digest}", blob), "blobHead": ("HEAD", f"/api/v1/blobs/{digest}", None),
        "prometheus": ("GET", "/metrics", None), "oldStatus": ("GET", "/status", None),
        "oldListLogs": ("GET", "/list_logs", None), "oldLog": ("GET", f"/log/{log}", None),
        "oldLogCoded": ("GET", f"/log/{urllib.parse.quote(log, safe='')}", None),
        "submit": ("POST", "/api/v1/runs", {"request_id": "request-of-the-walk", "base_dir": str(regatta.cwd),
                                            "job": {"name": "posted", "command": ["true"]}, "client_env": {}}),
        "tagRun": ("POST", f"/api/v1/runs/{run}/tags", {"add": ["walked", "on"], "remove": ["on"]}),
        "noteRun": ("POST", f"/api/v1/runs/{run}/notes", {"text": "it was walked"}),
        "cancel": ("POST", f"/api/v1/runs/{run}/cancel", {"hurry": True}),
        "importRun": ("POST", "/api/v1/imports", {"run": second, "url": "s3://b-1/runs/", "credentials": {}}),  # it is here already
        "cleanupRun": ("POST", f"/api/v1/runs/{second}/cleanup", None),
        "oldCleanup": ("POST", "/cleanup", None), "shutdown": ("POST", "/api/v1/shutdown", {"cancel": True}),
    }
    # The stream, what is for nodes alone, and what needs a host or a run that goes on have tests of their own.
    assert set(calls) | {"events", "nodeBlob", "outputState", "outputPut", "resize", "hostForget", "nodePrevious", "nodeRegistry", "nodeUrls",
                         "execBegin", "execInput", "execControl", "outputFile", "resultFile", "suiteResume", "suiteOnExit"} == set(OPERATIONS)
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
            ("importRun", "POST", "/api/v1/imports", {"run": run, "url": "s3://b-1/runs/"}, 400),
            ("importRun", "POST", "/api/v1/imports", {"run": "../x", "url": "s3://b-1/runs/", "credentials": {}}, 400),
            ("resultFile", "GET", f"/api/v1/runs/{run}/results?path=../x", None, 400),
            ("resultFile", "GET", f"/api/v1/runs/{run}/results?path=secrets.json", None, 400),
            ("resultFile", "GET", f"/api/v1/runs/{run}/results?path=summary.json", None, 404),  # it was not handed over
            ("suiteOnExit", "POST", "/api/v1/suites/nothing/on_exit", {"client": "x"}, 404),
            ("suiteFile", "GET", "/api/v1/suites/nothing/files/suite.toml", None, 404),
            ("suiteEngines", "GET", "/api/v1/suites/nothing/engines", None, 404),
            ("asset", "GET", "/assets/nothing.js", None, 404)]:
        answer = check_answer(operation, service.call(method, path, body))
        assert answer.status == status, (path, answer)


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
