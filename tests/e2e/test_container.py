"""Jobs in containers, by Debian's own podman, with an image that is made here from a static busybox.

Where podman cannot run containers (no root, no podman) these tests are skipped; those of a missing program are not.
"""
import hashlib
import json
import os
import pty
import shutil
import signal
import subprocess

import pytest

from conftest import BINARY, processes, wait_for
from podman import BUSYBOX, directory, link, on_path, podman_storage, text

IMAGE = "localhost/regatta-test:1"
APPLETS = ("sh", "cat", "dd", "echo", "env", "head", "id", "ls", "mkdir", "pwd", "sleep", "test", "true", "yes", "touch")


def busybox_image(archive):
    """A shell and a few programs, and files of an app."""
    for name in ("bin", "tmp", "etc", "opt/app"):
        archive.addfile(directory(name))
    archive.add(BUSYBOX, "bin/busybox")
    for name in APPLETS:
        archive.addfile(link(f"bin/{name}", "busybox"))
    for name in ("opt/app/main.sh", "opt/app/data.txt"):
        archive.addfile(*text(name, f"echo from {name}\n"))


@pytest.fixture(scope="module")
def storage():
    with podman_storage({IMAGE: (busybox_image, ["ENV=PATH=/bin:/opt/of-the-image", "WORKDIR=/opt/app"])}) as podman:
        yield podman


@pytest.fixture
def podman(storage, regatta):
    with on_path(storage, regatta):
        yield storage


def job(regatta, script, more="", top=""):
    # A basic string: the script must not have backslashes or double quotes.
    regatta.job(f'name = "c"\nimage = "{IMAGE}"\ncommand = ["sh", "-c", """{script}"""]\n{top}\n{more}')
    return regatta.submit("job.toml")


def has_said(regatta, run, text, node="worker-0"):
    try:
        return text in regatta.log(run, node)
    except FileNotFoundError:
        return False


def test_a_job_runs_in_its_image_with_its_environment_files_and_streams(regatta, podman):
    (regatta.cwd / "src").mkdir()
    (regatta.cwd / "src" / "in.txt").write_text("input")
    regatta.env["WANDB_MODE"] = "offline"
    run = job(regatta, "pwd; cat in.txt; echo; env; id; echo made > $REGATTA_OUTPUT/made; echo kept > kept.txt; "
                       "echo '{\\\"x\\\":7}' > $REGATTA_METRICS; echo oops >&2; exit 3",
              top='source = "src"\npass = ["WANDB_*"]\nenv = { COLOR = "red and\\nblue", HOME = "/root" }\noutput = { keep = ["kept.txt"] }')
    status = regatta.wait(run)
    assert (status["verdict"], status["cause"]) == ("failed", "worker-0: exit code 3")
    lines = regatta.log(run, "worker-0").decode().splitlines()
    assert lines[0].endswith("/worker-0.node/work") and lines[1] == "input"
    for entry in ("COLOR=red and", "blue", "HOME=/root", "PATH=/bin:/opt/of-the-image", f"REGATTA_RUN={run}", "WORLD_SIZE=1",
                  "WANDB_MODE=offline"):
        assert entry in lines
    assert not [v for v in lines if v.startswith(("SHELL=", "VIRTUAL_ENV=", "LD_LIBRARY_PATH="))]
    assert "uid=0(0) gid=0(0) groups=0(0)" in lines
    assert regatta.log(run, "worker-0", err=True) == b"oops\n"
    outputs = regatta.home / "runs" / run / "outputs" / "worker-0"
    assert (outputs / "made").read_text() == "made\n" and (outputs / "kept.txt").read_text() == "kept\n"
    assert status["nodes"][0]["exit_code"] == 3
    table = regatta.home / "runs" / run / "metrics.csv"
    wait_for(table.exists)
    assert ",worker-0,worker,0,x,,7\n" in table.read_text()


def test_without_files_a_job_works_where_its_file_is(regatta, podman):
    run = job(regatta, "pwd; touch here")
    assert regatta.wait(run)["verdict"] == "succeeded"
    assert regatta.log(run, "worker-0").decode() == f"{regatta.cwd}\n" and (regatta.cwd / "here").exists()


def test_output_is_stored_byte_for_byte(regatta, podman):
    (regatta.cwd / "bytes").write_bytes(os.urandom(5_000_000))
    run = job(regatta, "cat bytes; cat bytes >&2")
    assert regatta.wait(run)["verdict"] == "succeeded"
    want = hashlib.sha256((regatta.cwd / "bytes").read_bytes()).hexdigest()
    assert hashlib.sha256(regatta.log(run, "worker-0")).hexdigest() == want
    assert hashlib.sha256(regatta.log(run, "worker-0", err=True)).hexdigest() == want


