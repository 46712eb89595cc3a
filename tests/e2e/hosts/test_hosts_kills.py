"""kill -9 of daemons, agents, shims, masters and whole hosts at random moments.

Between the kills cables are pulled for a while, some of them for longer than a node may be silent.

Whatever dies: every run ends in exactly one verdict, no attempt of a rank runs twice, two attempts of a rank never run at
the same time, the stored log of each attempt is what it wrote or its run says that bytes may be missing, and nothing is
left on any host. A failure prints its seed; REGATTA_SEED replays the choices.
"""
import collections
import contextlib
import json
import os
import random
import signal
import time

from conftest import wait_for
from lab import lab_of, needs_lab

pytestmark = needs_lab

KILLS = int(os.environ.get("REGATTA_HOST_KILLS", "120"))
SECONDS = max(200, 2 * KILLS)
HOSTS = "abcdef"
CUT_SECONDS = 9  # at most; a node that is silent for 3 + 1 + 2 s is given up
WHAT = ["daemon"] * 2 + ["node-agent"] * 4 + ["shim"] * 4 + ["forkserver"] + ["host"] * 2 + ["master"]
POLICIES = ["replace", "restart", "shrink", "fail"]
CUT = "its output may be cut"  # whoever held it was killed after the job had ended

# Holds a lock that no other attempt of its rank may hold; writes the same bytes to its copy and to its output.
WRITER = """
import fcntl, os, random, sys, time
base, seconds = sys.argv[1], float(sys.argv[2])
rank = f"{os.environ['REGATTA_RUN']}-{os.environ['REGATTA_NODE']}"
attempt = f"{rank}-{os.environ['REGATTA_ATTEMPT']}"
lock = open(f"{base}/lock-{rank}", "w")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    open(f"{base}/overlap-{attempt}", "w")
with open(f"{base}/execs-{attempt}", "a") as f:
    f.write("x")
copy = os.open(f"{base}/copy-{attempt}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
rng = random.Random(attempt)
end = time.monotonic() + seconds
while time.monotonic() < end:
    data = rng.randbytes(rng.randrange(1, 400))
    os.write(copy, data)
    while data:
        data = data[os.write(1, data):]
    time.sleep(0.005)
"""


def kill_one(rng, lab):
    what = rng.choice(WHAT)
    if what == "master":
        lab.kill_master()
        lab.start_master()
        return what
    if what == "host":
        name = rng.choice(HOSTS)
        lab.kill_host(name)
        lab.rejoin(name, wait=False)
        return what
    if what == "daemon":
        name = rng.choice(HOSTS)
        lab.daemons[name].kill()
        lab.daemons[name].wait()
        lab.rejoin(name, wait=False)
        return what
    pids = lab.pids(what)
    if not pids:
        return None
    with contextlib.suppress(ProcessLookupError):
        os.kill(rng.choice(pids), signal.SIGKILL)
        return what
    return None


class Cables:
    """One host at a time is cut off."""

    def __init__(self, lab):
        self.lab, self.name, self.until = lab, None, 0.0

    def pull(self, rng):
        if self.name is None:
            self.name, self.until = rng.choice(HOSTS), time.monotonic() + rng.uniform(0.5, CUT_SECONDS)
            self.lab.cut(self.name, ways=rng.choice([["input"], ["output"], ["input", "output"]]))

    def plug(self, now=False):
        if self.name and (now or time.monotonic() > self.until):
            self.lab.heal(self.name)
            self.name = None


def submit_one(rng, regatta, script):
    policy = rng.choice(POLICIES)
    nodes = rng.randint(1, 2)
    args = ["-n", nodes, "--engine", "hosts", "--set", f"on_lost={policy}", "--set", "timeouts.lost=3s",
            "--set", "timeouts.grace=1s", "--set", "timeouts.launch=2m"]
    if policy == "shrink":
        args += ["--set", "min=1"]
    if policy == "fail":
        args += ["--set", "timeouts.lease=6s"]
    seconds = round(rng.uniform(0.5, 4), 2)
    return policy, regatta.submit(*args, "--", "python3", script, regatta.cwd, seconds)


def log_of(regatta, run, node, attempt):
    path = regatta.home / "runs" / run / "logs" / (f"{node}.log" if attempt == 1 else f"{node}.a{attempt}.log")
    return path.read_bytes() if path.exists() else b""


def check_run(regatta, run, policy):
    got = regatta.wait(run, 120)
    events = [json.loads(line) for line in regatta("events", "--output", "json", run).out.splitlines()]
    ends = [e["kind"] for e in events if e["kind"] in ("succeeded", "failed", "cancelled")]
    assert ends == [got["verdict"]], f"{run} ({policy}) ended as {ends}"
    for node in got["nodes"]:
        name = node["name"]
        attempts = sorted(regatta.cwd.glob(f"execs-{run}-{name}-*"))
        for path in attempts:
            attempt = int(path.name.rsplit("-", 1)[1])
            assert path.read_text() == "x", f"attempt {attempt} of {run} {name} ran twice"
            wrote = (regatta.cwd / f"copy-{run}-{name}-{attempt}").read_bytes()
            stored = log_of(regatta, run, name, attempt)
            assert stored == wrote[:len(stored)], f"{run} {name} attempt {attempt}: other bytes are stored"
            if CUT in (node["reason"] or ""):
                assert got["verdict"] != "succeeded", f"{run} {name} attempt {attempt} succeeded without its last bytes"
            elif attempt == node["attempt"] and node["exit_code"] == 0:
                assert stored == wrote, f"{run} {name} attempt {attempt}: {len(wrote) - len(stored)} bytes are missing"
    return got


def test_random_kills(regatta):
    seed = int(os.environ.get("REGATTA_SEED", random.randrange(1 << 32)))
    print("seed", seed)
    rng = random.Random(seed)
    script = regatta.script(WRITER, "writer.py")
    runs, killed = {}, collections.Counter()
    deadline = time.monotonic() + SECONDS
    with lab_of(regatta, HOSTS) as lab:
        lab.join(*HOSTS)
        cables = Cables(lab)
        while killed.total() < KILLS and time.monotonic() < deadline:
            while len(regatta.json("ps")) < 3:
                policy, run = submit_one(rng, regatta, script)
                runs[run] = policy
            if rng.random() < 0.3:
                cables.pull(rng)
            for _ in range(rng.randint(2, 6)):
                cables.plug()
                killed[kill_one(rng, lab)] += 1
                del killed[None]
                time.sleep(rng.uniform(0, 0.4))
        cables.plug(now=True)
        assert killed.total() >= KILLS, f"only {killed} in {SECONDS} s"
        verdicts = collections.Counter()
        for run, policy in runs.items():
            verdicts[policy, check_run(regatta, run, policy)["verdict"]] += 1
        print(f"{dict(killed)}; {len(runs)} runs: {dict(verdicts)}")
        lab.wait(HOSTS, "free", 90)
        wait_for(lab.is_clean, 60, "every host to be empty")
        assert not list(regatta.cwd.glob("overlap-*")), "two attempts of a rank ran at the same time"
        assert sum(n for (_, verdict), n in verdicts.items() if verdict == "succeeded") > len(runs) / 5
        regatta("master", "--stop", "--cancel", code=None, timeout=60)
