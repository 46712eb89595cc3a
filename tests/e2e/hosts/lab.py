"""Several machines on this one: network namespaces behind a switch, with a master in one and hosts in the others.

The switch is a bridge in a namespace of its own, so that nothing of this machine's network is touched and no firewall of
it is in the way. Machines share files and processes with this one: a test sees what a job on a host wrote, and who
still lives there.

What a lab makes is removed when its test ends, also when it is interrupted; what a test that was killed left is removed
when the next lab begins.
"""
import contextlib
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from conftest import BINARY, wait_for
from namespaces import NAMED, pids_in

TOOLS = ("ip", "nft", "tc", "nsenter", "unshare")
GROUPS = pathlib.Path("/sys/fs/cgroup")
PREFIX = "rgt"
PORT = 5436
MASTER = "master"


def missing():
    """Why there can be no lab here; '' if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    absent = [tool for tool in TOOLS if not shutil.which(tool)]
    if absent:
        return f"{', '.join(absent)} is not installed (tools/setup test)"
    made = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True, check=False)
    return f"no network namespaces here: {made.stderr.strip()}" if made.returncode else ""


needs_lab = pytest.mark.skipif(bool(missing()), reason=missing() or "-")


def ip(*args, check=True):
    done = subprocess.run(["ip", *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0 or not check, f"ip {' '.join(args)}: {done.stderr}"
    return done.stdout


def kill_in(ns):
    """Kills every process of a namespace, and those that they start in the meantime."""
    for _ in range(200):
        pids = pids_in(ns)
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def remove(ns):
    kill_in(ns)
    ip("netns", "del", ns, check=False)


def sweep():
    """Removes what earlier labs left whose process is dead."""
    for ns in os.listdir(NAMED) if NAMED.exists() else []:
        owner = re.fullmatch(PREFIX + r"(\d+)-.*", ns)
        if owner and not os.path.exists(f"/proc/{owner[1]}"):
            remove(ns)


class Lab:
    """A master, hosts a, b, c ... with addresses 10.77.0.2 and on, and the cables between them."""

    numbers = itertools.count()

    def __init__(self, regatta, names):
        self.regatta, self.names, self.daemons, self.joined = regatta, list(names), {}, {}
        self.tag = f"{PREFIX}{os.getpid()}-{next(self.numbers)}"
        self.hosts_file = regatta.cwd / "hosts"
        self.address = {MASTER: "10.77.0.1"}
        self.address.update({name: f"10.77.0.{i}" for i, name in enumerate(names, 2)})
        self.name_master(self.address[MASTER])
        sweep()
        ip("netns", "add", self.ns("switch"))
        ip("-n", self.ns("switch"), "link", "add", "br0", "type", "bridge")
        ip("-n", self.ns("switch"), "link", "set", "br0", "up")
        for i, (name, address) in enumerate(self.address.items()):
            self.connect(f"p{i}", name, address)

    def ns(self, name):
        return f"{self.tag}-{name}"

    def connect(self, port, name, address):
        ip("netns", "add", self.ns(name))
        ip("link", "add", port, "netns", self.ns("switch"), "type", "veth", "peer", "eth0", "netns", self.ns(name))
        ip("-n", self.ns("switch"), "link", "set", port, "master", "br0", "up")
        ip("-n", self.ns(name), "addr", "add", f"{address}/24", "dev", "eth0")
        ip("-n", self.ns(name), "link", "set", "lo", "up")
        ip("-n", self.ns(name), "link", "set", "eth0", "up")

    def close(self):
        for name in [*self.names, MASTER, "switch"]:
            remove(self.ns(name))
        for child in self.regatta.children:
            child.wait(10)
        self.remove_groups()

    def groups(self):
        """Control groups of nodes of the lab's runs."""
        runs = {path.name for path in self.regatta.home.glob("runs/*")}
        # os.walk passes over groups of other tests that vanish meanwhile.
        return [pathlib.Path(top, name) for top, names, _ in os.walk(GROUPS) for name in names
                if name.startswith("regatta.") and name.split(".")[1] in runs]

    def remove_groups(self):
        """Of nodes whose host was killed as a whole: nobody was left who could."""
        for path in sorted(self.groups(), reverse=True):
            with contextlib.suppress(OSError):  # those below it went first
                path.rmdir()

    # ---- processes ----

    def start(self, name, *args, before=(), **kw):
        """A regatta on the machine `name`."""
        argv = [*before, "nsenter", f"--net={NAMED / self.ns(name)}", str(BINARY), *map(str, args)]
        child = subprocess.Popen(argv, cwd=self.regatta.cwd, env=self.regatta.env, stdin=subprocess.DEVNULL, **kw)
        self.regatta.children.append(child)
        return child

    def start_master(self):
        log = open(self.regatta.cwd / "master.err", "ab")
        with log:
            self.master = self.start(MASTER, "master", "--listen", f"0.0.0.0:{PORT}", "--output", "json",
                                     stdout=subprocess.PIPE, stderr=log)
        line = self.master.stdout.readline()
        assert line, f"the master says: {(self.regatta.cwd / 'master.err').read_text()}"
        self.said = json.loads(line)

    def kill_master(self):
        self.master.kill()
        self.master.wait()

    def log(self, name):
        return self.regatta.cwd / f"{name}.host.log"

    def dir(self, name):
        return self.regatta.home / "joined" / name

    def join(self, *names, host=None, before=(), options=(), wait=True):
        """The daemons of these hosts; host: how they name the master (default: its address)."""
        for name in names:
            self.joined[name] = {"host": host, "before": before, "options": options}
            # A mount namespace of its own, in which /etc/hosts is the lab's.
            own = ("unshare", "--mount", "sh", "-c", f"mount --bind '{self.hosts_file}' /etc/hosts && exec \"$@\"", "sh")
            with open(self.log(name), "ab") as log:
                self.daemons[name] = self.start(
                    name, "agent", "--join", f"https://{host or self.address[MASTER]}:{PORT}", "--pin", self.said["pin"],
                    "--token", self.said["join"], "--name", name, *options, before=(*own, *before),
                    stdout=subprocess.DEVNULL, stderr=log)
        if wait:
            self.wait(names, ("free", "busy"))

    def list(self):
        return {h["name"]: h for h in self.regatta.json("hosts")}

    def wait(self, names, states, seconds=60):
        states = (states,) if isinstance(states, str) else states
        wait_for(lambda: all(self.list().get(n, {}).get("state") in states for n in names), seconds,
                 f"{names} to be {states}")

    def kill_host(self, name):
        """As if its power were cut: every process at once."""
        kill_in(self.ns(name))
        self.daemons[name].kill()  # it may be on its way into the namespace
        self.daemons[name].wait()

    def rejoin(self, *names, wait=True):
        for name in names:
            self.join(name, wait=False, **self.joined[name])
        if wait:
            self.wait(names, ("free", "busy"))

    def pids(self, kind, names=None):
        """Of all hosts, or these: 'agent' (the daemon), 'node-agent', 'shim' or 'forkserver'."""
        found = []
        for name in names or self.names:
            for pid in pids_in(self.ns(name)):
                with contextlib.suppress(OSError):
                    words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                    if len(words) > 1 and words[1] == kind.encode():
                        found.append(pid)
        return found

    def nodes(self, name):
        """Directories of nodes that are on a host."""
        return sorted(self.dir(name).glob("runs/*/*/*.node"))

    def jobs(self, name):
        """Processes of a host that are not regatta's."""
        found = []
        for pid in pids_in(self.ns(name)):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)") != str(BINARY):
                    found.append(pid)
        return found

    def is_clean(self):
        return not any(self.nodes(name) or self.jobs(name) for name in self.names)

    # ---- the network ----

    def name_master(self, address):
        """What the machines of the lab find for master.lab; in place, because it is mounted."""
        self.hosts_file.write_text(f"127.0.0.1 localhost\n{address} master.lab\n")

    def nft(self, name, text):
        done = subprocess.run(["nsenter", f"--net={NAMED / self.ns(name)}", "nft", "-f", "-"], input=text, text=True,
                              capture_output=True, check=False)
        assert done.returncode == 0, done.stderr

    def cut(self, *names, ways=("input", "output")):
        """Drops all packets in these directions, as seen from the host."""
        for name in names:
            chains = "".join(f"chain {way} {{ type filter hook {way} priority 0; policy drop; "
                             f"{'iif' if way == 'input' else 'oif'} lo accept; }}\n" for way in ways)
            self.nft(name, f"table inet cut {{\n{chains}}}\n")

    def heal(self, *names):
        for name in names:
            self.nft(name, "table inet cut { }\ndelete table inet cut\n")

    def resets(self, name, way, one_in):
        """One packet in so many, of those that carry something, ends its connection."""
        self.nft(name, f"table inet cut {{\nchain {way} {{\ntype filter hook {way} priority 0;\n"
                       f"tcp flags & (syn|fin|rst) == 0 numgen random mod {one_in} == 0 counter reject with tcp reset\n}}\n}}\n")

    def resets_so_far(self, name):
        listed = subprocess.run(["nsenter", f"--net={NAMED / self.ns(name)}", "nft", "list", "table", "inet", "cut"],
                                capture_output=True, text=True, check=True).stdout
        return int(re.search(r"counter packets (\d+)", listed)[1])

    def slow(self, name, rate):
        done = subprocess.run(["tc", "-n", self.ns(name), "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", rate,
                               "burst", "8kb", "latency", "200ms"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def move_master(self, address):
        ip("-n", self.ns(MASTER), "addr", "flush", "dev", "eth0")
        ip("-n", self.ns(MASTER), "addr", "add", f"{address}/24", "dev", "eth0")
        self.address[MASTER] = address
        self.name_master(address)


@contextlib.contextmanager
def lab_of(regatta, names):
    lab = Lab(regatta, names)
    try:
        lab.start_master()
        yield lab
    finally:
        lab.close()
    assert not lab.groups(), "control groups are left"


@pytest.fixture
def lab(regatta):
    """Four hosts and a master that has been started; nobody has joined."""
    with lab_of(regatta, "abcd") as made:
        yield made
        regatta("master", "--stop", "--cancel", code=None, timeout=60)
        left = {n: made.nodes(n) for n in made.names if made.nodes(n) and made.daemons.get(n) and made.daemons[n].poll() is None}
        assert not left, f"nodes left on hosts: {left}"