def test_a_stop_reaches_the_job_and_one_that_ignores_it_is_killed(regatta, podman):
    polite = job(regatta, "trap 'echo bye; exit 0' TERM; echo up; while true; do sleep 0.1; done")
    wait_for(lambda: has_said(regatta, polite, b"up"))
    regatta("kill", polite)
    assert regatta.wait(polite)["verdict"] == "cancelled"
    assert regatta.log(polite, "worker-0") == b"up\nbye\n"
    stubborn = job(regatta, "trap '' TERM; echo up; while true; do sleep 0.1; done", top='timeouts = { grace = "1s" }')
    wait_for(lambda: has_said(regatta, stubborn, b"up"))
    regatta("kill", stubborn)
    assert "did not stop within the grace period" in json.dumps(regatta.wait(stubborn))
    assert podman.names() == []


def program(name, run):
    """The pid of the program that runs the container."""
    for pid, (cmd, _) in processes().items():
        args = cmd.split(b"\0")
        if os.path.basename(args[0]).decode() == name and b"run" in args and any(run.encode() in a for a in args):
            return pid
    return None


@pytest.mark.parametrize("killed", [["shim"], ["node-agent"], ["node-agent", "shim"], ["master", "forkserver", "node-agent", "shim"]])
def test_who_is_killed_does_not_matter(regatta, podman, killed):
    run = job(regatta, "echo once >> count; echo up; while ! test -f go; do sleep 0.1; done; echo done")
    wait_for(lambda: has_said(regatta, run, b"up"))
    for pid in [p for kind in killed for p in regatta.pids(kind)]:
        os.kill(pid, signal.SIGKILL)
    regatta("ps")  # starts a master where there is none
    wait_for(lambda: regatta.pids("node-agent"))
    (regatta.cwd / "go").write_text("")
    status = regatta.wait(run)
    assert (regatta.cwd / "count").read_text() == "once\n"
    assert regatta.log(run, "worker-0") == b"up\ndone\n"
    if len(killed) == 1:
        assert status["verdict"] == "succeeded"


def test_when_everything_is_killed_the_container_is_removed_too(regatta, podman):
    run = job(regatta, "echo up; while true; do sleep 0.1; done")
    wait_for(lambda: has_said(regatta, run, b"up"))
    container = podman.names()
    assert len(container) == 1 and run in container[0]
    for pid in regatta.pids("master") + regatta.pids("node-agent") + regatta.pids("shim") + [program("podman", run)]:
        os.kill(pid, signal.SIGKILL)
    regatta("ps")
    assert regatta.wait(run)["verdict"] == "failed"
    wait_for(lambda: podman.names() == [])


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU cannot be shared")
def test_processes_share_the_cpus(regatta, podman):
    run = job(regatta, "grep Cpus_allowed_list /proc/self/status", top="processes_per_node = 2")
    assert regatta.wait(run)["verdict"] == "succeeded"
    cpus = [regatta.log(run, f"worker-0.p{i}") for i in range(2)]
    assert all(b"Cpus_allowed_list" in text for text in cpus) and cpus[0] != cpus[1]


def test_exec_runs_in_the_container(regatta, podman):
    run = job(regatta, "echo up; while true; do sleep 0.1; done", top='env = { COLOR = "red" }')
    wait_for(lambda: has_said(regatta, run, b"up"))
    data = os.urandom(300_000)
    done = regatta("exec", run, "worker-0", "--", "sh", "-c", "echo $COLOR $PATH >&2; cat; exit 7", stdin=data, code=7)
    assert done.stdout == data and done.err == "red /bin:/opt/of-the-image\n"
    assert "command 'nosuch': not found in the container" in regatta("exec", run, "worker-0", "--", "nosuch", code=127).err
    node = next((regatta.home / "runs" / run).glob("*.node"))
    wait_for(lambda: not list(node.glob("exec-*")), what="an end without files")
    for how, code in ((signal.SIGINT, 130), (signal.SIGKILL, -9)):
        mark = f"{3600 + abs(code)}"
        child = regatta.start("exec", run, "worker-0", "--", "sh", "-c", f"echo on; exec sleep {mark}", stdin=subprocess.DEVNULL)
        assert child.stdout.readline() == b"on\n"
        assert [1 for cmd, _ in processes().values() if cmd == f"sleep\0{mark}\0".encode()]
        child.send_signal(how)
        assert child.wait(timeout=20) == code
        wait_for(lambda: not [1 for cmd, _ in processes().values() if cmd == f"sleep\0{mark}\0".encode()], what="the end of the command")
    regatta("kill", run, "--now")


