"""Who may join a master as a host, and what the others are told: one line, what to do next, and an exit code."""
import json
import socket
import ssl
import struct
import subprocess
import time

import pytest

from conftest import BINARY, wait_for
from hosts_fleet import refused

JOIN, JOINED, REFUSE = 21, 22, 3
HOUR_MS = 3600 * 1000


def checks(regatta, code):
    return {c["name"]: c for c in regatta.json("doctor", "--engine", "hosts", code=code)["checks"]}


def test_doctor_says_what_a_run_on_hosts_lacks(regatta, fleet):
    none = checks(regatta, 1)
    assert none["master"]["state"] == "fine"
    assert none["hosts"]["what"] == "no host has joined the master" and "agent --join" in none["hosts"]["todo"]
    fleet.start("alpha")
    fleet.start("beta")
    fleet.wait(["alpha", "beta"], "free")
    assert checks(regatta, 0)["hosts"] == {"name": "hosts", "state": "fine", "what": "2 joined: regatta hosts", "todo": None}
    fleet.daemons["beta"].kill()
    fleet.wait(["beta"], "gone")
    one = checks(regatta, 0)["hosts"]
    assert one["state"] == "warning" and one["what"] == "1 of 2 are gone: beta"


def test_doctor_starts_no_master(regatta):
    assert checks(regatta, 1)["master"]["state"] == "bad"
    assert not regatta.pids("master")


def test_a_wrong_pin(regatta, fleet):
    code, line = refused(fleet, "alpha", pin="sha256//" + "A" * 43 + "=")
    assert code == 4 and "the server's key is" in line and fleet.said["pin"] in line
    assert "use the pin that the master prints" in line
    code, line = refused(fleet, "alpha", pin="sha256//short")
    assert code == 2 and "--pin: 'sha256//short' is no pin: it is sha256// and 44 characters" in line
    assert regatta.json("hosts") == []


@pytest.mark.parametrize("which", ["wrong", "admin", "read", "expired", "revoked"])
def test_a_token_that_is_not_for_hosts(regatta, fleet, which):
    made = {"wrong": lambda: "0" * 64,
            "admin": lambda: fleet.said["token"],
            "read": lambda: regatta.json("token", "new", "--scope", "read")["token"],
            "expired": lambda: regatta.json("token", "new", "--scope", "join", "--expires", "1s")["token"],
            "revoked": lambda: regatta.json("token", "new", "--scope", "join")}[which]()
    if which == "expired":
        fleet.start("early", join=made)
        fleet.wait(["early"], "free")  # it was good once
        time.sleep(1.1)
    if which == "revoked":
        regatta("token", "revoke", made["id"])
        made = made["token"]
    code, line = refused(fleet, "alpha", join=made)
    assert code == 4 and "the token is wrong, revoked or too old: 'regatta token new --scope join'" in line
    assert "alpha" not in fleet.list()


def test_two_hosts_of_one_name(regatta, fleet):
    fleet.join("alpha")
    first = fleet.daemons["alpha"]
    code, line = refused(fleet, "alpha")  # in the same directory
    assert code == 3 or code == 2, line
    assert "another 'regatta agent' of this machine uses" in line and "--dir" in line
    child = fleet.start("alpha", "--dir", str(regatta.cwd / "elsewhere"))
    assert child.wait(30) != 0
    line = fleet.log("alpha").read_text().splitlines()[-1]
    assert "another host named 'alpha' has joined from 127.0.0.1: give this one another name (--name)" in line
    fleet.daemons["alpha"] = first
    assert fleet.list()["alpha"]["state"] == "free" and first.poll() is None
    fleet.start("beta", "--dir", str(regatta.cwd / "elsewhere"))
    fleet.wait(["alpha", "beta"], "free")


def test_a_host_that_is_stopped_may_be_replaced_by_another_of_its_name(regatta, fleet):
    fleet.join("alpha")
    fleet.daemons["alpha"].terminate()
    assert fleet.daemons["alpha"].wait(30) == 0
    fleet.wait(["alpha"], "gone")
    fleet.start("alpha", "--dir", str(regatta.cwd / "elsewhere"))
    fleet.wait(["alpha"], "free")


@pytest.mark.parametrize("args, code, says", [
    (["--join", "https://127.0.0.1:1"], 2, "--join URL and --pin PIN are needed"),
    (["--join", "https://127.0.0.1:1", "--pin", "x"], 2, "a token is needed"),
    (["--join", "http://127.0.0.1:1", "--pin", "x", "--token", "t"], 2, "--join must be https://HOST:PORT"),
    (["--join", "https://127.0.0.1:1", "--pin", "x", "--token", "t", "--name", "a b"], 2, "cannot be the name of a host"),
    (["--join", "https://127.0.0.1:1", "--pin", "x", "--token", "t", "--labels", "gpu"], 2, "'gpu' is not NAME=VALUE"),
    (["--join", "https://127.0.0.1:1", "--pin", "x", "--token", "t", "--labels", "a=1,a=2"], 2, "'a' is given twice"),
    (["--join", "https://127.0.0.1:1", "--pin", "x", "--token", "t", "--labels", ",".join(f"l{i}=x" for i in range(33))], 2,
     "--labels: at most 32"),
])
def test_options_that_cannot_be_used(regatta, args, code, says):
    done = regatta("agent", *args, code=code)
    assert says in done.err and len(done.err.strip().splitlines()) == 1


