"""Tokens on the wire between machines: replayed, of another run or node, wrong, expired; and another protocol."""
import json
import shutil
import subprocess
import sys
import time

import pytest

from conftest import wait_for
from lab import MASTER, NAMED, PORT, lab, needs_lab  # noqa: F401 (a fixture)

pytestmark = needs_lab

HELLO, WELCOME, REFUSE, JOIN, JOINED = 1, 2, 3, 21, 22

# One frame to the master's TLS port, and its answer.
CLIENT = """
import json, socket, ssl, struct, sys
address, port, kind = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
context.set_alpn_protocols(["regatta-link/1"])
body = sys.stdin.buffer.read()
with context.wrap_socket(socket.create_connection((address, port), 10)) as s:
    s.sendall(struct.pack("<IBBH", len(body), kind, 0, 0) + body)
    data = b""
    while len(data) < 8 or len(data) < 8 + struct.unpack("<I", data[:4])[0]:
        more = s.recv(65536)
        if not more:
            break
        data += more
print(json.dumps([data[4], data[8:].decode()]) if data else "null")
"""


def say(lab, kind, **payload):
    """From host d, which never joins."""
    done = subprocess.run(["nsenter", f"--net={NAMED / lab.ns('d')}", sys.executable, "-c", CLIENT, lab.address[MASTER],
                           str(PORT), str(kind)], input=json.dumps(payload), capture_output=True, text=True, check=True,
                          timeout=30)
    return json.loads(done.stdout)


def hello(lab, config, **changes):
    keys = {"proto": 1, "boot_id": "b" * 36, "pid": 1, "version": "0", "attempt": 0, "holds": "nothing", "streams": [0, 0, 0],
            **{k: config[k] for k in ("run", "node", "token", "incarnation") if k in config}, **changes}
    return say(lab, HELLO, **keys)


def config_of(lab, name):
    """agent.json of the node that is on a host: what somebody who stole it has."""
    (node,) = lab.nodes(name)
    return json.loads((node / "agent.json").read_text().splitlines()[0])


def is_refused(answer, kind):
    assert answer and answer[0] == REFUSE and json.loads(answer[1])["kind"] == kind, answer
    return json.loads(answer[1]).get("reason", "")


def start(regatta, host):
    run = regatta.submit("--engine", "hosts", "--set", f'hosts.names=["{host}"]', "--", "sleep", "100")
    regatta.wait(run, state="running")
    return run


def test_the_token_of_a_node_is_good_for_that_node_only(regatta, lab):
    lab.join("a", "b")
    runs = [start(regatta, host) for host in "ab"]
    one, other = config_of(lab, "a"), config_of(lab, "b")
    assert one["run"] == runs[0] and one["token"] != other["token"]
    is_refused(hello(lab, one, token="0" * 64), "denied")
    is_refused(hello(lab, one, token=other["token"]), "denied")
    is_refused(hello(lab, one, token=lab.said["join"]), "denied")
    is_refused(hello(lab, one, token=lab.said["token"]), "denied")
    assert [regatta.status(run)["state"] for run in runs] == ["running"] * 2


def test_the_token_of_a_run_that_has_ended_opens_nothing(regatta, lab):
    lab.join("a")
    run = start(regatta, "a")
    stolen = config_of(lab, "a")
    regatta("kill", "--now", run)
    regatta.wait(run)
    answer = hello(lab, stolen)
    assert answer[0] == REFUSE, answer
    lab.wait("a", "free")


def test_a_join_token_names_no_other_host(regatta, lab):
    """Replayed by another machine under the same name: the first one stays."""
    lab.join("a")
    facts = {"proto": 1, "id": "i" * 32, "name": "a", "token": lab.said["join"], "boot_id": "b", "version": "0",
             "time_ms": int(time.time() * 1000), "cpus": 1, "gpus": 0, "memory": 1, "labels": {}}
    assert "another host named 'a' has joined from 10.77.0.2" in is_refused(say(lab, JOIN, **facts), "conflict")
    is_refused(say(lab, JOIN, **{**facts, "name": "d", "token": "0" * 64}), "denied")
    is_refused(say(lab, JOIN, **{**facts, "name": "d", "token": lab.said["token"]}), "denied")
    short = regatta.json("token", "new", "--scope", "join", "--expires", "1s")["token"]
    assert say(lab, JOIN, **{**facts, "name": "d", "token": short})[0] == JOINED
    time.sleep(1.1)
    is_refused(say(lab, JOIN, **{**facts, "name": "e", "token": short}), "denied")
    assert lab.list()["a"]["state"] == "free" and set(lab.list()) == {"a", "d"}


def test_a_join_token_of_another_master_is_refused(regatta, lab, tmp_path):
    from conftest import Regatta
    (tmp_path / "work2").mkdir()
    other = Regatta(tmp_path / "home2", tmp_path / "work2")
    token = other.json("token", "new", "--scope", "join")["token"]
    other("master", "--stop")
    facts = {"proto": 1, "id": "i" * 32, "name": "d", "token": token, "boot_id": "b", "version": "0",
             "time_ms": int(time.time() * 1000), "cpus": 1, "gpus": 0, "memory": 1, "labels": {}}
    is_refused(say(lab, JOIN, **facts), "denied")
    assert not lab.list()


@pytest.mark.parametrize("proto", [0, 2])
def test_another_protocol_gets_the_documented_answer(regatta, lab, proto):
    lab.join("a")
    start(regatta, "a")
    text = "protocol version not supported: this master speaks version 1; install its version of regatta ('regatta version')"
    assert is_refused(hello(lab, config_of(lab, "a"), proto=proto), "unavailable") == text
    assert is_refused(say(lab, JOIN, proto=proto), "unavailable") == text
    assert regatta.json("hosts")[0]["state"] == "busy"


def test_an_older_incarnation_of_a_node_is_sent_away(regatta, lab):
    """Somebody who has the directory of a node from before it was made again."""
    lab.join("a")
    run = start(regatta, "a")
    config = config_of(lab, "a")
    if "incarnation" not in config:
        pytest.skip("nodes of this version have no incarnation")
    answer = hello(lab, config, incarnation=config["incarnation"] - 1, holds="nothing")
    assert answer is None or answer[0] != WELCOME, answer
    assert regatta.status(run)["state"] == "running"
    wait_for(lambda: lab.pids("node-agent"), what="the agent of the node")


def test_a_copied_directory_does_not_take_the_place_of_its_host(lab, regatta):
    """A machine made from an image in which a host's directory was."""
    lab.join("a")
    copy, machine = regatta.cwd / "copy", regatta.cwd / "machine-id"
    shutil.copytree(lab.dir("a"), copy)
    machine.write_text("0123456789abcdef" * 2 + "\n")
    as_another = ("unshare", "--mount", "sh", "-c", f"mount --bind '{machine}' /etc/machine-id && exec \"$@\"", "sh")
    with open(regatta.cwd / "copy.log", "wb") as log:
        second = lab.start("b", "agent", "--join", f"https://{lab.address[MASTER]}:{PORT}", "--pin", lab.said["pin"], "--token",
                           lab.said["join"], "--name", "a", "--dir", copy, before=as_another, stdout=subprocess.DEVNULL,
                           stderr=log)
    assert second.wait(30) == 2
    said = (regatta.cwd / "copy.log").read_text()
    assert f"this host's directory is a copy of that of 'a' on another machine ({lab.address['a']})" in said
    assert "start it with an empty directory (--dir) and another name (--name)" in said
    assert lab.daemons["a"].poll() is None
    assert lab.list()["a"]["state"] == "free"
    assert lab.list()["a"]["address"] == lab.address["a"]
