"""Shared by all end-to-end tests: the real binary, a home of its own, and a check for leftovers afterwards.

A test that leaves a process, a cgroup or a mount behind has failed, whatever it asserted.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))  # "from cloud import Cloud": a small AWS
from time_limit import pytest_runtest_call  # noqa: E402,F401
BINARY = pathlib.Path(os.environ.get("REGATTA_BINARY", ROOT / "build" / "regatta"))
TIMEOUT = 60


def processes():
    """pid -> (command line, environment) of every process that this user may read."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            cmd = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes()
            env = pathlib.Path(f"/proc/{entry}/environ").read_bytes()
            state = pathlib.Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if state != "Z":
            found[int(entry)] = (cmd, env)
    return found


def wait_for(condition, seconds=TIMEOUT, what="the condition"):
    """Poll until condition() is true; its value is returned."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.01)


class Regatta:
    """One user: a home, and the command line."""

    def __init__(self, home, cwd):
        self.home = pathlib.Path(home)
        self.cwd = pathlib.Path(cwd)
        self.env = dict(os.environ, REGATTA_HOME=str(home), REGATTA_IDLE="30s", NO_COLOR="1")
        self.env.pop("XDG_STATE_HOME", None)
        self.children = []

    def __call__(self, *args, code=0, timeout=TIMEOUT, stdin=None, env=None):
        """Run to the end; the exit code must be `code` (None: any)."""
        done = subprocess.run([BINARY, *map(str, args)], cwd=self.cwd, env={**self.env, **(env or {})}, input=stdin,
                              capture_output=True, timeout=timeout)
        done.out, done.err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        if code is not None:
            assert done.returncode == code, f"regatta {args}: exit {done.returncode}\n{done.out}\n{done.err}"
        return done

    def json(self, *args, code=0, **kw):
        return json.loads(self(args[0], "--output", "json", *args[1:], code=code, **kw).stdout)

    def start(self, *args, **kw):
        kw.setdefault("stdout", subprocess.PIPE)
        kw.setdefault("stderr", subprocess.PIPE)
        child = subprocess.Popen([BINARY, *map(str, args)], cwd=self.cwd, env=self.env, **kw)
        self.children.append(child)
        return child

    def submit(self, *args):
        return self("run", "-d", *args).out.split()[-1]

    def job(self, text, name="job.toml"):
        path = self.cwd / name
        path.write_text(text)
        return path

    def script(self, text, name="job.py"):
        path = self.cwd / name
        path.write_text(text)
        return path

    def status(self, run):
        return self.json("status", run)

    def wait(self, run, seconds=TIMEOUT, state=None):
        """Until the run has ended, or is in `state`."""
        def there():
            got = self.status(run)
            if state:
                return got if got["state"] == state else None
            return got if got["verdict"] and got["exit_code"] is not None else None
        return wait_for(there, seconds, f"run {run} {state or 'to end'}")

    def log(self, run, node, err=False):
        return (self.home / "runs" / run / "logs" / f"{node}{'.err' if err else ''}.log").read_bytes()

    def pids(self, kind):
        """Of this home: 'master', 'agent' (of a host), 'node-agent', 'shim' or 'forkserver'."""
        found = []
        for pid, (cmd, env) in processes().items():
            args = cmd.split(b"\0")
            if len(args) < 2 or args[1] != kind.encode():
                continue
            if kind == "master" and f"REGATTA_HOME={self.home}".encode() in env:
                found.append(pid)
            if kind != "master" and str(self.home).encode() in args[2]:
                found.append(pid)
        return found

    def ours(self):
        """Every process that belongs to this home: by its arguments or its environment."""
        mark = str(self.home).encode()
        mine = {os.getpid(), os.getppid()}
        return {pid: cmd for pid, (cmd, env) in processes().items()
                if pid not in mine and (mark in cmd or mark in env)}

    def left(self, run):
        """What still runs of a run: processes that name it in their arguments or environment."""
        found = processes()
        return {pid: cmd for pid, cmd in self.ours().items() if run.encode() in b"".join(found.get(pid, (b"", b"")))}

    def kill_all(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()
        for _ in range(200):
            left = self.ours()
            if not left:
                return
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.02)

    def cgroups(self):
        found = []
        for base in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory", "/sys/fs/cgroup"):
            for path, dirs, _ in os.walk(base):
                depth = path[len(base):].count("/")
                if depth > 3:
                    dirs.clear()
                found += [os.path.join(path, d) for d in dirs if d.startswith("regatta")]
        return found


@pytest.fixture
def regatta(tmp_path):
    (tmp_path / "work").mkdir()
    user = Regatta(tmp_path / "home", tmp_path / "work")
    yield user
    try:
        user("master", "--stop", "--cancel", code=None, timeout=30)
        wait_for(lambda: not {p for p in user.ours() if p not in [c.pid for c in user.children]}, 15,
                 "every process to be gone")
        left = {}
    except AssertionError:
        left = user.ours()
    finally:
        user.kill_all()
    assert not left, f"left behind: {left}"


@pytest.fixture
def service(regatta):
    """The HTTP service of a master in the foreground."""
    from service import start_service  # which needs this file
    return start_service(regatta)


@pytest.fixture
def fleet(regatta):
    """A master that hosts can join."""
    from hosts_fleet import Fleet  # which needs this file
    f = Fleet(regatta)
    yield f
    regatta("master", "--stop", "--cancel", code=None, timeout=30)
    left = {n: f.nodes(n) for n in f.daemons if f.nodes(n) and f.daemons[n].poll() is None}
    f.close()
    assert not left, f"nodes left on hosts: {left}"


DEMO_JOB = """
name = "demo"
command = ["sh", "-c", "echo begin; for i in 1 2 3; do echo step $i loss=0.$i; done; echo oops >&2"]
[metrics.loss]
pattern = 'step (?<step>\\d+) loss=(?<value>\\S+)'
better = "lower"
"""


@pytest.fixture
def run(regatta, service):
    """A run that has succeeded, with output on both streams and a metric."""
    run = regatta.submit(regatta.job(DEMO_JOB))
    assert regatta.wait(run)["verdict"] == "succeeded"
    return run
