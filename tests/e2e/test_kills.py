"""kill -9 of master, agent, shim, forkserver and client at random moments.

Whatever dies: every run ends in exactly one verdict, no rank runs twice, and the stored log is
byte for byte what the job wrote. A failure prints its seed; REGATTA_SEED replays the choices.
"""
import hashlib
import json
import os
import random
import signal
import time

from conftest import wait_for

KILLS = int(os.environ.get("REGATTA_KILLS", "220"))
SECONDS = 240

# Writes the same bytes to its stdout and to a copy of its own; says in a file that it was started.
WRITER = """
import os, random, sys, time
node = os.environ["REGATTA_NODE"] + (".p" + os.environ["REGATTA_LOCAL_RANK"] if os.environ["LOCAL_WORLD_SIZE"] != "1" else "")
with open(f"execs-{os.environ['REGATTA_RUN']}-{node}", "a") as f:
    f.write("x")
rng = random.Random(node)
copy = os.open(f"copy-{os.environ['REGATTA_RUN']}-{node}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
end = time.monotonic() + float(sys.argv[1])
n = 0
while time.monotonic() < end:
    n += 1
    data = b"line %d loss=%f " % (n, 1 / n) + rng.randbytes(rng.randrange(200)) + rng.choice([b"\\n", b"", b"\\r\\n", b"\\0\\n"])
    os.write(copy, data)
    while data:
        data = data[os.write(1, data):]
    if n % 50 == 0:
        time.sleep(0.01)
"""


def kill_one(rng, regatta, clients):
    kind = rng.choice(["master", "node-agent", "node-agent", "node-agent", "shim", "shim", "client", "forkserver"])
    if kind == "client":
        pids = [c.pid for c in clients if c.poll() is None]
    else:
        pids = regatta.pids(kind)
    if not pids:
        return None
    pid = rng.choice(pids)
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return None
    return kind


def names_of(node):
    return [f"{node['name']}.p{p['local_rank']}" for p in node.get("processes", [])] or [node["name"]]


def check_run(regatta, run, got, lost):
    assert got["verdict"] in ("succeeded", "failed") and got["exit_code"] is not None
    events = map(json.loads, regatta("events", "--output", "json", run).out.splitlines())
    ends = [e["kind"] for e in events if e["kind"] in ("succeeded", "failed", "cancelled")]
    assert ends == [got["verdict"]], f"{run} ended as {ends}"
    for node, name in [(n, name) for n in got["nodes"] for name in names_of(n)]:
        execs = regatta.cwd / f"execs-{run}-{name}"
        assert execs.stat().st_size == 1 if execs.exists() else got["verdict"] == "failed", f"{run} {name} ran twice"
        copy = regatta.cwd / f"copy-{run}-{name}"
        if not copy.exists():
            continue
        mine, stored = copy.read_bytes(), regatta.log(run, name)
        if node["signal"] or node["exit_code"] is None:
            # Killed between its two writes: they differ by the last write at most.
            lost.append((run, name, node["reason"]))
            shorter = min(len(mine), len(stored))
            assert mine[:shorter] == stored[:shorter] and len(mine) - shorter <= 400
        else:
            assert hashlib.sha256(mine).digest() == hashlib.sha256(stored).digest(), f"{run} {name}"


def test_random_kills(regatta):
    seed = int(os.environ.get("REGATTA_SEED", random.randrange(1 << 32)))
    print("seed", seed)
    rng = random.Random(seed)
    script = regatta.script(WRITER, "writer.py")
    runs, clients, killed, lost = [], [], {}, []
    deadline = time.monotonic() + SECONDS
    while sum(killed.values()) < KILLS and time.monotonic() < deadline:
        active = regatta.json("ps") if len(runs) % 3 == 0 else []
        while len([r for r in active]) + len([c for c in clients if c.poll() is None]) < 5:
            several = ["--set", "processes_per_node=2"] if rng.random() < 0.4 else []
            args = ["-n", str(rng.randint(1, 3)), *several, "--", "python3", str(script), str(round(rng.uniform(0.5, 3), 2))]
            if rng.random() < 0.5:
                run = regatta.submit(*args)
                runs.append(run)
                active.append(run)
            else:
                clients.append(regatta.start("run", *args, stdin=-3))
        for _ in range(rng.randint(3, 8)):
            kind = kill_one(rng, regatta, clients)
            if kind:
                killed[kind] = killed.get(kind, 0) + 1
            time.sleep(rng.uniform(0, 0.25))
    assert sum(killed.values()) >= KILLS, f"only {killed} in {SECONDS} s"
    for client in clients:
        client.wait(timeout=90)
    runs = [r["id"] for r in regatta.json("ps", "-a", "--limit", "10000")]
    for run in runs:
        check_run(regatta, run, regatta.wait(run, 90), lost)
    good = sum(regatta.status(r)["verdict"] == "succeeded" for r in runs)
    print(f"{killed}; {len(runs)} runs, {good} succeeded, {len(lost)} nodes lost with agent and shim killed together")
    assert good > len(runs) / 4  # most runs are hit several times; a test in which none survives proves little


def test_the_exit_code_is_known_though_agent_and_shim_were_killed(regatta, tmp_path):
    """Those two are all that stands between the job and the forkserver, which sees its end."""
    for code, restart in ((7, False), (0, True)):
        go = tmp_path / f"go-{code}"
        run = regatta.submit("--", "sh", "-c", f"while ! [ -e {go} ]; do sleep 0.02; done; exit {code}")
        regatta.wait(run, state="running")
        for kind in ("node-agent", "shim"):
            for pid in regatta.pids(kind):
                os.kill(pid, signal.SIGKILL)
        if restart:
            wait_for(lambda: regatta.pids("node-agent"), what="another agent")
        go.touch()
        got = regatta.wait(run)
        assert got["nodes"][0]["exit_code"] == code, got
        assert got["verdict"] == ("succeeded" if code == 0 else "failed")
