"""The command line of one home drives the master of another, over TLS, by the name of a context."""
import json
import os
import re
import signal
import socket
import ssl
import urllib.request

import pytest

from conftest import Regatta, wait_for
from service import start_service

JOB = """
name = "far"
source = "."
command = ["sh", "-c", "cat data.txt; for i in 1 2 3; do echo step $i loss=0.$i; done; echo oops >&2"]
[metrics.loss]
pattern = 'step (?<step>\\d+) loss=(?<value>\\S+)'
better = "lower"
"""


def own_address():
    """An address of this machine that is not loopback, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))
            return s.getsockname()[0]
        except OSError:
            return "127.0.0.1"


class Lab:
    """The other master: its user, its service, and how to name it."""

    def __init__(self, user):
        self.user = user
        self.address = own_address()
        listen = "0.0.0.0" if self.address.startswith("127.") else self.address
        self.service = start_service(user, f"{listen}:0")
        self.listen = f"{listen}:{self.service.port}"
        self.url = f"https://{self.address}:{self.service.port}"
        self.pin = (user.home / "http").read_text().split()[1]

    def token(self, scope="admin"):
        made = json.loads(self.user("token", "new", "--scope", scope, "--output", "json").stdout)
        return made["token"], made["id"]

    def kill(self):
        child = self.user.children[-1]
        child.kill()
        child.wait()

    def restart(self):
        start_service(self.user, self.listen)
        wait_for(self.answers, what="the port")

    def answers(self):
        with socket.socket() as s:
            return s.connect_ex((self.address, self.service.port)) == 0


@pytest.fixture
def lab(regatta):
    return Lab(regatta)


@pytest.fixture
def laptop(tmp_path):
    """Another user, in another directory, who never gets a master of their own."""
    (tmp_path / "desk").mkdir()
    user = Regatta(tmp_path / "laptop", tmp_path / "desk")
    for name in ("REGATTA_MASTER", "REGATTA_PIN", "REGATTA_TOKEN", "https_proxy", "HTTPS_PROXY"):
        user.env.pop(name, None)
    yield user
    left = user.pids("master")
    user.kill_all()
    assert not left and not (user.home / "api.sock").exists(), "a master was started here"


def add(laptop, lab, scope="admin", name="lab"):
    token, ident = lab.token(scope)
    done = laptop("context", "add", name, lab.url, "--pin", lab.pin, "--token-file", "-", stdin=token.encode())
    assert f"the token has the scope {scope}" in done.err and token not in done.err + done.out
    return ident


def test_a_job_names_the_master_it_wants(regatta, lab, laptop):
    add(laptop, lab)
    (laptop.cwd / "data.txt").write_text("from the laptop\n")
    run = re.match(r"(far-\w+) succeeded", laptop("run", laptop.job('master = "context:lab"\n' + JOB)).out)[1]
    assert regatta.status(run)["verdict"] == "succeeded"
    done = laptop("run", laptop.job('master = "context:lib"\n' + JOB), code=3)
    assert "lib" in done.err
    assert "write \"auto\"" in laptop("run", laptop.job('master = "there"\n' + JOB), code=2).err


def test_every_command_works_against_another_master(regatta, lab, laptop):
    add(laptop, lab)
    laptop("context", "use", "lab")
    (laptop.cwd / "data.txt").write_text("from the laptop\n")
    job = laptop.job(JOB)

    done = laptop("run", job)
    run = re.match(r"(far-\w+) succeeded", done.out)[1]
    assert f"files   {regatta.home}/runs/{run} on the machine of master 'lab'\n" in done.out
    assert str(laptop.home) not in done.out
    assert regatta.status(run)["verdict"] == "succeeded"

    assert run in laptop("ps", "--all").out
    assert laptop.json("ps", "--all")[0]["id"] == run
    assert "loss" in laptop("status", run).out
    assert laptop.status(run)["id"] == run
    want = b"from the laptop\nstep 1 loss=0.1\nstep 2 loss=0.2\nstep 3 loss=0.3\n"
    assert laptop("logs", run, "--stdout").stdout == want == regatta.log(run, "worker-0")
    assert laptop("logs", run, "-f", "--stderr").stdout == b"oops\n"
    assert "succeeded" in laptop("events", run, "-f").out
    assert "0.3" in laptop("metrics", run, "loss").out

    done = laptop("report", run)
    for name in ("report.html", "metrics.csv", "summary.json"):
        assert f"{run}/{name}\n" in done.out and (laptop.cwd / run / name).stat().st_size > 0

    follow = laptop("run", "-f", job)
    assert "worker-0 | from the laptop" in follow.out
    assert laptop("compare", run, "far@last2", code=None).returncode in (0, 1)
    repeated = laptop.json("run", "--repeat", "4", "--parallel", "2", job)
    assert [r["verdict"] for r in repeated] == ["succeeded"] * 4

    sleeper = laptop.submit("--set", "source=.", "--", "sleep", "1000")
    laptop.wait(sleeper, state="running")
    laptop("kill", sleeper)
    assert laptop.wait(sleeper)["verdict"] == "cancelled"
    assert f"removed {regatta.home}/runs/{run} on the machine of master 'lab'\n" == laptop("cleanup", run).out
    assert not (regatta.home / "runs" / run).exists()

    made = laptop.json("token", "new", "--scope", "read", "--name", "far")
    assert "far" in laptop("token", "list").out
    laptop("token", "revoke", made["id"])

    link = laptop("ui", "--print").out.strip()
    assert link.startswith(lab.url + "/login?code=")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), urllib.request.ProxyHandler({}),
                                         urllib.request.HTTPCookieProcessor())
    assert opener.open(link, timeout=20).status == 200
    assert b'"scope":"admin"' in opener.open(f"{lab.url}/api/v1/me", timeout=20).read()  # by the cookie
    assert laptop("words", "runs").out.strip()


def test_an_interrupt_cancels_the_run_there(regatta, lab, laptop):
    add(laptop, lab)
    child = laptop.start("run", "--master", "lab", "--set", "source=.", "--", "sleep", "1000")
    run = wait_for(lambda: next((r["id"] for r in regatta.json("ps") if r["state"] == "running"), None), what="the run")
    child.send_signal(signal.SIGINT)
    assert child.wait(30) == 7
    assert regatta.status(run)["verdict"] == "cancelled"


def test_a_wrong_pin_a_revoked_token_and_a_small_scope_are_told(regatta, lab, laptop):
    ident = add(laptop, lab)
    other = "sha256//" + "A" * 43 + "="
    done = laptop("context", "add", "wrong", lab.url, "--pin", other, "--token", "x", code=4)
    assert lab.pin in done.err and "another server answers there, or the master has a new key" in done.err
    assert "wrong" not in laptop("context", "list").out
    laptop("context", "add", "wrong", lab.url, "--pin", other, "--token", "x", "--no-check")
    assert "master 'wrong'" in laptop("ps", "--master", "wrong", code=4).err

    add(laptop, lab, "read", "eyes")
    done = laptop("run", "--master", "eyes", "--set", "source=.", "--", "true", code=4)
    assert "master 'eyes': the scope of this token does not allow" in done.err
    done = laptop("kill", "--master", "eyes", "x", code=4)
    assert "master 'eyes': the scope 'submit' is needed, this token or session has 'read'" in done.err

    run = regatta.submit("--", "sh", "-c", "echo begin; sleep 1000")
    regatta.wait(run, state="running")
    follower = laptop.start("logs", run, "-f", "--master", "lab")
    wait_for(lambda: follower.stdout.readline() == b"begin\n", what="the first line")
    regatta("token", "revoke", ident)
    assert follower.wait(30) == 4
    assert b"the token is wrong, revoked or too old" in follower.stderr.read()
    assert "context add" in laptop("ps", "--master", "lab", code=4).err
    regatta("kill", run, "--now")


def test_a_master_killed_and_restarted_is_dialled_again(regatta, lab, laptop):
    add(laptop, lab)
    laptop("context", "use", "lab")
    go = laptop.cwd.parent / "go"
    script = f"for i in $(seq 1 20000); do echo line $i; done; while ! test -e {go}; do sleep 0.05; done; seq 1 20000"
    runner = laptop.start("run", "--set", "source=.", "--", "sh", "-c", script)
    run = wait_for(lambda: next((r["id"] for r in regatta.json("ps") if r["state"] == "running"), None), what="the run")
    with open(laptop.cwd / "followed", "wb") as out:
        follower = laptop.start("logs", run, "-f", stdout=out)
        events = laptop.start("events", run, "-f")
        wait_for(lambda: (laptop.cwd / "followed").stat().st_size > 1000, what="the first lines")
        lab.kill()
        wait_for(lambda: b"dialling again; the run goes on" in runner.stderr.readline(), what="the line about the cut")
        lab.restart()
        go.touch()
        assert runner.wait(60) == 0, runner.stderr.read()
        assert follower.wait(60) == 0, follower.stderr.read()
        assert events.wait(60) == 0, events.stderr.read()
    want = b"".join(b"line %d\n" % i for i in range(1, 20001)) + b"".join(b"%d\n" % i for i in range(1, 20001))
    assert (laptop.cwd / "followed").read_bytes() == want == regatta.log(run, "worker-0")
    assert re.match(rb"far-|job-", runner.stdout.read())
    lines = [int(line.split()[0]) for line in events.stdout.read().splitlines()]
    assert lines == list(range(1, len(lines) + 1))


def test_a_master_out_of_reach_is_unavailable_and_none_is_started(lab, laptop):
    add(laptop, lab)
    lab.kill()
    for args in (["ps"], ["run", "--", "true"], ["logs", "x"], ["context", "add", "b", lab.url, "--token", "x"]):
        done = laptop(*args, env={"REGATTA_MASTER": "lab"}, code=8)
        assert "nobody listens on port" in done.err, done.err
    lab.restart()
    assert laptop("ps", "--master", "lab").returncode == 0


def test_without_source_it_is_said_where_the_job_runs(lab, laptop):
    add(laptop, lab)
    done = laptop("run", "--master", "lab", "--", "pwd")
    assert f"no source: the job runs in '{laptop.cwd}' on the machine of master 'lab'" in done.err


def test_plain_http_is_for_this_machine(regatta, service, laptop):
    laptop("context", "add", "here", service.url, "--token", service.token)
    assert laptop.json("ps", "--master", "here") == []
    assert laptop("ui", "--print", "--master", "here").out.startswith(service.url + "/login?code=")
    done = laptop("context", "add", "there", "http://192.0.2.1:5436", "--token", service.token, code=2)
    assert "plain http is for this machine only" in done.err


def test_a_name_of_the_master_works_with_a_token(regatta, laptop):
    """The name that a caller has for it need not be one that it knows."""
    names = [n for line in open("/etc/hosts") for n in line.split("#")[0].split()[1:]
             if line.split()[0].startswith("127.") and n != "localhost"]
    if not names:
        pytest.skip("no other name for this machine in /etc/hosts")
    service = start_service(regatta, "0.0.0.0:0")
    pin = (regatta.home / "http").read_text().split()[1]
    laptop("context", "add", "lab", f"https://{names[0]}:{service.port}", "--pin", pin, "--token", service.token)
    assert laptop.json("ps", "--master", "lab") == []
    assert laptop.json("ps", "--master", f"https://{names[0]}:{service.port}") == []  # the context has this URL
    laptop("ps", "--master", f"https://{names[0]}:1", code=2)
    env = {"REGATTA_MASTER": f"https://{names[0]}:{service.port}", "REGATTA_PIN": pin, "REGATTA_TOKEN": service.token}
    assert laptop.json("ps", env=env) == []
    # Without a pin, the chain of a CA and the name in the certificate count.
    laptop.env["SSL_CERT_FILE"] = str(regatta.home / "tls.crt")
    laptop("context", "add", "ca", f"https://localhost:{service.port}", "--token", service.token)
    assert laptop.json("ps", "--master", "ca") == []
    done = laptop("context", "add", "b", f"https://{names[0]}:{service.port}", "--token", service.token, code=4)
    assert "give its pin" in done.err
    assert os.stat(laptop.home / "contexts" / "lab.json").st_mode & 0o777 == 0o600


def test_a_command_beside_a_far_job_needs_an_admin(regatta, lab, laptop):
    add(laptop, lab)
    add(laptop, lab, scope="submit", name="less")
    run = regatta.submit("--", "sleep", "600")
    regatta.wait(run, state="running")
    wait_for(lambda: regatta("exec", run, "worker-0", "--", "true", code=None).returncode == 0, what="the job")
    data = os.urandom(500_000)
    done = laptop("exec", "--master", "lab", run, "worker-0", "--", "sh", "-c", "echo far >&2; cat; exit 9", stdin=data, code=9)
    assert done.stdout == data and done.err == "far\n"
    assert "scope" in laptop("exec", "--master", "less", run, "worker-0", "--", "true", code=4).err
    regatta("kill", run, "--now")


SUITE = """
name = "far"
[suite]
job = "job.toml"
on_exit = ["echo $REGATTA_SUITE_STATE $REGATTA_SUITE $MINE >>$PWD/closed; cp $REGATTA_SUITE_DIR/* $PWD/got; echo said", "exit 3"]
[matrix]
"env.N" = ["1", "2"]
"""


def suite_files(laptop, on_exit=None):
    laptop.job('command = ["sh", "-c", "echo speed=$N"]\nsource = "."\n[metrics.speed]\npattern = "speed=(?<value>[0-9]+)"\n')
    (laptop.cwd / "got").mkdir()
    return laptop.job(SUITE if on_exit is None else SUITE.replace(SUITE.split("on_exit = ")[1].split("\n")[0], json.dumps(on_exit)), "suite.toml")


def test_on_exit_runs_where_the_suite_was_started(regatta, lab, laptop):
    add(laptop, lab)
    laptop("context", "use", "lab")
    laptop.env["MINE"] = "of-the-laptop"
    done = laptop("suite", "run", suite_files(laptop))
    (suite,) = [s["id"] for s in laptop.json("suite", "list")["suites"]]
    # Once, here, with a copy of the directory.
    assert (laptop.cwd / "closed").read_text() == f"succeeded {suite} of-the-laptop\n"
    assert sorted(p.name for p in (laptop.cwd / "got").iterdir()) == [
        "on_exit.log", "report.html", "suite.toml", "summary.json", "table.csv"]
    assert json.loads((laptop.cwd / "got" / "summary.json").read_text())["metrics"][0]["rows"][1]["median"] == 2
    assert (laptop.home / "suites" / suite / "on_exit.log").read_text() == "said\n"
    assert not (regatta.home / "suites" / suite / "on_exit.log").exists()
    # The master knows how it went.
    assert "on_exit has run here" in done.err and "on_exit  'exit 3': exit code 3" in done.out
    assert regatta.json("suite", "status", suite)["on_exit"] == "'exit 3': exit code 3"


def test_on_exit_runs_on_the_master_if_the_client_has_gone(regatta, lab, laptop, tmp_path):
    add(laptop, lab)
    laptop("context", "use", "lab")
    gone, there = tmp_path / "gone", tmp_path / "there"
    path = suite_files(laptop, [f"echo $REGATTA_SUITE_STATE >>{there}; test -e $REGATTA_SUITE_DIR/report.html"])
    laptop.job(f'command = ["sh", "-c", "until [ -e {gone} ]; do sleep 0.02; done"]\nsource = "."\n')
    # Detached: nobody is waited for.
    gone.touch()
    suite = laptop("suite", "run", "-d", path).out.strip()
    wait_for(lambda: laptop.json("suite", "status", suite)["exit_code"] == 0, what="the end")
    assert there.read_text() == "succeeded\n" and laptop.json("suite", "status", suite)["on_exit"] is None
    # Killed: the master waits some seconds for it.
    gone.unlink()
    child = laptop.start("suite", "run", path)
    wait_for(lambda: len(laptop.json("suite", "list")["suites"]) == 2, what="the suite")
    suite = laptop.json("suite", "list")["suites"][0]["id"]
    child.kill()
    child.wait()
    gone.touch()
    wait_for(lambda: laptop.json("suite", "status", suite)["exit_code"] == 0, 60, "the end")
    assert there.read_text() == "succeeded\n" * 2
    assert not (laptop.home / "suites").exists()


def test_a_master_that_is_killed_while_the_client_runs_on_exit_does_not_run_it_too(regatta, lab, laptop, tmp_path):
    add(laptop, lab)
    laptop("context", "use", "lab")
    laptop.env["MINE"] = "of-the-laptop"
    begun, go = tmp_path / "begun", tmp_path / "go"
    child = laptop.start("suite", "run", suite_files(laptop, [f"echo $MINE >>{begun}; until [ -e {go} ]; do sleep 0.02; done"]))
    wait_for(begun.exists, what="on_exit")
    lab.kill()
    lab.restart()
    go.touch()
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    assert b"on_exit has run here" in err and begun.read_text() == "of-the-laptop\n"
