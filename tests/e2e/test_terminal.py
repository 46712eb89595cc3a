"""pty = true: the job has a terminal, and what it writes there is its standard output."""
import os
import signal
import time

from conftest import wait_for

PYTHON = """
import os, shutil, sys, time
assert all(os.isatty(fd) for fd in (0, 1, 2)), "no terminal"
assert os.tcgetpgrp(0) == os.getpgrp(), "not the controlling terminal"
print(shutil.get_terminal_size(), os.environ["TERM"])
for i in range(3):
    sys.stdout.write(f"\\rstep {i}")
    sys.stdout.flush()
print(file=sys.stderr)
print("input:", repr(sys.stdin.read()))
"""


def job(regatta, script, more=""):
    regatta.script(script)
    return regatta.job(f'name = "t"\ncommand = ["python3", "{regatta.cwd}/job.py"]\npty = true\n{more}')


def test_a_python_program_has_a_terminal(regatta):
    run = regatta.submit(job(regatta, PYTHON, 'env = { TERM = "vt100", PYTHONUNBUFFERED = "" }'))
    assert regatta.wait(run)["verdict"] == "succeeded"
    assert regatta.log(run, "worker-0") == (b"os.terminal_size(columns=80, lines=24) vt100\n"
                                       b"\rstep 0\rstep 1\rstep 2\ninput: ''\n")
    assert not (regatta.home / "runs" / run / "logs" / "worker-0.err.log").exists() or regatta.log(run, "worker-0", True) == b""


def test_lines_come_while_the_program_runs(regatta):
    """Python buffers by lines on a terminal, without PYTHONUNBUFFERED."""
    run = regatta.submit(job(regatta, "import time\nprint('first')\ntime.sleep(1000)\n",
                             'env = { PYTHONUNBUFFERED = "" }'))
    log = regatta.home / "runs" / run / "logs" / "worker-0.log"
    wait_for(lambda: log.exists() and log.read_bytes() == b"first\n", what="the first line")
    regatta("kill", "--now", run)
    assert regatta.wait(run)["verdict"] == "cancelled"
    assert log.read_bytes() == b"first\n"


def test_a_megabyte_comes_byte_for_byte(regatta):
    data = os.urandom(1 << 20)
    (regatta.cwd / "data").write_bytes(data)
    run = regatta.submit(regatta.job(f'name = "t"\ncommand = ["cat", "{regatta.cwd}/data"]\npty = true\n'))
    assert regatta.wait(run)["verdict"] == "succeeded"
    assert regatta.log(run, "worker-0") == data


def test_a_role_may_say_otherwise(regatta):
    run = regatta.submit(regatta.job("""
pty = true
command = ["sh", "-c", "test -t 1 && echo yes || echo no"]
[roles.a]
[roles.b]
pty = false
"""))
    assert regatta.wait(run)["verdict"] == "succeeded"
    assert (regatta.log(run, "a-0"), regatta.log(run, "b-0")) == (b"yes\n", b"no\n")


def test_a_cancelled_job_may_say_its_last_words(regatta):
    run = regatta.submit(job(regatta, """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("last"), sys.exit(3)))
print("armed")
while True:
    time.sleep(1)
"""))
    log = regatta.home / "runs" / run / "logs" / "worker-0.log"
    wait_for(lambda: log.exists() and log.read_bytes(), what="the first line")
    regatta("kill", run)
    assert regatta.wait(run)["verdict"] == "cancelled"
    assert log.read_bytes() == b"armed\nlast\n"


def test_killed_shims_and_agents_lose_nothing_of_a_terminal(regatta):
    """The shim is killed in full flow, later agent and shim, and every line is there once."""
    run = regatta.submit(job(regatta, """
import time
for i in range(200):
    print(f"line {i} " + "x" * 5000)
    time.sleep(0.005)
"""))
    log = regatta.home / "runs" / run / "logs" / "worker-0.log"
    wait_for(lambda: log.exists() and log.stat().st_size > 100000, what="some output")
    for pid in regatta.pids("shim"):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: log.stat().st_size > 300000, what="more output")
    for pid in regatta.pids("node-agent"):
        os.kill(pid, signal.SIGKILL)
    status = regatta.wait(run)
    assert log.read_text() == "".join(f"line {i} " + "x" * 5000 + "\n" for i in range(200))
    assert status["verdict"] == "succeeded", status


def test_a_daemon_on_the_terminal_does_not_hold_the_run(regatta):
    run = regatta.submit(job(regatta, """
import subprocess
subprocess.Popen(["setsid", "sleep", "1000"])
print("over")
"""))
    began = time.monotonic()
    assert regatta.wait(run)["verdict"] == "succeeded"
    assert time.monotonic() - began < 20
    assert regatta.log(run, "worker-0") == b"over\n"
