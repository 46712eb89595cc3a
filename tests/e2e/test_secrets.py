"""Values of secret variables reach the job, and nobody else."""
import contextlib
import hashlib
import http.client
import os
import signal
import socket
import stat
import urllib.parse

from conftest import wait_for
from openapi import OPERATIONS

VALUES = {"API_KEY": "k3y-5a5a5a", "HF_TOKEN": "t0ken-6b6b6b", "db_password": "pa55-7c7c7c", "MY_SECRET_X": "s3cret-8d8d8d",
          "LICENSE": "l1cense-9e9e9e", "WANDB_API_KEY": "s3t-0f0f0f", "CONDA_TOKEN": "cl1ent-1a1a1a",
          "LINE_TOKEN": "l1ne-2b2b2b", "FILE_KEY": "f1le-3c3c3c", "PASSED_PASSWORD": "pa55ed-4d4d4d", "PASSED_LICENSE": "l1c-5e5e5e"}

SHOW = """import hashlib, os, sys, time
for name in sys.argv[2].split(","):
    print(name, hashlib.sha256(os.environ[name].encode()).hexdigest(), flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
"""

STREAMS = {"events", "watch"}  # these stay open while the run lives
# The same for every run; spends a code; with a node's token only; a file that the job itself has written.
SKIPPED = {"asset", "program", "login", "nodeBlob", "nodePrevious", "outputState", "outputFile", "resultFile"}


def get(regatta, path, seconds):
    """Status and body; of a stream what comes within the time."""
    body = b""
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as s:
        s.settimeout(seconds)
        s.connect(str(regatta.home / "api.sock"))
        c = http.client.HTTPConnection("localhost")
        c.sock = s
        c.request("GET", path, headers={"Connection": "close"})
        answer = c.getresponse()
        with contextlib.suppress(socket.timeout):
            while part := answer.read1(65536):
                body += part
        return answer.status, body


def found(regatta, but=()):
    """Files of the home that hold a secret."""
    bad = []
    for where, _, names in os.walk(regatta.home):
        for name in names:
            path = os.path.join(where, name)
            if path in but or not stat.S_ISREG(os.lstat(path).st_mode):
                continue
            with open(path, "rb") as f:
                text = f.read()
            bad += [(path, key) for key, value in VALUES.items() if value.encode() in text]
    return bad


def paths(regatta, run):
    """Every GET of docs/openapi.yaml, filled in for this run."""
    log = next(n for n in get(regatta, "/list_logs", 10)[1].decode().split() if n.endswith("/first-0.log"))
    fill = {"run": run, "node": "first-0", "file": log.partition("/")[2], "name": urllib.parse.quote(log, safe="")}
    query = {"events": "?after=0", "compare": f"?run={run}&run={run}"}
    return {name: path.format(**fill) + query.get(name, "") for name, (method, path, _) in OPERATIONS.items()
            if method == "GET" and name not in SKIPPED and "{suite}" not in path}  # test_suites has those


def shown(regatta, run):
    bad = []
    for name, path in paths(regatta, run).items():
        status, text = get(regatta, path, 0.5 if name in STREAMS else 20)
        assert status == 200 and text, f"{path}: {status}"
        bad += [(path, key) for key, value in VALUES.items() if value.encode() in text]
    return bad


def hashes(regatta, run, node):
    return dict(line.split() for line in regatta.log(run, node).decode().splitlines())


def expected(names):
    return {n: hashlib.sha256(VALUES[n].encode()).hexdigest() for n in names}


def test_secrets_reach_the_job_and_nobody_else(regatta):
    go, end = regatta.cwd / "go", regatta.cwd / "end"
    regatta.script(SHOW)
    for name in ("CONDA_TOKEN", "PASSED_PASSWORD", "PASSED_LICENSE"):
        regatta.env[name] = VALUES[name]
    (regatta.cwd / "vars.env").write_text(f"FILE_KEY='{VALUES['FILE_KEY']}'\n")
    given = ["--env", f"LINE_TOKEN={VALUES['LINE_TOKEN']}", "--env-file", "vars.env"]
    top = ["API_KEY", "HF_TOKEN", "MY_SECRET_X", "LICENSE", "WANDB_API_KEY", "CONDA_TOKEN", "LINE_TOKEN", "FILE_KEY",
           "PASSED_PASSWORD", "PASSED_LICENSE"]
    job = regatta.job(f"""name = "sec"
secrets = ["LICENSE", "PASSED_LICENSE"]
pass = ["PASSED_*"]
env = {{ API_KEY = "{VALUES['API_KEY']}", HF_TOKEN = "{VALUES['HF_TOKEN']}", MY_SECRET_X = "{VALUES['MY_SECRET_X']}", LICENSE = "{VALUES['LICENSE']}", PLAIN = "seen" }}
[roles.first]
ready_when = "finished"
command = ["python3", "job.py", "{go}", "{','.join(top)}"]
[roles.second]
after = ["first"]
env = {{ db_password = "{VALUES['db_password']}" }}
command = ["python3", "job.py", "{end}", "{','.join(top + ['db_password'])}"]
""")
    plan = regatta("plan", "--output", "json", *given, job).out + regatta("plan", *given, job).out
    assert not [v for v in VALUES.values() if v in plan] and "***" in plan and "seen" in plan
    run = regatta.submit("--set", f"env.WANDB_API_KEY={VALUES['WANDB_API_KEY']}", *given, job)
    log = regatta.home / "runs" / run / "logs" / "first-0.log"
    wait_for(lambda: log.exists() and log.read_bytes().count(b"\n") == len(top), what="the first role")
    assert hashes(regatta, run, "first-0") == expected(top)

    store = regatta.home / "runs" / run / "secrets.json"
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    assert found(regatta, but={str(store)}) == [] and shown(regatta, run) == []
    assert "***" in (store.parent / "job.toml").read_text() and "seen" in (store.parent / "job.toml").read_text()

    # The next master finds them again.
    for pid in regatta.pids("master"):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: regatta.status(run)["counts"]["running"] == 1, what="the node to be back")
    go.touch()
    second = log.parent / "second-0.log"
    wait_for(lambda: second.exists() and second.read_bytes().count(b"\n") == len(top) + 1, what="the second role")
    assert hashes(regatta, run, "second-0") == expected(top + ["db_password"])
    assert found(regatta, but={str(store)}) == [] and shown(regatta, run) == []

    end.touch()
    assert regatta.wait(run)["verdict"] == "succeeded"
    wait_for(lambda: not store.exists(), what="the secrets to be removed")
    assert found(regatta) == [] and shown(regatta, run) == []
