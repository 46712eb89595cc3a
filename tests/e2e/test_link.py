"""Peers of the link: what a peer without a token may use and learn, and what an agent does whose run is gone."""
import json
import os
import pathlib
import signal
import socket
import struct

from conftest import wait_for

HELLO, WELCOME, REFUSE = 1, 2, 3
MIB = 1024 * 1024


def dial(regatta):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(10)
    s.connect(str(regatta.home / "link.sock"))
    return s


def frame(kind, payload):
    return struct.pack("<IBBH", len(payload), kind, 0, 0) + payload


def hello(regatta, run, node, token, incarnation=1):
    """The type and the payload of the answer."""
    with dial(regatta) as s:
        s.sendall(frame(HELLO, json.dumps({"proto": 1, "run": run, "node": node, "token": token, "boot_id": "b", "pid": 1,
                                           "version": "0", "attempt": 0, "holds": "nothing", "streams": [0, 0, 0],
                                           "incarnation": incarnation}).encode()))
        data = b""
        while len(data) < 8 or len(data) < 8 + struct.unpack("<I", data[:4])[0]:
            part = s.recv(65536)
            assert part, data
            data += part
        return data[4], json.loads(data[8:8 + struct.unpack("<I", data[:4])[0]])


def resident(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(pid)


def test_peers_without_a_hello_cost_next_to_nothing(regatta):
    regatta("run", "--", "true")
    master = int((regatta.home / "lock").read_text())
    before = resident(master)
    peers = []
    for _ in range(300):
        s = dial(regatta)
        try:  # a frame as long as an agent's may be, all but its last byte
            s.sendall(struct.pack("<IBBH", MIB, HELLO, 0, 0) + b" " * (MIB - 1))
        except OSError:
            pass  # refused by its header
        peers.append(s)
    assert resident(master) - before < 16 * MIB
    idle = [dial(regatta) for _ in range(1000)]
    assert len(os.listdir(f"/proc/{master}/fd")) < 500
    assert "succeeded" in regatta("run", "-n", "8", "--", "true").out
    for s in peers + idle:
        s.close()


def test_without_a_token_nobody_learns_whether_a_run_exists(regatta):
    run = regatta.submit("--", "sleep", "600")
    config = wait_for(lambda: next(iter((regatta.home / "runs" / run).glob("*.node/agent.json")), None), what="the node")
    text = json.loads(config.read_text().splitlines()[0])
    node, token = text["node"], text["token"]
    assert text["incarnation"] == 1
    answers = [hello(regatta, *who) for who in [(run, node, "0" * 64), ("nothing-abcd", node, "0" * 64), (run, "nobody-0", "0" * 64),
                                               (run, node, ""), ("nothing-abcd", node, token), (run, node, token, 2)]]
    assert answers[0][0] == REFUSE and answers[0][1]["kind"] == "denied"
    assert all(a == answers[0] for a in answers), answers
    assert hello(regatta, run, node, token)[0] == WELCOME
    regatta("kill", run)
    regatta.wait(run)


def test_an_agent_whose_run_is_gone_stops_its_job_and_leaves(regatta):
    """The database is lost, the agent starts a master, and this one does not know the run."""
    run = regatta.submit("--", "sh", "-c", "echo $$; exec sleep 600")
    pid = int(wait_for(lambda: regatta("logs", run).out.split("|")[-1].strip(), what="the job's pid"))
    os.kill(int((regatta.home / "lock").read_text()), signal.SIGKILL)
    for path in regatta.home.glob("regatta.db*"):
        path.unlink()
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), what="the end of the job")
    wait_for(lambda: "refuses this node" in (regatta.home / "agents.log").read_text(), what="the refusal")
