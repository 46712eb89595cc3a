"""Agents on the master's TLS port: the same bytes, the same limits, and the same life after kill -9."""
import contextlib
import hashlib
import json
import os
import random
import signal
import socket
import ssl
import struct
import subprocess
import threading

from conftest import BINARY, wait_for
from service import start_service

HELLO, REFUSE = 1, 3
MIB = 1024 * 1024

# Waits, then prints 6 MB with pauses, and writes the same to a file of its own.
WRITER = """
import os, pathlib, random, sys, time
go = pathlib.Path(sys.argv[1])
while not go.exists():
    time.sleep(0.02)
rng = random.Random(os.environ["REGATTA_NODE"])
copy = open(f"copy-{os.environ['REGATTA_NODE']}", "wb")
for i in range(60):
    data = rng.randbytes(100000)
    copy.write(data)
    copy.flush()
    while data:
        data = data[os.write(1, data):]
    time.sleep(0.02)
"""


def free_port():
    """A port that is still free after a restart: below the range of the kernel's ephemeral ports."""
    while True:
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("0.0.0.0", random.randrange(20000, 32000)))
            return s.getsockname()[1]


def configs(regatta, run, count):
    def there():
        found = sorted((regatta.home / "runs" / run).glob("*.node/agent.json"))
        return found if len(found) == count else None
    return wait_for(there, what="the nodes")


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def is_dead(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def move_agents(regatta, run, count, master):
    """The agents of a run come back as agents of another machine would: by URL and pin.  The log of each."""
    logs = []
    with stopped(int((regatta.home / "lock").read_text())):  # else it would start them again itself
        killed = regatta.pids("node-agent")
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: all(map(is_dead, killed)), what="the old agents give their directories up")
        for path in configs(regatta, run, count):
            config = json.loads(path.read_text().splitlines()[0])
            config.pop("link_dir", None)
            config.pop("link_name", None)
            config.update(master)
            path.write_text(json.dumps(config) + "\n")
            logs.append(open(path.parent / "own.log", "wb+"))
            regatta.children.append(subprocess.Popen(
                [BINARY, "node-agent", path.parent], stderr=logs[-1], stdout=subprocess.DEVNULL,
                env={**regatta.env, "REGATTA_NODE_TOKEN": config["mark"]}))
        # Before that it has not taken its directory, and the master would take it for dead when it goes on.
        port = int(master["master"].rsplit(":", 1)[1])
        for agent in regatta.children[-count:]:
            wait_for(lambda agent=agent: peers(agent.pid, port), what="the agent dials")
    return logs


def peers(pid, port):
    """Established connections of a process to a port."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            inodes.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    return sum(r[3] == "01" and int(r[2].split(":")[1], 16) == port and f"socket:[{r[9]}]" in inodes for r in rows)


def start_master(regatta, port):
    service = start_service(regatta, f"0.0.0.0:{port}")
    url, pin = (regatta.home / "http").read_text().split()
    assert url == f"https://127.0.0.1:{port}"
    return service, {"master": f"https://localhost:{port}", "pin": pin}


def test_a_run_over_tls_survives_the_master(regatta, tmp_path):
    port = free_port()
    _, master = start_master(regatta, port)
    run = regatta.submit("-n", "2", "--", "python3", regatta.script(WRITER), tmp_path / "go")
    regatta.wait(run, state="running")
    move_agents(regatta, run, 2, master)
    wait_for(lambda: [peers(p, port) for p in regatta.pids("node-agent")] == [1, 1], what="agents on the TLS port")
    (tmp_path / "go").touch()
    first = configs(regatta, run, 2)[0].parent.name[:-len(".node")]
    for _ in range(2):
        before = len(regatta.log(run, first))
        wait_for(lambda: len(regatta.log(run, first)) > before, what="bytes")
        os.kill(int((regatta.home / "lock").read_text()), signal.SIGKILL)
        for child in regatta.children:
            if child.args[1] == "master":
                child.wait()
        (regatta.home / "api.sock").unlink(missing_ok=True)
        start_master(regatta, port)
    assert regatta.wait(run)["verdict"] == "succeeded"
    for node in regatta.status(run)["nodes"]:
        mine = (regatta.cwd / f"copy-{node['name']}").read_bytes()
        assert len(mine) == 6000000
        assert hashlib.sha256(regatta.log(run, node["name"])).digest() == hashlib.sha256(mine).digest()


class Counter(threading.Thread):
    """Passes connections on to a port and counts them."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.listener, self.to, self.count = socket.create_server(("127.0.0.1", 0)), port, 0
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            near = self.listener.accept()[0]
            far = socket.create_connection(("127.0.0.1", self.to))
            self.count += 1
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.copy, args=(a, b), daemon=True).start()

    def copy(self, a, b):
        with contextlib.suppress(OSError):
            while data := a.recv(65536):
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)


