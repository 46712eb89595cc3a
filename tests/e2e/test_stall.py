"""The hang watchdog: who stands still is found, and what was asked for follows."""
import json
import os
import signal

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
