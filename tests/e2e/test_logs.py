"""Both logs of a node, in the order in which they came."""
import json
import os
import re
import signal
import time

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


TWO_PARTS = """
echo old; echo old >&2; printf part
while [ ! -e go ]; do sleep 0.01; done
echo ' new'; echo 'new' >&2
"""
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def shift(regatta, run, log, hours):
    """Makes what was stored until now older."""
    file = regatta.home / "runs" / run / "logs" / f"{log}.times"
    records = [[int(word) for word in line.split()] for line in file.read_text().splitlines()]
    # What comes within 10 ms has the same time: "new" is to have another one.
    wait_for(lambda: time.time() * 1000 > records[-1][1] + 10, what="another time")
    file.write_text("".join(f"{at:020} {ms - hours * 3600000:014}\n" for at, ms in records))


def old_and_new(regatta, kill_master=False):
    run = regatta.submit("--", "sh", "-c", TWO_PARTS)
    wait_for(lambda: sorted(regatta("logs", run).stdout.split()) == [b"old", b"old", b"part"], what="the first part")
    if kill_master:
        os.kill(*regatta.pids("master"), signal.SIGKILL)
    for log in "worker-0.log", "worker-0.err.log":
        shift(regatta, run, log, 1)
    return run


@pytest.mark.parametrize("kill_master", [False, True])
def test_logs_since_a_time(regatta, kill_master):
    run = old_and_new(regatta, kill_master)
    follower = regatta.start("logs", run, "-f", "--since", "30m")
    (regatta.cwd / "go").touch()
    assert regatta.wait(run)["verdict"] == "succeeded"
    # The line that was not complete then is there as a whole.
    assert sorted(regatta("logs", run, "--since", "30m").out.splitlines()) == ["new", "part new"]
    assert sorted(follower.communicate(timeout=20)[0].decode().splitlines()) == ["new", "part new"]
    assert regatta("logs", run, "--since", "30m", "--stderr").out == "new\n"
    assert regatta("logs", run, "--since", "30m", "--stdout", "--tail", "9").out == "part new\n"
    assert regatta("logs", run, "--since", "30m", "--node", "*", "--grep", "^new").out == "new\n"
    assert regatta("logs", run, "--since", "2h", "--stdout").out == "old\npart new\n"
    assert regatta("logs", run, "--since", "2001-01-01T00:00:00Z", "--stderr").out == "old\nnew\n"
    assert regatta("logs", run, "--since", "0s").out == ""
    # The logs themselves have what the job wrote.
    logs = regatta.home / "runs" / run / "logs"
    assert (logs / "worker-0.log").read_text() == "old\npart new\n"
    assert (logs / "worker-0.err.log").read_text() == "old\nnew\n"


def test_lines_have_the_times_at_which_they_came(regatta):
    before = time.time()
    run = old_and_new(regatta)
    (regatta.cwd / "go").touch()
    regatta.wait(run)
    lines = regatta("logs", run, "--timestamps").out.splitlines()
    assert sorted(re.sub(f"^{STAMP} ", "", line) for line in lines) == ["new", "old", "old", "part new"]
    one = {line["line"]: line["time"] for line in map(
        json.loads, regatta("logs", run, "--stderr", "--timestamps", "--output", "json").out.splitlines())}

    def seconds(text):
        return time.mktime(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
    assert before - 3601 <= seconds(one["old"]) <= time.time() - 3600
    assert before - 1 <= seconds(one["new"]) <= time.time()
    # A line has the time of its first byte.
    part = regatta("logs", run, "--stdout", "--timestamps", "--tail", "1").out
    assert part.endswith(" part new\n") and seconds(part) <= time.time() - 3600


def test_without_times_all_is_printed(regatta):
    """Of a run of an older version."""
    run = regatta.json("run", "--", "sh", "-c", "echo one; echo two >&2")["id"]
    for file in (regatta.home / "runs" / run / "logs").glob("*.times"):
        file.unlink()
    assert sorted(regatta("logs", run, "--since", "1ms").out.splitlines()) == ["one", "two"]
    assert sorted(regatta("logs", run, "--timestamps").out.splitlines()) == ["- one", "- two"]


def test_the_api_gives_times_beside_the_bytes(regatta):
    service = start_service(regatta)
    run = regatta.json("run", "--", "sh", "-c", "echo one; echo two >&2")["id"]
    log = f"/api/v1/runs/{run}/logs/worker-0?times=1"
    got = service.get(log)
    assert got.type == "application/vnd.regatta.log" and got.headers["Regatta-Offset"] == "0"
    assert re.fullmatch(rb"out 4 \d{13}\none\n", got.body)
    assert re.fullmatch(rb"err 3 \d{13}\nwo\n", service.get(f"{log}&stream=err&offset=1").body)
    assert re.fullmatch(rb"out 2 \d{13}\nne", service.get(f"{log}&offset=1&limit=2").body)
    assert service.get(f"{log}&limit=0").body == b""
    for bad in "stream=metrics", "stream=both&limit=1", "since=yesterday":
        assert service.get(f"{log}&{bad}").status == 400


def test_a_bad_time_is_refused(regatta):
    got = regatta("logs", "--since", "yesterday", code=2)
    assert got.err == ("regatta: logs: --since is 'yesterday': expected a duration such as 5m or a time such as "
                       "2026-01-31T12:00:00Z\n")