def test_exec_finds_a_process_that_runs(regatta, podman):
    """The container of the first has ended and is gone."""
    run = job(regatta, "test $LOCAL_RANK = 1 || exit 0; echo up; while true; do sleep 0.1; done", top="processes_per_node = 2")
    wait_for(lambda: has_said(regatta, run, b"up", "worker-0.p1"))
    place = regatta.home / "runs" / run
    wait_for(lambda: any(b'"rec":"process","local":0' in p.read_bytes() for p in place.glob("*.node/**/status")), what="the end of the first")
    assert regatta("exec", run, "worker-0", "--", "sh", "-c", "echo $LOCAL_RANK").out == "1\n"
    regatta("kill", run, "--now")


def test_a_terminal_in_the_container(regatta, podman):
    run = job(regatta, "echo up; while true; do sleep 0.1; done")
    wait_for(lambda: has_said(regatta, run, b"up"))
    main, side = pty.openpty()
    child = subprocess.Popen([BINARY, "exec", "-t", run, "worker-0", "--", "sh"], cwd=regatta.cwd, env=regatta.env,
                             stdin=side, stdout=side, stderr=side, start_new_session=True)
    os.close(side)
    os.write(main, b"test -t 0 && echo on $((40 + 2)) $REGATTA_NODE; ls /opt/app; exit 5\n")
    seen = b""
    while True:
        try:
            got = os.read(main, 4096)
        except OSError:
            break
        if not got:
            break
        seen += got
    assert child.wait(timeout=20) == 5
    os.close(main)
    assert b"on 42 worker-0" in seen and b"data.txt" in seen
    regatta("kill", run, "--now")


def test_each_attempt_has_a_container_of_its_own(regatta, podman):
    run = job(regatta, "echo $REGATTA_ATTEMPT > $REGATTA_OUTPUT/no; cat $REGATTA_PREVIOUS/no; test $REGATTA_ATTEMPT = 2",
              top="retries = 1")
    assert regatta.wait(run)["verdict"] == "succeeded"
    assert (regatta.home / "runs" / run / "logs" / "worker-0.a2.log").read_text() == "1\n"


def test_a_job_above_its_memory_limit_is_out_of_memory(regatta, podman):
    regatta.job(f'name = "c"\n[roles.w]\nimage = "{IMAGE}"\nmemory = "30MiB"\n'
                'command = ["dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1"]')
    status = regatta.wait(regatta.submit("job.toml"))
    assert status["verdict"] == "failed" and "out of memory" in json.dumps(status), status["cause"]


def test_an_image_that_is_not_there_is_the_cause(regatta, podman):
    import http.server
    import threading

    class Registry(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            found = self.path == "/v2/"
            body = b"{}" if found else b'{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}'
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body)
        do_HEAD = do_GET

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        at = f"127.0.0.1:{server.server_port}"
        (podman.dir / "registries.conf").write_text(f'[[registry]]\nlocation = "{at}"\ninsecure = true\n')
        regatta.env["CONTAINERS_REGISTRIES_CONF"] = str(podman.dir / "registries.conf")
        regatta.job(f'name = "c"\nimage = "{at}/nothing:1"\ncommand = ["true"]')
        status = regatta.wait(regatta.submit("job.toml"), seconds=60)
        server.shutdown()
    assert status["cause"] == f"worker-0: image '{at}/nothing:1': the registry has no such image or tag"
    assert status["exit_code"] == 3


def test_a_command_that_the_image_does_not_have_fails_the_node(regatta, podman):
    regatta.job(f'name = "c"\nimage = "{IMAGE}"\ncommand = ["no-such-program"]')
    status = regatta.wait(regatta.submit("job.toml"))
    assert status["nodes"][0]["exit_code"] == 127
    assert "no-such-program" in regatta.log(status["id"], "worker-0", err=True).decode()


def test_a_cancelled_pull_leaves_no_process(regatta, podman):
    """The registry accepts the connection and never says a word."""
    import socket
    with socket.create_server(("127.0.0.1", 0)) as registry:
        regatta.job(f'name = "c"\nimage = "127.0.0.1:{registry.getsockname()[1]}/x:1"\ncommand = ["true"]')
        run = regatta.submit("job.toml")
        wait_for(lambda: [1 for cmd, _ in processes().values() if b"podman" in cmd and b"pull" in cmd and b"/x:1" in cmd])
        regatta("kill", run)
        assert regatta.wait(run)["verdict"] == "cancelled"
        wait_for(lambda: not [1 for cmd, _ in processes().values() if b"podman" in cmd and b"pull" in cmd and b"/x:1" in cmd])


