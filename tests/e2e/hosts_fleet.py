"""A master on a TLS port and hosts that join it, all on this machine, each host with a directory of its own."""
import contextlib
import json
import pathlib
import random
import signal
import socket
import subprocess

from conftest import wait_for


def free_port():
    """A port that is still free after a restart: below the range of the kernel's ephemeral ports."""
    while True:
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("0.0.0.0", random.randrange(20000, 32000)))
            return s.getsockname()[1]


class Fleet:
    """Of one user: the master, and the daemons of its hosts by name."""

    def __init__(self, regatta, address="0.0.0.0"):
        self.regatta, self.address, self.port, self.daemons = regatta, address, free_port(), {}
        self.start_master()

    def start_master(self):
        self.master = self.regatta.start("master", "--listen", f"{self.address}:{self.port}", "--output", "json",
                                         stderr=subprocess.DEVNULL)
        self.said = json.loads(self.master.stdout.readline())
        # This machine's own address may be one that it cannot be reached by.
        self.url = f"https://127.0.0.1:{self.port}"

    def kill_master(self):
        self.master.kill()
        self.master.wait()
        (self.regatta.home / "api.sock").unlink(missing_ok=True)

    def dir(self, name):
        return self.regatta.home / "joined" / name

    def log(self, name):
        return pathlib.Path(f"{self.regatta.cwd}/{name}.host.log")

    def start(self, name, *args, **said):
        """The daemon of a host; `said` replaces what the master said (url, pin, join)."""
        said = {**self.said, "url": self.url, **said}
        with open(self.log(name), "ab") as log:
            child = self.regatta.start("agent", "--join", said["url"], "--pin", said["pin"], "--token", said["join"],
                                       "--name", name, *args, stdout=subprocess.DEVNULL, stderr=log)
        self.daemons[name] = child
        return child

    def join(self, *names, labels=None):
        for name in names:
            self.start(name, *(["--labels", labels] if labels else []))
        self.wait(names, "free")

    def list(self):
        return {h["name"]: h for h in self.regatta.json("hosts")}

    def wait(self, names, state):
        wait_for(lambda: all(self.list().get(n, {}).get("state") == state for n in names), what=f"{names} to be {state}")

    def kill(self, name):
        self.daemons[name].send_signal(signal.SIGKILL)
        self.daemons[name].wait()

    def nodes(self, name):
        """Directories of nodes that are on a host."""
        return sorted(self.dir(name).glob("runs/*/*/*.node"))

    def close(self):
        for child in self.daemons.values():
            if child.poll() is None:
                child.terminate()
            child.wait(30)


def refused(fleet, name, **said):
    """A daemon that must not be accepted: its exit code and its last line."""
    child = fleet.start(name, **said)
    code = child.wait(30)
    return code, fleet.log(name).read_text().splitlines()[-1]
