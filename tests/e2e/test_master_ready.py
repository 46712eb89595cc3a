"""What `regatta master --listen` says when it is ready, and the token with which hosts join."""
import json
import os
import pty
import re
import ssl
import subprocess
import urllib.error
import urllib.request

import pytest
from conftest import BINARY, Regatta, wait_for

HEX64 = re.compile("^[0-9a-f]{64}$")


def start(regatta, listen):
    """A master in the foreground, and its one line."""
    child = regatta.start("master", "--listen", listen, "--output", "json")
    line = child.stdout.readline()
    assert line, child.stderr.read()
    return child, json.loads(line)


def stop(regatta, child):
    regatta("master", "--stop")
    assert child.wait(30) == 0
    assert child.stdout.read() == b""  # one line, no more


def get(url, path, token):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    request = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def test_one_line_says_where_it_is_and_who_may_come_in(regatta):
    child, said = start(regatta, "0.0.0.0:0")
    assert sorted(said) == ["join", "pin", "token", "url"]
    assert said["url"].startswith("https://") and "0.0.0.0" not in said["url"]
    assert said["pin"] == (regatta.home / "http").read_text().split()[1]
    assert said["token"] == (regatta.home / "token").read_text().strip()
    assert HEX64.match(said["join"]) and said["join"] != said["token"]
    assert get(said["url"], "/api/v1/me", said["token"])[0] == 200
    stop(regatta, child)


@pytest.mark.parametrize("listen, host", [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "[::1]")])
def test_a_loopback_address_is_as_good_and_speaks_plain_http_too(regatta, listen, host):
    child, said = start(regatta, listen)
    assert said["url"].startswith(f"https://{host}:") and HEX64.match(said["join"])
    plain, pin = (regatta.home / "http").read_text().split()
    assert pin == said["pin"] and plain == said["url"].replace("https", "http")
    assert regatta("ui", "--print").out.startswith(plain)
    for url in (said["url"], plain):
        assert get(url, "/api/v1/me", said["token"])[0] == 200
        assert get(url, "/api/v1/me", said["join"])[0] == 403
    stop(regatta, child)


def test_a_port_that_nobody_asked_for_is_plain_and_takes_no_hosts(regatta):
    regatta("run", "--", "true")
    lines = (regatta.home / "http").read_text().split()
    assert len(lines) == 1 and lines[0].startswith("http://127.0.0.1:")
    assert not (regatta.home / "join").exists() and not (regatta.home / "tls.key").exists()


def test_a_join_token_opens_no_route(regatta):
    child, said = start(regatta, "0.0.0.0:0")
    for path in ("/api/v1/me", "/api/v1/version", "/api/v1/runs", "/api/v1/tokens", "/api/v1/events", "/metrics",
                 "/status", "/no/such/path"):
        status, body = get(said["url"], path, said["join"])
        assert status == 403 and b"'join'" in body, (path, body)
    assert get(said["url"], "/healthz", said["join"])[0] == 200  # open to anybody
    stop(regatta, child)


def test_the_join_token_is_kept_until_it_is_revoked(regatta):
    child, first = start(regatta, "0.0.0.0:0")
    stop(regatta, child)
    assert oct((regatta.home / "join").stat().st_mode & 0o777) == "0o600"
    child, second = start(regatta, "0.0.0.0:0")
    assert second["join"] == first["join"] and second["pin"] == first["pin"] and second["token"] == first["token"]
    tokens = regatta.json("token", "list")["tokens"]
    assert [t["scope"] for t in tokens] == ["join"]
    regatta("token", "revoke", tokens[0]["id"])
    assert get(second["url"], "/api/v1/me", first["join"])[0] == 401
    stop(regatta, child)
    child, third = start(regatta, "0.0.0.0:0")
    assert HEX64.match(third["join"]) and third["join"] != first["join"]
    assert len(regatta.json("token", "list")["tokens"]) == 1
    stop(regatta, child)


def test_more_join_tokens_with_an_end(regatta):
    child, said = start(regatta, "0.0.0.0:0")
    made = regatta.json("token", "new", "--scope", "join", "--expires", "1h", "--name", "lab")
    assert made["scope"] == "join" and made["expires_ms"] - made["created_ms"] == 3600 * 1000
    assert get(said["url"], "/api/v1/me", made["token"])[0] == 403
    # A person is not a host.
    assert regatta("ui", "--print", "--scope", "join", code=2).err
    short = regatta.json("token", "new", "--scope", "join", "--expires", "1s")
    wait_for(lambda: get(said["url"], "/api/v1/me", short["token"])[0] in (401, 429), what="its end")
    stop(regatta, child)


def test_on_a_terminal_it_prints_what_to_type(regatta, tmp_path):
    near, far = pty.openpty()
    child = subprocess.Popen([BINARY, "master", "--listen", "0.0.0.0:0"], cwd=regatta.cwd, env=regatta.env, stdout=far,
                             stderr=subprocess.PIPE)
    regatta.children.append(child)
    os.close(far)
    text = b""
    while text.count(b"\n") < 2:
        text += os.read(near, 4096)
    join, client = text.decode().splitlines()
    pin = (regatta.home / "http").read_text().split()[1]
    kept = (regatta.home / "join").read_text()
    assert re.search(rf"regatta agent --join https://\S+ --pin {re.escape(pin)} --token {kept}$", join)
    assert re.search(rf"regatta context add NAME https://\S+ --pin {re.escape(pin)} --token [0-9a-f]{{64}}$", client)
    # The client's line works as it is printed, for a user with another home.
    other = Regatta(tmp_path / "other", regatta.cwd)
    words = client.split()[client.split().index("context"):]
    other(*["lab" if w == "NAME" else w for w in words])
    assert other("ps", "--master", "lab").returncode == 0
    regatta("master", "--stop")
    child.wait(30)
    os.close(near)


@pytest.mark.parametrize("args", [["--output", "json"], []])
def test_what_cannot_be_listened_on_prints_nothing(regatta, args):
    done = regatta("master", "--listen", "192.0.2.1:0", *args, code=None)
    assert done.returncode != 0 and done.out == "" and done.err