def test_hosts_run_containers_too(regatta, podman, fleet):
    fleet.join("a")
    run = job(regatta, "echo $REGATTA_NODE; pwd", top='engine = "hosts"')
    assert regatta.wait(run)["verdict"] == "succeeded"
    # No files of the job are there: it works in the directory that the image names.
    assert regatta.log(run, "worker-0") == b"worker-0\n/opt/app\n"


# ---- without containers ----

def without(regatta, *names):
    """A PATH on which these programs are not."""
    tools = regatta.home.parent / "tools"
    tools.mkdir()
    for name in ("sh", "true", "sleep"):
        (tools / name).symlink_to(shutil.which(name))
    regatta.env["PATH"] = str(tools)
    return tools


def test_without_docker_and_podman_one_line_says_so(regatta):
    without(regatta)
    regatta.job('name = "c"\nimage = "busybox"\ncommand = ["true"]')
    status = regatta.wait(regatta.submit("job.toml"))
    assert status["cause"] == "worker-0: image: neither docker nor podman is installed on this machine"


FAKE_DOCKER = """#!/bin/sh
echo "$@" >> {log}
while [ "$1" = --config ]; do cat $2/config.json >> {log}; shift 2; done
[ "{pulls}" != dead ] || {{ echo "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?" >&2; exit 1; }}
case "$1" in
pull) [ -n "{pulls}" ] || {{ echo "Error response from daemon: pull access denied for x" >&2; exit 1; }} ;;
image) exit 1 ;;
esac
"""


def test_a_source_in_the_image_becomes_the_work_directory(regatta, podman):
    run = job(regatta, "cat $REGATTA_WORK/main.sh; pwd; ls", top='source = "docker:///opt/app"')
    assert regatta.wait(run)["verdict"] == "succeeded"
    said = regatta.log(run, "worker-0")
    assert b"echo from opt/app/main.sh" in said and b"data.txt" in said
    run = job(regatta, "ls", top='source = "docker:///opt/app/data.txt"')
    assert regatta.wait(run)["verdict"] == "succeeded" and regatta.log(run, "worker-0").split() == [b"data.txt"]


def test_a_source_that_the_image_does_not_have_is_named(regatta, podman):
    status = regatta.wait(job(regatta, "true", top='source = "docker:///opt/nothing"'))
    assert status["verdict"] == "failed" and "source" in status["cause"] and "/opt/nothing" in status["cause"], status["cause"]


def fake_docker(regatta, pulls):
    tools = without(regatta)
    (tools / "cat").symlink_to(shutil.which("cat"))
    log = regatta.home.parent / "docker.log"
    (tools / "docker").write_text(FAKE_DOCKER.format(log=log, pulls=pulls))
    (tools / "docker").chmod(0o755)
    return log


def test_the_password_of_a_registry_is_seen_by_the_program_only(regatta):
    log = fake_docker(regatta, "yes")
    regatta.job('name = "c"\nimage = "reg.example/x:1"\ncommand = ["true"]\n'
                'registry = { user = "me", password_env = "REG_WORD" }')
    problem = regatta("run", "-d", "job.toml", code=2).err
    assert "registry: the variable REG_WORD is not set" in problem
    regatta.env["REG_WORD"] = "top-hidden"
    run = regatta.submit("job.toml")
    assert regatta.wait(run)["verdict"] == "succeeded"
    calls = log.read_text()
    assert '{"auths":{"reg.example":{"auth":"bWU6dG9wLWhpZGRlbg=="}}}' in calls
    assert "top-hidden" not in calls and " REG_WORD" not in calls
    for path in regatta.home.rglob("*"):
        if path.is_file():
            assert b"top-hidden" not in path.read_bytes() and b"bWU6dG9w" not in path.read_bytes(), path


def test_a_denied_pull_is_said_in_plain_words(regatta):
    fake_docker(regatta, "")
    regatta.job('name = "c"\nimage = "reg.example/x:1"\ncommand = ["true"]')
    status = regatta.wait(regatta.submit("job.toml"))
    assert status["cause"] == ("worker-0: image 'reg.example/x:1': the registry denies it: it needs a login (registry), or does "
                               "not exist")
    assert status["exit_code"] == 4


def test_a_docker_that_does_not_run_ends_the_run_and_holds_nothing_up(regatta):
    fake_docker(regatta, "dead")
    regatta.job('name = "c"\nimage = "reg.example/x:1"\ncommand = ["true"]')
    status = regatta.wait(regatta.submit("job.toml"))
    assert status["cause"] == "worker-0: image 'reg.example/x:1': docker is installed, but its daemon does not run"
