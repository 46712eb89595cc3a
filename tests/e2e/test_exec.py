"""regatta exec: a command on a node beside its job, over the agent's link."""
import os
import pty
import re
import signal
import subprocess

from conftest import BINARY, wait_for

import pytest


@pytest.fixture
def run(regatta):
    run = regatta.submit("-n", "2", "--", "sh", "-c", "echo $$ > pid-$REGATTA_RANK; exec sleep 600")
    regatta.wait(run, state="running")
    for rank in (0, 1):
        wait_for(lambda: (regatta.cwd / f"pid-{rank}").exists(), what="the job")
    yield run
    regatta("kill", run, "--now", code=None)


def test_streams_and_exit_code_are_those_of_the_command(regatta, run):
    data = os.urandom(2_000_000)
    done = regatta("exec", run, "worker-1", "--", "sh", "-c", "echo $REGATTA_NODE >&2; cat; exit 7", stdin=data, code=7)
    assert done.stdout == data
    assert done.err == "worker-1\n"
    assert regatta("exec", run, "worker-0", "--", "sh", "-c", "kill -9 $$", code=137).out == ""
    texts = [e for e in regatta("events", run).out.splitlines() if " exec " in e]
    assert len(texts) == 2 and "worker-1  command: sh -c echo $REGATTA_NODE >&2; cat; exit 7" in texts[0]


def test_what_cannot_be_run_is_one_line(regatta, run):
    assert regatta("exec", run, "worker-0", "--", "nosuch", code=3).err == "regatta: command 'nosuch' not found in PATH\n"
    assert regatta("exec", run, "worker-7", "--", "true", code=3).err == f"regatta: run '{run}' has no node 'worker-7': 'regatta status {run}' lists them\n"
    assert "no command" in regatta("exec", run, "worker-0", code=2).err


def test_ctrl_c_goes_to_the_command_and_a_client_that_leaves_ends_it(regatta, run):
    for how, code in ((signal.SIGINT, 130), (signal.SIGKILL, -9)):
        child = regatta.start("exec", run, "worker-0", "--", "sh", "-c", "echo $$; exec sleep 600", stdin=subprocess.DEVNULL)
        pid = int(child.stdout.readline())
        child.send_signal(how)
        assert child.wait(timeout=20) == code
        wait_for(lambda: not os.path.exists(f"/proc/{pid}"), what="the end of the command")


def test_a_shell_on_a_terminal(regatta, run):
    main, side = pty.openpty()
    child = subprocess.Popen([BINARY, "exec", "-t", run, "worker-1"], cwd=regatta.cwd,
                             env={**regatta.env, "PS1": "$ "}, stdin=side, stdout=side, stderr=side, start_new_session=True)
    os.close(side)
    os.write(main, b"echo on $((40 + 2)) $REGATTA_NODE; tty; exit 5\n")
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
    assert b"on 42 worker-1" in seen and re.search(rb"/dev/pts/\d+", seen)


def test_commands_run_under_an_agent_that_was_killed_and_is_back(regatta, run):
    for pid in regatta.pids("node-agent"):
        os.kill(pid, signal.SIGKILL)
    done = wait_for(lambda: [d for d in [regatta("exec", run, "worker-1", "--", "sh", "-c", "echo $REGATTA_NODE", code=None)]
                             if d.returncode != 8], what="the agent")[0]
    assert (done.returncode, done.out, done.err) == (0, "worker-1\n", "")


def test_a_command_ends_with_its_run(regatta, run):
    child = regatta.start("exec", run, "worker-0", "--", "sh", "-c", "echo $$; exec sleep 600", stdin=subprocess.DEVNULL)
    pid = int(child.stdout.readline())
    regatta("kill", run, "--now")
    assert child.wait(timeout=20) in (137, 7)
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), what="the end of the command")
    regatta.wait(run)
    assert regatta("exec", run, "worker-0", "--", "true", code=2).err == \
        "regatta: the run is over (cancelled): commands run on a node only while its job does\n"
