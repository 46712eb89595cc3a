"""Both logs of a node, in the order in which they came."""
import json
import os
import signal

import pytest

from conftest import wait_for
from service import start_service

# Each line is seen before the next one is written, so that the order is known.
ALTERNATING = """
i=0
while [ $i -lt 6 ]; do
	while [ ! -e go$i ]; do sleep 0.01; done
	if [ $((i % 2)) = 0 ]; then echo out $i; else echo err $i >&2; fi
	i=$((i + 1))
done
"""
LINES = [f"{'err' if i % 2 else 'out'} {i}\n" for i in range(6)]


def step(regatta, run, i):
    (regatta.cwd / f"go{i}").touch()
    wait_for(lambda: LINES[i].encode() in regatta("logs", run).stdout, what=f"line {i}")


def test_both_logs_are_printed_in_the_order_of_arrival(regatta):
    run = regatta.submit("--", "sh", "-c", ALTERNATING)
    follower = regatta.start("logs", run, "-f")
    for i in range(6):
        step(regatta, run, i)
    assert regatta.wait(run)["verdict"] == "succeeded"
    assert follower.communicate(timeout=20)[0].decode() == "".join(LINES)
    assert regatta("logs", run).out == "".join(LINES)
    assert regatta("logs", run, "--tail", "3").out == "".join(LINES[3:])
    assert regatta("logs", run, "-f", "--tail", "2").out == "".join(LINES[4:])
    assert regatta("logs", run, "--stdout").out == "".join(LINES[0::2])
    assert regatta("logs", run, "--stderr").out == "".join(LINES[1::2])
    lines = [json.loads(line) for line in regatta("logs", run, "--output", "json").out.splitlines()]
    assert [(one["stream"], one["line"] + "\n") for one in lines] == [(text[:3], text) for text in LINES]


def test_the_order_survives_the_master(regatta):
    run = regatta.submit("--", "sh", "-c", ALTERNATING)
    for i in range(3):
        step(regatta, run, i)
    os.kill(*regatta.pids("master"), signal.SIGKILL)
    for i in range(3, 6):
        step(regatta, run, i)
    regatta.wait(run)
    assert regatta("logs", run).out == "".join(LINES)


def test_logs_without_an_order_are_printed_whole(regatta):
    """Of a run of an older version."""
    run = regatta.submit("--", "sh", "-c", ALTERNATING)
    for i in range(6):
        step(regatta, run, i)
    regatta.wait(run)
    (regatta.home / "runs" / run / "logs" / "worker-0.order").unlink()
    assert regatta("logs", run).out == "".join(LINES[0::2] + LINES[1::2])
    assert regatta("logs", run, "--tail", "4").out == "".join(LINES[4:5] + LINES[1::2])


@pytest.mark.parametrize("script", ["echo out", "echo err >&2"])
def test_a_job_with_one_log_has_no_order(regatta, script):
    run = regatta.json("run", "--", "sh", "-c", script)["id"]
    assert not list((regatta.home / "runs" / run / "logs").glob("*.order"))


def test_the_api_gives_both_logs_in_pieces(regatta):
    service = start_service(regatta)
    run = regatta.json("run", "--", "sh", "-c", "echo one; sleep 0.5; echo two >&2")["id"]
    log = f"/api/v1/runs/{run}/logs/worker-0?stream=both"
    got = service.get(log)
    assert got.status == 200 and got.type == "application/vnd.regatta.log" and got.body == b"out 4\none\nerr 4\ntwo\n"
    assert service.get(f"{log}&offset=1&err_offset=2").body == b"out 3\nne\nerr 2\no\n"
    got = service.get(f"{log}&tail=1")
    assert got.body == b"err 4\ntwo\n"
    assert (got.headers["Regatta-Offset"], got.headers["Regatta-Err-Offset"]) == ("4", "0")
    assert service.get(f"{log}&limit=1").status == 400


def test_lines_are_found_in_the_logs_of_some_nodes(regatta):
    regatta("run", "-n", "3", "--name", "some", "--", "sh", "-c", "echo loss $REGATTA_RANK; echo other; echo Loss >&2")
    assert regatta("logs", "some", "--node", "*-[12]", "--grep", r"^loss \d").out == "worker-1 | loss 1\nworker-2 | loss 2\n"
    assert regatta("logs", "some", "--node", "worker-0", "--stderr", "--grep", "oss").out == "Loss\n"
