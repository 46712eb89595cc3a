"""output.max_log: a log that is cut, in a run that goes on."""
import json
import os
import signal

import pytest

from conftest import wait_for

JOB = """
name = "cut"
command = ["sh", "-c", '''%s''']
%s
[metrics]
loss = 'loss=([0-9.]+)'
[output]
max_log = "64KiB"
"""
LINES = 20000  # of 10 bytes
SCRIPT = f"""
i=0; while [ $i -lt {LINES} ]; do echo "line 1234"; i=$((i + 1)); done
while [ ! -e go ]; do sleep 0.01; done
echo loss=0.5
echo few >&2
"""
WRITTEN = LINES * 10 + len("loss=0.5\n")


def log_of(regatta, run, name="worker-0.log"):
    return (regatta.home / "runs" / run / "logs" / name).read_bytes()


@pytest.mark.parametrize("kill_master", [False, True])
def test_a_log_has_its_limit_and_says_what_is_missing(regatta, kill_master):
    regatta.job(JOB % (SCRIPT, ""))
    run = regatta.submit("job.toml")
    node = lambda: regatta.json("status", run)["nodes"][0]
    wait_for(lambda: node().get("not_stored") == LINES * 10 - 65536, what="the log is full")
    assert node()["log_bytes"] == 65536 and node()["state"] == "running"
    if kill_master:
        os.kill(*regatta.pids("master"), signal.SIGKILL)
    (regatta.cwd / "go").touch()
    done = regatta.wait(run)
    assert done["verdict"] == "succeeded" and done["nodes"][0]["not_stored"] == WRITTEN - 65536
    assert log_of(regatta, run) == (b"line 1234\n" * LINES)[:65536] + (
        b"\n[regatta: %d bytes not stored: limit 65536 bytes of output.max_log]\n" % (WRITTEN - 65536))
    assert log_of(regatta, run, "worker-0.err.log") == b"few\n"
    # Metrics are taken of what is not stored, too.
    assert regatta.json("metrics", run, "loss")["metrics"]["loss"]["all"]["last"] == 0.5
    assert "note    131.3 KiB of output not stored: output.max_log of the job\n" in regatta("status", run).out
    summary = json.loads((regatta.home / "runs" / run / "summary.json").read_text())
    assert summary["nodes"][0]["not_stored"] == WRITTEN - 65536
    assert regatta("logs", run, "--stdout", "--tail", "1").out.startswith("[regatta: ")


def test_a_log_of_exactly_the_limit_is_whole(regatta):
    regatta.job(JOB % ("head -c 65536 /dev/zero", ""))
    done = regatta.json("run", "job.toml")
    assert "not_stored" not in done["nodes"][0] and log_of(regatta, done["id"]) == bytes(65536)
    assert not list((regatta.home / "runs" / done["id"] / "logs").glob("*.cut"))


def test_each_attempt_has_the_limit_and_its_own_metrics(regatta):
    """The second attempt's figures are taken although the first one's log was cut, also by the next master."""
    script = """
head -c 100000 /dev/zero
if [ $REGATTA_ATTEMPT = 1 ]; then exit 3; fi
while [ ! -e go ]; do sleep 0.01; done
echo; echo loss=0.$REGATTA_ATTEMPT
"""
    regatta.job(JOB % (script, "retries = 1"))
    run = regatta.submit("job.toml")
    wait_for(lambda: (regatta.json("status", run)["nodes"][0]["attempt"], regatta.json("status", run)["nodes"][0].get(
        "not_stored")) == (2, 2 * (100000 - 65536)), what="the second attempt's log is full")
    os.kill(*regatta.pids("master"), signal.SIGKILL)
    (regatta.cwd / "go").touch()
    assert regatta.wait(run)["verdict"] == "succeeded"
    assert regatta.json("metrics", run, "loss")["metrics"]["loss"]["all"]["last"] == 0.2
    missing = 100000 - 65536
    assert log_of(regatta, run).endswith(b"[regatta: %d bytes not stored: limit 65536 bytes of output.max_log]\n" % missing)
    missing += len("\nloss=0.2\n")
    assert log_of(regatta, run, "worker-0.a2.log").endswith(b"[regatta: %d bytes not stored: limit 65536 bytes of "
                                                            b"output.max_log]\n" % missing)


def test_a_limit_that_is_none_is_refused(regatta):
    regatta.job(JOB.replace("64KiB", "0") % ("true", ""))
    assert "output.max_log" in regatta("run", "job.toml", code=2).err
