"""A cancel ends a run in every phase, also while its output is collected."""
import os
import signal
import time

import pytest

FILES = 20000  # copying them takes long enough to stop the agent meanwhile


def collecting(regatta, grace):
    """A job that succeeded, and whose agent never gets to the end of copying what it left."""
    job = regatta.job('name = "slow"\nsource = "code"\n'
                      f'command = ["sh", "-c", "echo done; seq {FILES} | xargs touch"]\n'
                      f'[output]\nkeep = ["**"]\n[timeouts]\ngrace = "{grace}"\n')
    (regatta.cwd / "code").mkdir()
    (regatta.cwd / "code" / "readme").write_text("x")
    run = regatta.submit(job)
    regatta.wait(run, state="collecting")
    for pid in regatta.pids("node-agent"):
        os.kill(pid, signal.SIGSTOP)
    assert regatta.status(run)["state"] == "collecting"
    return run


@pytest.mark.parametrize("how", [[], ["--now"]], ids=["kill", "kill --now"])
def test_a_cancel_ends_collecting(regatta, how):
    run = collecting(regatta, "2s")
    asked = time.monotonic()
    regatta("kill", *how, run)
    ended = regatta.wait(run, 20)
    assert time.monotonic() - asked < 15  # timeouts.collect is five minutes
    assert ended["verdict"] == "cancelled" and ended["exit_code"] == 7
    assert ended["cause"] == "cancelled by the user"


def test_cleanup_ends_collecting(regatta):
    run = collecting(regatta, "2s")
    regatta("cleanup", run, timeout=30)
    assert not (regatta.home / "runs" / run).exists()


def test_kill_by_name_means_the_run_that_is_active(regatta):
    text = 'name = "same"\ncommand = ["sh", "-c", "sleep $N"]\n[env]\nN = "{}"\n'
    for _ in range(2):
        regatta("run", regatta.job(text.format(0)))
    run = regatta.submit(regatta.job(text.format(100)))
    assert regatta("kill", "same").out.startswith(f"{run} is being cancelled")
    assert regatta.wait(run)["verdict"] == "cancelled"
    second = [regatta.submit(regatta.job(text.format(100))) for _ in range(2)]
    refused = regatta("kill", "same", code=None)
    assert refused.returncode != 0 and all(r in refused.err for r in second)
    regatta("kill", *second)


def test_a_run_and_its_node_are_not_taken_for_two_runs(regatta):
    """`kill RUN NODE` looks as if it ended one node."""
    run = regatta.submit("--", "sleep", "60")
    regatta.wait(run, state="running")
    done = regatta("kill", run, "worker-0", code=2)
    assert f"'worker-0' is a node of {run}" in done.err and "nothing was done" in done.err and not done.out
    assert regatta.status(run)["state"] == "running"
    regatta("kill", "--now", run)
    regatta.wait(run)