def test_labels_that_do_not_fit_in_a_message(regatta, fleet):
    fleet.start("alpha", "--labels", ",".join(f"{i:064}={'v' * 64}" for i in range(32)))
    assert fleet.daemons["alpha"].wait(30) == 2
    assert fleet.log("alpha").read_text().endswith("--labels: too long for the master: use fewer, or shorter ones\n")
    assert regatta.json("hosts") == []


def test_nobody_listens_and_later_somebody_does(regatta, fleet):
    fleet.kill_master()
    fleet.start("alpha")
    wait_for(lambda: "trying again" in fleet.log("alpha").read_text(), what="the line")
    fleet.start_master()
    fleet.wait(["alpha"], "free")
    assert fleet.log("alpha").read_text().count("trying again") == 1


def join_frame(fleet, **changes):
    """What the master answers to a JOIN: type and payload."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["regatta-link/1"])
    join = {"proto": 1, "id": "i" * 32, "name": "raw", "token": fleet.said["join"], "boot_id": "b", "version": "0",
            "time_ms": int(time.time() * 1000), "cpus": 1, "gpus": 0, "memory": 1, "labels": {}, **changes}
    body = json.dumps(join).encode()
    with context.wrap_socket(socket.create_connection(("127.0.0.1", fleet.port), 10)) as s:
        s.sendall(struct.pack("<IBBH", len(body), JOIN, 0, 0) + body)
        head = s.recv(8)
        length, kind = struct.unpack("<IB", head[:5])
        return kind, s.recv(length).decode() if length else ""


def test_another_protocol_and_a_clock_that_is_off(regatta, fleet):
    assert join_frame(fleet)[0] == JOINED
    kind, text = join_frame(fleet, proto=0)
    assert kind == REFUSE and '"unavailable"' in text
    assert "protocol version not supported: this master speaks version 1; install its version of regatta" in text
    for ahead, word in ((HOUR_MS, "ahead of"), (-HOUR_MS, "behind")):
        kind, text = join_frame(fleet, time_ms=int(time.time() * 1000) + ahead, name="late")
        assert kind == REFUSE and f"{word} the master's: set it" in text, text
    assert join_frame(fleet, time_ms=int(time.time() * 1000) + 60000)[0] == JOINED
    assert set(fleet.list()) == {"raw"}


def test_the_line_that_the_master_prints_can_be_typed(regatta, fleet):
    """announce.c prints URL, pin and token of --output json behind 'regatta agent'."""
    words = ["agent", "--join", fleet.said["url"], "--pin", fleet.said["pin"], "--token", fleet.said["join"]]
    child = regatta.start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    fleet.daemons["own"] = child
    wait_for(lambda: [h["state"] for h in regatta.json("hosts")] == ["free"], what="the host")
    assert regatta.json("hosts")[0]["name"] == socket.gethostname()


def test_a_master_without_descriptors_for_more_hosts(regatta):
    """They wait, and the clients of the master's machine are answered."""
    limited = subprocess.Popen(["sh", "-c", f"ulimit -n 66; exec {BINARY} master --listen 127.0.0.1:0 --output json"],
                               env=regatta.env, cwd=regatta.cwd, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    regatta.children.append(limited)
    said = json.loads(limited.stdout.readline())
    daemons = {}
    for name in ("alpha", "beta", "gamma"):
        with open(regatta.cwd / f"{name}.log", "wb") as log:
            daemons[name] = regatta.start("agent", "--join", said["url"], "--pin", said["pin"], "--token", said["join"],
                                          "--name", name, stdout=subprocess.DEVNULL, stderr=log)
    says = ("the master has no room for this host: 0 nodes and 3 hosts need 67 open files, and the master may have 66 (ulimit -n): "
            "start the master again with a higher limit; trying again")
    logs = {name: regatta.cwd / f"{name}.log" for name in daemons}
    wait_for(lambda: sum(says in log.read_text() for log in logs.values()) == 1, what="one that has no room")
    wait_for(lambda: len(regatta.json("hosts")) == 2, what="two hosts")
    waits = next(name for name, log in logs.items() if says in log.read_text())
    assert daemons[waits].poll() is None
    left = next(name for name in daemons if name != waits)
    daemons[left].terminate()
    assert daemons[left].wait(30) == 0
    wait_for(lambda: {h["name"]: h["state"] for h in regatta.json("hosts")}.get(waits) == "free", what="its turn")
    assert logs[waits].read_text().count("no room") == 1
