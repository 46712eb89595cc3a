"""A node that fails by itself starts again: its attempts one after the other, each with logs and outputs of its own."""
import os
import signal

from conftest import wait_for

# Each attempt says so, leaves a file, and fails unless it is the last that it was told of.
WORKER = """
import os, sys
attempt = int(os.environ["REGATTA_ATTEMPT"])
previous = os.environ.get("REGATTA_PREVIOUS")
with open("execs", "a") as f:
    f.write(f"{os.environ['REGATTA_NODE']} {attempt}\\n")
print("attempt", attempt, "score=%d" % attempt)
print("trouble", attempt, file=sys.stderr)
if previous:
    print("found", open(previous + "/note").read())
with open(os.environ["REGATTA_OUTPUT"] + "/note", "w") as f:
    f.write(f"left by {attempt}")
sys.exit(0 if attempt >= int(sys.argv[1]) else int(sys.argv[2]))
"""


def job(regatta, succeeds_at, code, keys):
    regatta.script(WORKER)
    return regatta.job(f"""
command = ["python3", "job.py", "{succeeds_at}", "{code}"]
{keys}
[metrics]
score = 'score=(\\d+)'
""")


def test_a_job_that_fails_twice_succeeds_at_the_third_attempt(regatta):
    run = regatta.json("run", "--output", "json", job(regatta, 3, 7, "retries = 2"))
    assert run["verdict"] == "succeeded"
    assert run["nodes"][0]["attempt"] == 3
    id = run["id"]
    assert (regatta.cwd / "execs").read_text() == "worker-0 1\nworker-0 2\nworker-0 3\n"
    logs = regatta.home / "runs" / id / "logs"
    assert (logs / "worker-0.log").read_text() == "attempt 1 score=1\n"
    assert (logs / "worker-0.a2.log").read_text() == "attempt 2 score=2\nfound left by 1\n"
    assert (logs / "worker-0.a3.log").read_text() == "attempt 3 score=3\nfound left by 2\n"
    assert (logs / "worker-0.a3.err.log").read_text() == "trouble 3\n"
    outputs = regatta.home / "runs" / id / "outputs"
    assert [(outputs / n / "note").read_text() for n in ("worker-0", "worker-0.a2", "worker-0.a3")] == \
        ["left by 1", "left by 2", "left by 3"]
    # All attempts in order, as one log; each figure counted once.
    want = "attempt 1 score=1\nattempt 2 score=2\nfound left by 1\nattempt 3 score=3\nfound left by 2\n"
    assert regatta("logs", "--stdout", id, "worker-0").out == want
    assert regatta("logs", id, "--attempt", "2", "--stdout").out == "attempt 2 score=2\nfound left by 1\n"
    assert run["nodes"][0]["log_bytes"] == len(want)
    assert run["metrics"]["score"]["count"] == 3


def test_a_job_that_goes_on_failing_fails(regatta):
    run = regatta.json("run", "--output", "json", job(regatta, 9, 7, "retries = 1"), code=1)
    assert run["verdict"] == "failed" and run["nodes"][0]["attempt"] == 2
    assert (regatta.cwd / "execs").read_text() == "worker-0 1\nworker-0 2\n"


def test_only_the_listed_codes_are_tried_again(regatta):
    run = regatta.json("run", "--output", "json", job(regatta, 2, 7, "retries = 2\nretry_on = [75]"), code=1)
    assert run["nodes"][0]["attempt"] == 1
    run = regatta.json("run", "--output", "json", job(regatta, 2, 75, "retries = 2\nretry_on = [75]"))
    assert run["nodes"][0]["attempt"] == 2


# Many short attempts, so that whatever is killed is killed between two of them as often as within one.
FLAKY = """
import os, sys, time
attempt = int(os.environ["REGATTA_ATTEMPT"])
with open("execs", "a") as f:
    f.write(f"{os.environ['REGATTA_NODE']} {attempt}\\n")
for i in range(3):
    print(os.environ["REGATTA_NODE"], attempt, i, flush=True)
    time.sleep(0.05)
sys.exit(0 if attempt == 8 else 1)
"""


def test_a_master_that_is_killed_between_attempts_starts_none_twice(regatta):
    regatta.script(FLAKY)
    regatta.job('command = ["python3", "job.py"]\ncount = 3\nretries = 20\n')
    run = regatta.submit("job.toml")
    for _ in range(6):
        masters = regatta.pids("master")
        for pid in masters:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        regatta("ps")
    got = regatta.wait(run)
    assert got["verdict"] == "succeeded"
    execs = (regatta.cwd / "execs").read_text().splitlines()
    assert sorted(execs) == sorted(set(execs)), "an attempt was executed twice"
    for node in got["nodes"]:
        name = node["name"]
        assert node["attempt"] == 8
        want = "".join(f"{name} {a} {i}\n" for a in range(1, 9) for i in range(3))
        assert regatta("logs", "--stdout", run, name).out == want
