"""Where the HTTP service listens, and with TLS."""
import base64
import hashlib
import http.client
import json
import os
import socket
import ssl
import stat
import subprocess

import pytest

from service import Service, start_service


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
    service = start_service(regatta, "[::1]:0")
    assert service.url.startswith("http://[::1]:")
    c = http.client.HTTPConnection("::1", service.port, timeout=10)
    c.request("GET", "/api/v1/me", headers={"Authorization": f"Bearer {service.token}", "Host": f"[::1]:{service.port}"})
    assert c.getresponse().status == 200


@pytest.fixture
def tls(regatta):
    return start_service(regatta, "0.0.0.0:0")


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
    again = start_service(regatta, "0.0.0.0:0")
    assert https(again.port, "/healthz", {})[2] == pin


def test_tls_refuses_what_is_old_plain_or_misnamed(regatta, tls):
    with pytest.raises((ssl.SSLError, ConnectionError)):
        https(tls.port, "/healthz", {}, minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1_1)
    assert https(tls.port, "/healthz", {}, maximum_version=ssl.TLSVersion.TLSv1_2)[0].status == 200
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        tls.get("/healthz")
    assert https(tls.port, "/healthz", {"Host": f"evil.example:{tls.port}"})[0].status == 403
    # No browser sends a token by itself: who has one may call us by any name, but not from another page.
    evil = {"Host": f"evil.example:{tls.port}"}
    named = {**evil, "Authorization": f"Bearer {tls.token}"}
    assert https(tls.port, "/api/v1/me", named)[0].status == 200
    assert https(tls.port, "/api/v1/me", {**evil, "Authorization": "Bearer " + "0" * 64})[0].status == 401
    assert https(tls.port, "/api/v1/me", {**named, "Origin": "https://other.example"})[0].status == 403
    assert https(tls.port, "/api/v1/me", {**evil, "Cookie": f"regatta_session_{tls.port}=" + "1" * 64})[0].status == 403
    url = regatta("ui", "--print").out.strip()
    r, _, _ = https(tls.port, url.split(str(tls.port), 1)[1], {})
    assert r.status == 303 and r.headers["set-cookie"].endswith("; Secure")
