"""The hang watchdog: who stands still is found, and what was asked for follows."""
import json
import os
import pathlib
import signal
import subprocess
import sys

from conftest import wait_for

HANGS = """
name = "hang"
count = 3
command = ["sh", "-c", "echo up; test $REGATTA_RANK != 1 || kill -STOP $$; exec sleep 120"]
stall = "1s"
timeouts = {{ grace = "1s" }}
{}
"""


def events(regatta, run, kind):
    lines = regatta("events", "--output", "json", run).out
    found = json.loads(lines) if lines.lstrip().startswith("[") else [json.loads(line) for line in lines.splitlines()]
    return [e for e in found if e["kind"] == kind]


def bundle(regatta, node):
    """What the watchdog found out about a node of the only run."""
    run = regatta.json("ps", "-a")[0]["id"]
    return (regatta.home / "runs" / run / "stall" / f"{node}.txt").read_text()


def test_a_stopped_rank_is_named_and_the_run_killed(regatta):
    done = regatta("run", regatta.job(HANGS.format('stall_action = "kill"')), code=6)
    assert "no output for 1.0 s (stall); worker-1 differs: T stopped" in done.out + done.err
    run = regatta.json("ps", "-a")[0]["id"]
    found = regatta.home / "runs" / run / "stall"
    assert sorted(os.listdir(found)) == ["worker-0.txt", "worker-1.txt", "worker-2.txt"]
    stopped = (found / "worker-1.txt").read_text()
    assert stopped.startswith("T stopped") and "kill -STOP" in stopped and stopped.rstrip().endswith("up")
    assert "sleep 120" in (found / "worker-0.txt").read_text()


def test_what_py_spy_or_gdb_say_is_in_the_bundle(regatta):
    """py-spy is asked first; a program that it does not know, it says nothing about, and gdb is asked."""
    tools = regatta.cwd / "tools"
    tools.mkdir()
    for name, text in (("py-spy", 'echo "$@" | grep -q "^dump --pid" && grep -q python /proc/$3/cmdline && echo "py-spy saw $3"'),
                       ("gdb", '[ "$1 $3" = "-p -batch" ] && echo "gdb saw $2"')):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    regatta.env["PATH"] = f"{tools}:{os.environ['PATH']}"
    regatta("run", regatta.job("""
name = "traced"
count = 2
command = ["sh", "-c", "echo $$; test $REGATTA_RANK = 0 || exec sleep 120; exec python3 -c 'import time; time.sleep(120)'"]
stall = "1s"
stall_action = "kill"
timeouts = { grace = "1s" }
"""), code=6)
    run = regatta.json("ps", "-a")[0]["id"]
    for node, tool, other in (("worker-0", "py-spy", "gdb"), ("worker-1", "gdb", "py-spy")):
        text = (regatta.home / "runs" / run / "stall" / f"{node}.txt").read_text()
        pid = regatta.log(run, node).decode().strip()
        assert f"  {tool}:\n{tool} saw {pid}\n" in text and f"{other} saw" not in text, text


WAITS = """
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) static void waits_for_nobody(void)
{
	for (;;)
		pause();
}

int main(void)
{
	puts("up");
	fflush(stdout);
	waits_for_nobody();
	return 0;
}
"""


def test_the_real_gdb_names_the_function_that_hangs(regatta):
    """py-spy is left out of the path, so that Debian's gdb is the one that is asked."""
    (regatta.cwd / "hang.c").write_text(WAITS)
    subprocess.run(["cc", "-g", "-O1", "-fno-omit-frame-pointer", "-o", "hang", "hang.c"], cwd=regatta.cwd, check=True)
    regatta.env["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    regatta("run", regatta.job("""
name = "gdb"
command = ["./hang"]
stall = "1s"
stall_action = "kill"
timeouts = { grace = "1s" }
"""), code=6)
    text = bundle(regatta, "worker-0")
    assert "  gdb:\n" in text and " in waits_for_nobody " in text and " in main " in text, text


def test_the_real_py_spy_names_the_line_that_hangs(regatta):
    """py-spy of the tests' own environment."""
    assert (pathlib.Path(sys.prefix) / "bin" / "py-spy").exists(), "tools/run-tests --venv installs it"
    (regatta.cwd / "hang.py").write_text("""import time


def waits_for_nobody():
    time.sleep(120)


print("up", flush=True)
waits_for_nobody()
""")
    regatta.env["PATH"] = f"{sys.prefix}/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    regatta("run", regatta.job("""
name = "spy"
command = ["/usr/bin/python3", "hang.py"]
stall = "1s"
stall_action = "kill"
timeouts = { grace = "1s" }
"""), code=6)
    text = bundle(regatta, "worker-0")
    assert "  py-spy:\n" in text and "waits_for_nobody (" in text and "hang.py:5)" in text, text
    assert "  gdb:\n" not in text, text


def test_a_report_is_shown_while_the_run_goes_on(regatta):
    run = regatta.submit(regatta.job(HANGS.format("")))
    waits = wait_for(lambda: regatta.status(run)["waiting"], what="the watchdog")
    assert (waits[0]["kind"], waits[0]["name"], waits[0]["state"]) == ("job", "worker-1", "stalled"), waits
    assert "stalled: no output for 1.0 s" in regatta("status", run).out
    for pid in regatta.pids("shim"):  # the job goes on
        children = open(f"/proc/{pid}/task/{pid}/children").read().split()
        for child in children:
            os.kill(int(child), signal.SIGCONT)
            os.kill(int(child), signal.SIGTERM)
    regatta.wait(run)
    assert [e["node"] for e in events(regatta, run, "stalled")] == ["worker-1"]


def test_a_restart_uses_a_retry_and_the_next_attempt_may_succeed(regatta):
    job = regatta.job("""
name = "again"
count = 2
command = ["sh", "-c", "echo attempt $REGATTA_ATTEMPT; test $REGATTA_ATTEMPT = 2 || exec sleep 120"]
stall = "1s"
stall_action = "restart"
retries = 1
timeouts = { grace = "1s" }
""")
    regatta("run", job)
    run = regatta.json("ps", "-a")[0]["id"]
    assert [node["attempt"] for node in regatta.status(run)["nodes"]] == [2, 2]


def test_a_job_that_prints_is_left_alone(regatta):
    job = regatta.job("""
name = "busy"
command = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.25; done"]
stall = "1s"
stall_action = "kill"
""")
    regatta("run", job)
