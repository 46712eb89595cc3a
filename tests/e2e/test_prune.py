"""Runs that are removed or ended many at a time."""
import os
import pty
import subprocess

from conftest import BINARY, wait_for


def answer(regatta, text, *args):
    """The exit code and the words of a command that asks on its terminal."""
    mine, its = pty.openpty()
    os.write(mine, text)
    child = subprocess.Popen([BINARY, *args], cwd=regatta.cwd, env=regatta.env, stdin=its, stderr=its, stdout=subprocess.PIPE)
    os.close(its)
    out = child.communicate(timeout=60)[0].decode()
    said = b""
    try:
        while chunk := os.read(mine, 4096):
            said += chunk
    except OSError:  # the other end is closed
        pass
    os.close(mine)
    return child.returncode, out, said.decode()


def test_all_runs_are_ended_after_a_question_and_pruned_by_their_size(regatta):
    runs = [regatta.submit("--", "sleep", "1000") for _ in range(2)]
    for no in b"n\n", b"\n":
        code, _, said = answer(regatta, no, "kill", "--all")
        assert code == 7 and "cancel 2 runs? [y/N]" in said and "nothing was done" in said
    assert regatta.status(runs[0])["cancel_asked"] is False
    code, out, _ = answer(regatta, b"y\n", "kill", "--all")
    assert code == 0 and sorted(out.split("\n")[:2]) == sorted(f"{r} is being cancelled" for r in runs)
    for run in runs:
        assert regatta.wait(run)["verdict"] == "cancelled"
    assert regatta("prune", "--older-than", "1h").out == ""
    assert regatta("prune", "--max-size", "100G").out == ""
    assert regatta("prune", "--max-size", "1").out.split() == runs[::-1]
    assert regatta.json("ps", "-a") == [] and not any((regatta.home / "runs" / r).exists() for r in runs)


def test_a_suite_that_goes_on_keeps_its_runs(regatta):
    """Its report needs them; with its end they are runs like any other."""
    gate = regatta.cwd / "go-on"
    regatta.job('name = "two"\n[suite]\njob = "job.toml"\nparallel = 1\n[matrix]\n"env.LAST" = ["", "1"]\n', "suite.toml")
    wait = f'[ -z "$LAST" ] || while [ ! -e {gate} ]; do sleep 0.02; done'
    regatta.job(f"name = 'of-suite'\ncommand = ['sh', '-c', \"\"\"{wait}\"\"\"]\nenv = {{ LAST = '' }}\n", "job.toml")
    alone = regatta.submit("--", "true")
    regatta.wait(alone)
    suite = regatta("suite", "run", "suite.toml", "-d").out.strip()

    def runs():
        return [r for v in regatta.json("suite", "status", suite)["variants"] for r in v["runs"]]
    wait_for(lambda: runs()[0]["state"] == "succeeded" and runs()[1]["state"] == "running", 30, "the second run")
    ids = [r["run"] for r in runs()]
    assert regatta("prune", "--older-than", "1ms").out.split() == [alone]
    assert regatta("prune", "--max-size", "1").out == "" and regatta.status(ids[0])["verdict"] == "succeeded"
    gate.touch()
    wait_for(lambda: regatta.json("suite", "status", suite)["exit_code"] == 0, 30, "the suite to end")
    assert sorted(regatta("prune", "--older-than", "1ms").out.split()) == sorted(ids)


def test_who_ends_all_runs_is_told_of_the_suites_that_go_on(regatta):
    regatta.job('command = ["sleep", "1000"]\n')
    suite = regatta("suite", "run", "-d", regatta.job("[suite]\njob = 'job.toml'\nrepeats = 2\n", "suite.toml")).out.strip()
    told = regatta("kill", "--all", "--yes").err
    assert told == f"regatta: suite {suite} goes on and starts others: 'regatta suite cancel {suite}' ends it\n"
    regatta("suite", "cancel", suite, "--now")
    wait_for(lambda: regatta.json("suite", "status", suite)["exit_code"] is not None, what="the end of the suite")
    assert regatta("kill", "--all", "--yes").err == "regatta: no active runs\n"