def test_a_wrong_pin_is_one_line_and_costs_no_job(regatta, tmp_path):
    port = free_port()
    _, master = start_master(regatta, port)
    run = regatta.submit("--", "sh", "-c", f"until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo done")
    regatta.wait(run, state="running")
    counter = Counter(port)
    wrong = {"master": f"https://127.0.0.1:{counter.port}", "pin": "sha256//" + "A" * 43 + "="}
    logs = move_agents(regatta, run, 1, wrong)
    path = configs(regatta, run, 1)[0].parent / "own.log"
    wait_for(lambda: "expected sha256//AAAA" in path.read_text(), what="the line about the key")
    wait_for(lambda: counter.count >= 5, what="more dials")
    lines = [line for line in path.read_text().splitlines() if "the server's key is" in line]
    assert len(lines) == 1 and master["pin"] in lines[0], path.read_text()
    assert regatta.status(run)["state"] == "running"
    move_agents(regatta, run, 1, master)
    (tmp_path / "go").touch()
    assert regatta.wait(run)["verdict"] == "succeeded"
    assert b"done\n" in regatta.log(run, regatta.status(run)["nodes"][0]["name"])
    for log in logs:
        log.close()


def dial(port, protocols):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if protocols:
        context.set_alpn_protocols(protocols)
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port), 10))


def test_one_port_two_protocols(regatta):
    port = free_port()
    service, _ = start_master(regatta, port)
    for protocols in (None, ["http/1.1"], ["h2", "http/1.1"], ["h2"], ["regatta-link/2"]):
        with dial(port, protocols) as s:
            assert s.selected_alpn_protocol() == ("http/1.1" if protocols and "http/1.1" in protocols else None)
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
            assert s.recv(100).startswith(b"HTTP/1.1 200"), protocols
    hello = json.dumps({"proto": 1, "run": "r", "node": "n", "token": "t", "boot_id": "b", "pid": 1, "version": "0",
                        "attempt": 0, "holds": "nothing", "streams": [0, 0, 0]}).encode()
    with dial(port, ["regatta-link/1", "http/1.1"]) as s:
        assert s.selected_alpn_protocol() == "regatta-link/1"
        s.sendall(struct.pack("<IBBH", len(hello), HELLO, 0, 0) + hello)
        got = s.recv(4096)
        assert got[4] == REFUSE and b"denied" in got
    with dial(port, ["regatta-link/1"]) as s:  # the limit of strangers holds here, too
        s.sendall(struct.pack("<IBBH", MIB, HELLO, 0, 0))
        with contextlib.suppress(ConnectionResetError):
            assert s.recv(100) == b""
    assert service.own


def test_strangers_on_the_tls_port_cost_next_to_nothing(regatta):
    port = free_port()
    start_master(regatta, port)
    master = int((regatta.home / "lock").read_text())
    half = [socket.create_connection(("127.0.0.1", port)) for _ in range(1000)]
    idle = [dial(port, ["regatta-link/1"]) for _ in range(300)]
    assert len(os.listdir(f"/proc/{master}/fd")) < 900
    assert "succeeded" in regatta("run", "-n", "4", "--", "true").out
    for s in half + idle:
        s.close()
