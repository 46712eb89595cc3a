"""Suites: a matrix, experiments, repeats; what is left in their directory; crashes, cancel, resume."""
import collections
import csv
import json
import os
import random
import re
import signal
import sqlite3
import time

import pytest
from conftest import ROOT, wait_for

TRAIN = """
name = "train"
command = ["sh", "-c", "echo samples_per_s=$((REGATTA_WORLD_SIZE * 100 + BATCH))"]
env = { BATCH = "0" }
[metrics.samples_per_s]
pattern = 'samples_per_s=(?<value>[0-9]+)'
better = "higher"
"""
SCALING = """
name = "scaling"
[suite]
job = "train.toml"
repeats = 2
parallel = 2
[matrix]
count = [1, 2]
"env.BATCH" = ["1", "2"]
[[exclude]]
count = 2
"env.BATCH" = "2"
[[experiments]]
name = "base"
set = { "env.BATCH" = "50" }
[report]
metric = "samples_per_s"
baseline = { count = 1 }
"""


def suite_file(regatta, text, name="suite.toml"):
    return regatta.job(text, name)


def entries(suite):
    return [(v["name"], r) for v in suite["variants"] for r in v["runs"]]


def waits_for_answer(pid):
    """Has the program asked the master, with handlers of its own for an interrupt?"""
    status = open(f"/proc/{pid}/status").read()
    caught = int(re.search(r"^SigCgt:\s*([0-9a-f]+)$", status, re.M).group(1), 16)
    return caught >> signal.SIGINT - 1 & 1


def wait_suite(regatta, suite, seconds=60):
    def ended():
        got = regatta.json("suite", "status", suite)
        return got if got["exit_code"] is not None else None
    return wait_for(ended, seconds, f"suite {suite} to end")


def test_a_suite_runs_every_variant_as_often_as_it_says(regatta):
    regatta.job(TRAIN, "train.toml")
    suite = regatta.json("suite", "run", suite_file(regatta, SCALING))
    assert suite["state"] == "succeeded"
    assert [v["name"] for v in suite["variants"]] == ["count=1,BATCH=1", "count=1,BATCH=2", "count=2,BATCH=1", "base"]
    assert suite["variants"][2]["params"] == {"count": 2, "env.BATCH": "1"}
    runs = [r["run"] for _, r in entries(suite)]
    assert len(set(runs)) == 8 and {r["state"] for _, r in entries(suite)} == {"succeeded"}
    # The same path as `regatta run`: they are runs like any other.
    assert {r["id"] for r in regatta.json("ps", "--all")} == set(runs)
    value = {v["name"]: regatta.status(v["runs"][0]["run"])["metrics"]["samples_per_s"]["last"] for v in suite["variants"]}
    assert value == {"count=1,BATCH=1": 101, "count=1,BATCH=2": 102, "count=2,BATCH=1": 201, "base": 150}


def test_the_directory_of_a_suite(regatta):
    regatta.job(TRAIN, "train.toml")
    suite = regatta.json("suite", "run", suite_file(regatta, SCALING))
    there = regatta.home / "suites" / suite["id"]
    assert suite["dir"] == str(there)
    assert json.loads((there / "summary.json").read_text())["id"] == suite["id"]
    assert "train.toml" in (there / "suite.toml").read_text()
    for name, run in entries(suite):
        link = there / "experiments" / name / str(run["repeat"])
        assert link.resolve() == (regatta.home / "runs" / run["run"]).resolve()
    assert not (there / "request.json").exists()
    # Two repeats could not show anything, whatever they differ in.
    compared = [row for row in regatta.json("suite", "report", suite["id"])["metrics"][0]["rows"] if row["baseline"]]
    assert compared and all(row["p_holm"] is None and row["verdict"] == "unclear" for row in compared)
    assert "has succeeded: there is nothing to resume" in regatta("suite", "resume", suite["id"], code=None).err


def test_runs_stand_with_their_variant_in_either_order(regatta):
    regatta.job('command = ["true"]\nparams = { a = 0 }\n')
    for order in "interleaved", "as written":
        suite = regatta.json("suite", "run", suite_file(
            regatta, f"[suite]\njob = 'job.toml'\nrepeats = 2\norder = '{order}'\n[matrix]\n'params.a' = [1, 2, 3]\n"))
        there = {r["id"]: r["params"]["a"] for r in regatta.json("ps", "--all")}
        assert [[there[r["run"]] for r in v["runs"]] for v in suite["variants"]] == [[1, 1], [2, 2], [3, 3]]
        links = regatta.home / "suites" / suite["id"] / "experiments"
        assert [there[p.resolve().name] for p in sorted(links.glob("*/*"))] == [1, 1, 2, 2, 3, 3]
        made = sorted((r for r in regatta.json("ps", "--all") if r["id"] in {r["run"] for _, r in entries(suite)}),
                      key=lambda r: r["created_ms"])
        if order == "as written":
            assert [r["params"]["a"] for r in made] == [1, 1, 2, 2, 3, 3]


def test_a_suite_that_is_sent_twice_is_one(regatta, service):
    body = {"request_id": "a-suite-sent-twice", "suite": {"name": "once", "suite": {"job": "j.toml"}}, "of": [0],
            "base_dir": str(regatta.cwd),
            "submissions": [{"job": {"command": ["true"]}, "base_dir": str(regatta.cwd), "run": "job-abcd"}]}
    first, second = (service.call("POST", "/api/v1/suites", body).json["id"] for _ in range(2))
    assert first == second and len(regatta.json("suite", "list")["suites"]) == 1
    (_, run), = entries(wait_suite(regatta, first))
    assert run["state"] == "succeeded" and run["run"] != "job-abcd", "the id of a run is not the client's to choose"


def test_auto_is_as_many_as_the_nodes_of_a_run_leave_processors_for(regatta):
    cpus = os.sysconf("SC_NPROCESSORS_ONLN")
    regatta.job('command = ["true"]\n')
    text = "[suite]\njob = 'job.toml'\nparallel = 'auto'\n[[experiments]]\nname = 'x'\nset = { count = %d }\n"
    for nodes, parallel in (1, cpus), (cpus, 1), (2 * cpus, 1):
        assert regatta.json("suite", "run", suite_file(regatta, text % nodes))["parallel"] == min(parallel, 256)


def test_values_of_any_text_are_one_column_of_the_table(regatta):
    words = ["a,b", 'q"uote', "two\nlines", "=1+1", "..", "\u00fc/x", ""]
    regatta.job('command = ["true"]\n')
    suite = regatta.json("suite", "run", suite_file(regatta, "[suite]\njob = 'job.toml'\nparallel = 4\n[matrix]\n'env.W' = " + json.dumps(words)))
    with (regatta.home / "suites" / suite["id"] / "table.csv").open(newline="") as f:
        rows = list(csv.DictReader(f))
    # A spreadsheet would take the fourth for a formula.
    assert [r["env.W"] for r in rows] == [w if w != "=1+1" else "'=1+1" for w in words]
    assert [v["params"]["env.W"] for v in suite["variants"]] == words
    there = {p.name for p in (regatta.home / "suites" / suite["id"] / "experiments").iterdir()}
    assert there == {v["name"] for v in suite["variants"]} and len(there) == len(words)


def test_a_value_may_be_a_table(regatta):
    regatta.job('command = ["sh", "-c", "echo $A $B > $REGATTA_OUTPUT/said"]\nenv = { A = "0", B = "0" }\n')
    suite = regatta.json("suite", "run", suite_file(regatta, """
[suite]
job = "job.toml"
[matrix]
env = [{ A = "1" }, { A = "2", B = "x y" }]
[[experiments]]
name = "e"
set = { resources = { cpus = 0.5 }, output = { keep = ["said", "*.json"] } }
"""))
    said = {v["name"]: (regatta.home / "suites" / suite["id"] / "experiments" / v["name"] / "1/outputs/worker-0/said").read_text()
            for v in suite["variants"]}
    assert list(said.values()) == ["1\n", "2 x y\n", "0 0\n"], said
    job = regatta.json("suite", "status", suite["id"])["variants"][2]["runs"][0]["run"]
    assert "cpus = 0.5" in (regatta.home / "runs" / job / "job.toml").read_text()


@pytest.mark.parametrize("code, kept", [(0, []), (1, ["request.json"])])
def test_secrets_are_in_no_answer_and_stay_only_for_a_resume(regatta, code, kept):
    regatta.job(f'command = ["sh", "-c", "exit {code}"]\nenv = {{ HF_TOKEN = "swordfish" }}\n', "train.toml")
    suite = regatta.json("suite", "run", suite_file(regatta, '[suite]\njob = "train.toml"\n'), code=code)
    there = regatta.home / "suites" / suite["id"]
    assert "swordfish" not in json.dumps([suite, regatta.json("suite", "status", suite["id"]), regatta.json("suite", "list")])
    holders = [p for p in there.rglob("*") if p.is_file() and "experiments" not in p.parts and b"swordfish" in p.read_bytes()]
    assert [p.name for p in holders] == kept and all(p.stat().st_mode & 0o777 == 0o600 for p in holders)


def test_secrets_that_a_killed_master_left_are_removed_by_the_next(regatta):
    regatta.job('command = ["true"]\nenv = { HF_TOKEN = "swordfish" }\n', "train.toml")
    path = suite_file(regatta, '[suite]\njob = "train.toml"\n')
    done, failed = regatta.json("suite", "run", path)["id"], regatta.json("suite", "run", path)["id"]
    regatta("master", "--stop")
    suites = regatta.home / "suites"
    # Killed before the request was removed; before the row was stored; one that may be resumed; a stranger's directory.
    (suites / done / "request.json").write_text("swordfish")
    (suites / "never-abcd").mkdir()
    (suites / "never-abcd" / "request.json").write_text("swordfish")
    (suites / "other").mkdir()
    (suites / failed / "request.json").write_text("swordfish")
    db = sqlite3.connect(regatta.home / "regatta.db")
    db.execute("UPDATE suite_entry SET state = 4 WHERE suite = (SELECT no FROM suite WHERE id = ?)", (failed,))
    db.commit()
    db.close()
    assert len(regatta.json("suite", "list")["suites"]) == 2
    assert {str(p.relative_to(suites)) for p in suites.glob("*/request.json")} == {f"{failed}/request.json"}
    assert not (suites / "never-abcd").exists() and (suites / "other").exists()


def test_an_experiment_that_failed_is_named_with_its_cause(regatta):
    regatta.job(TRAIN, "train.toml")
    done = regatta("suite", "run", suite_file(regatta, """
[suite]
job = "train.toml"
on_exit = ["echo $REGATTA_SUITE_STATE >state; test -s $REGATTA_SUITE_DIR/report.html", "exit 3", "exit 4", "touch last"]
[[experiments]]
name = "bad"
set = { command = ["sh", "-c", "echo samples_per_s=1; exit 9"] }
[[experiments]]
name = "later"
after = ["bad"]
[[experiments]]
name = "good"
"""), code=1)
    assert "3 runs: 1 succeeded, 1 failed, 1 skipped" in done.out
    assert "worker-0: exit code 9" in done.out
    assert "later #1 skipped: 'bad' has not succeeded" in done.out
    rows = {r["variant"]: r["n"] for r in regatta.json("suite", "report", code=1)["metrics"][0]["rows"]}
    assert rows == {"bad": 0, "later": 0, "good": 1}, "the figure of a run that failed counts"
    # on_exit always runs, all of it, and a command that fails is one line.
    assert "on_exit  'exit 3': exit code 3, and 1 more\n" in done.out
    assert (regatta.cwd / "state").read_text() == "failed\n"
    assert (regatta.cwd / "last").exists()


def test_bad_suite_files_are_refused_with_their_lines(regatta):
    regatta.job(TRAIN.replace('env = {', 'secrets = ["PIN"]\nenv = { PIN = "0",'), "train.toml")
    for text, line in [
            ("[suite]\njob='train.toml'\n[matrix]\n'roles.x.cuont'=[1]\n", "suite.toml:4:1: matrix: "),
            ("[suite]\njob='train.toml'\n[matrix]\n" + "".join(f"'env.A{i}'={list(range(10))}\n" for i in range(5)),
             "suite.toml:3:1: the matrix has 100000 variants: at most 10000 in one suite"),
            ("[suite]\njob='train.toml'\n[[experiments]]\nname='a'\nafter='b'\n[[experiments]]\nname='b'\nafter='a'\n",
             "experiments wait for each other: a -> b -> a"),
            ("[suite]\njob='train.toml'\n[matrix]\ncount=[1,-1]\n",
             "suite.toml:4:10: variant count=-1: count: expected a whole number from 1 to 10000, "),
            ("[suite]\njob='train.toml'\n[matrix]\n'env.PIN'=['1234','4321']\n",
             "suite.toml:4:12: 'env.PIN' is a secret of train.toml, and values of variants are shown"),
            ("[suite]\njob='train.toml'\n[matrix]\nenv=[{PIN='1234'},{BATCH='1'}]\n",
             "suite.toml:4:6: 'env' has a secret of train.toml, and values of variants are shown"),
            ("[suite]\njob='train.toml'\n[matrix]\nenv=[{BATCH='1'},{MY_TOKEN='hush'}]\n",
             "suite.toml:4:1: matrix: 'env' has a secret, and values of variants are shown: leave it in the job file"),
            ("[[experiments]]\nname='a'\njob='train.toml'\nset={roles={worker={env={A_KEY='hush'}}}}\n",
             "suite.toml:4:6: set: 'roles' has a secret, and values of variants are shown"),
            ("[suite]\njob='nothing.toml'\n", "nothing.toml' does not exist"),
            ("[suite\n", "suite.toml:1:")]:
        for action in "plan", "run":
            done = regatta("suite", action, suite_file(regatta, text), code=None)
            assert done.returncode in (2, 3) and line in done.err, done.err
            assert len(done.err.splitlines()) == 1, done.err
    assert regatta("suite", "run", "missing.toml", code=3).err == "regatta: suite file 'missing.toml' does not exist\n"
    assert regatta("suite", "status", code=3).err.startswith("regatta: there are no suites")
    assert regatta("suite", "status", "x", code=3).err == "regatta: no suite 'x'\n"
    assert regatta("suite", "cancel", code=2)
    for action in "status", "report", "resume", "cancel":
        assert regatta("suite", action, "", code=2).err == "regatta: the name of a suite is empty\n"
    assert regatta("suite", "cancel", "x", "--failed", code=2).err == "regatta: suite cancel: --failed does not go with it\n"
    assert regatta("suite", "list", "--tag", "x", code=2).err == "regatta: suite list: --tag does not go with it\n"
    assert not (regatta.home / "suites").exists()


def test_plan_says_how_many_runs_and_what_they_can_show(regatta):
    regatta.job(TRAIN, "train.toml")
    path = suite_file(regatta, SCALING.replace("repeats = 2", "repeats = 5"))
    plan = regatta("suite", "plan", path).out
    assert "4 variants, 5 repeats: 20 runs, 2 at a time, interleaved" in plan
    assert "5 repeats see" in plan and "would see" in plan
    assert not regatta.home.exists()  # a plan starts no master
    regatta("run", "train.toml", "--repeat", 4)
    plan = regatta.json("suite", "plan", path)
    assert plan["runs"] == 20 and plan["about_ms"] > 0


def test_plan_takes_the_scatter_within_variants_and_counts_the_tests(regatta):
    regatta.job(TRAIN, "train.toml")
    path = suite_file(regatta, SCALING)
    first = regatta.json("suite", "plan", path)
    # One variant has a baseline: count=2,BATCH=1.  Two values of two repeats each cannot show anything.
    assert first["tests"] == 1 and first["scatter"] is None and first["sees"] is None
    regatta("suite", "run", path)
    # The same figure in every repeat: other variants, with other figures, do not count as scatter.
    assert regatta.json("suite", "plan", path)["scatter"] is None
    regatta.job(TRAIN.replace("+ BATCH", "+ BATCH + $$ % 2"), "train.toml")
    regatta("suite", "run", suite_file(regatta, SCALING.replace("repeats = 2", "repeats = 8"), "more.toml"), code=0)
    assert 0 < regatta.json("suite", "plan", path)["scatter"] < 0.02

    many = SCALING.replace("count = [1, 2]", f"count = {list(range(1, 12))}").replace("repeats = 2", "repeats = 5")
    plan = regatta.json("suite", "plan", suite_file(regatta, many, "many.toml"))
    # 5 against 5 runs have no p-value below 0.0079, and 19 tests need 0.0026: the report could not show anything.
    assert plan["tests"] == 19 and plan["sees"] is None
    said = regatta("suite", "plan", "many.toml").out
    assert "5 repeats: too few for a test; " in said and " would see 20 %, in 19 tests" in said


def test_plan_takes_what_succeeded_with_the_same_parameters(regatta):
    job = regatta.job('name = "p"\ncommand = ["sh", "-c", "sleep $S; echo x=${params.lr}; exit $CODE"]\nparams = { lr = 1 }\n'
                      'metrics = { x = "x=([0-9]+)", y = "y=([0-9]+)" }\nenv = { CODE = "0", S = "0" }\n', "p.toml")
    path = suite_file(regatta, "[suite]\njob = 'p.toml'\nrepeats = 8\n[matrix]\n'params.lr' = [1, 2]\n"
                               "[report]\nbaseline = { 'params.lr' = 1 }\nmetric = ['x', 'y']\n")
    regatta("run", job, "--set", 'env.CODE="1"', code=1)
    plan = regatta.json("suite", "plan", path)
    assert plan["about_ms"] is None and plan["tests"] == 2  # one variant against the other, in two metrics
    for lr in 1, 1, 2, 2:
        regatta("run", job, "--set", f"params.lr={lr}")
    assert regatta.json("suite", "plan", path)["scatter"] is None  # 1 and 2 are the values of two variants
    regatta("run", job, "--set", 'env.S="1"')  # so that the mean is no matter of milliseconds
    alone, four = (next(line for line in regatta("suite", "plan", suite_file(regatta, text)).out.splitlines() if line.startswith("time "))
                   for text in ((regatta.cwd / "suite.toml").read_text(),
                                (regatta.cwd / "suite.toml").read_text().replace("repeats", "parallel = 4\nrepeats")))
    assert "about " in alone and alone != four


def test_help_says_what_an_interrupt_does(regatta):
    said = " ".join(regatta("suite", "--help").out.split())
    assert "Ctrl-C cancels the suite" in said and "interrupted" not in said


SLEEPS = """
name = "sleeps"
[suite]
job = "job.toml"
parallel = 2
[matrix]
"env.N" = ["1", "2", "3", "4"]
"""


def test_a_cancelled_suite_is_resumed_where_it_stood(regatta):
    regatta.job('command = ["sh", "-c", "trap : TERM; touch trap.$N; until [ -e go.$N ]; do sleep 0.02; done"]\n[timeouts]\ngrace = "1h"\n')
    (regatta.cwd / "go.1").touch()
    suite = regatta("suite", "run", "-d", suite_file(regatta, SLEEPS)).out.strip()

    def states():
        return [v["runs"][0]["state"] for v in regatta.json("suite", "status", suite)["variants"]]
    wait_for(lambda: states() == ["succeeded", "running", "running", "waiting"] and
             all((regatta.cwd / f"trap.{n}").exists() for n in (2, 3)), what="the second and third run")
    assert regatta("suite", "cancel", suite).out == f"{suite} is being cancelled\n"
    assert f"suite {suite} is stopping: " in regatta("suite", "resume", "-d", suite, code=2).err
    assert regatta("suite", "cancel", "--now", suite).out == f"{suite} is being cancelled\n"
    ended = wait_suite(regatta, suite)
    assert ended["state"] == "cancelled" and ended["exit_code"] == 7
    assert states() == ["succeeded", "cancelled", "cancelled", "waiting"]
    first = ended["variants"][0]["runs"][0]["run"]
    for n in 2, 3, 4:
        (regatta.cwd / f"go.{n}").touch()
    done = regatta.json("suite", "resume", suite)
    assert done["state"] == "succeeded" and states() == ["succeeded"] * 4
    assert done["variants"][0]["runs"][0]["run"] == first
    assert [v["runs"][0]["attempt"] for v in done["variants"]] == [1, 2, 2, 1]
    assert regatta("suite", "resume", suite, "--failed", code=None).returncode != 0  # there is nothing to do
    assert len(regatta.json("ps", "--all")) == 6


def test_a_failed_variant_is_tried_again_when_asked_for(regatta):
    regatta.job('command = ["sh", "-c", "test -e there"]\n')
    done = regatta.json("suite", "run", suite_file(regatta, "[suite]\njob = 'job.toml'\n"), code=1)
    assert "there is nothing to resume; --failed starts" in regatta("suite", "resume", done["id"], code=None).err
    (regatta.cwd / "there").touch()
    assert regatta.json("suite", "resume", "--failed", done["id"])["state"] == "succeeded"


def test_an_interrupt_cancels_the_suite(regatta):
    regatta.job('command = ["sleep", "60"]\n')
    child = regatta.start("suite", "run", suite_file(regatta, SLEEPS))
    wait_for(lambda: [r for r in regatta.json("ps") if r["state"] == "running"], what="a run")
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 7, err
    assert b"cancelling the suite" in err and b"cancelled" in out


def test_an_interrupt_before_the_suite_is_shown_cancels_it(regatta):
    regatta.job('command = ["sleep", "60"]\n')
    path = suite_file(regatta, SLEEPS)
    regatta("ps")  # a master is there
    master, = regatta.pids("master")
    os.kill(master, signal.SIGSTOP)
    try:
        child = regatta.start("suite", "run", path)
        wait_for(lambda: waits_for_answer(child.pid), what="the submission")
        child.send_signal(signal.SIGINT)
    finally:
        os.kill(master, signal.SIGCONT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 7 and b"cancelling the suite" in err, err
    assert regatta.json("suite", "status")["state"] == "cancelled"


@pytest.mark.parametrize("left", [None, "{}"])
def test_a_suite_whose_submission_was_lost_ends_and_says_so(regatta, left):
    regatta.job('command = ["sh", "-c", "until [ -e go ]; do sleep 0.02; done"]\n')
    text = SLEEPS.replace("parallel = 2\n", 'parallel = 2\non_exit = ["touch closed"]\n')
    suite = regatta("suite", "run", "-d", suite_file(regatta, text)).out.strip()
    wait_for(lambda: len([r for r in regatta.json("ps") if r["state"] == "running"]) == 2, what="two runs")
    master, = regatta.pids("master")
    os.kill(master, signal.SIGKILL)
    request = regatta.home / "suites" / suite / "request.json"
    request.unlink()
    if left:
        request.write_text(left)
    (regatta.cwd / "go").touch()
    ended = wait_suite(regatta, suite)
    runs = [v["runs"][0] for v in ended["variants"]]
    assert ended["state"] == "failed" and [r["state"] for r in runs] == ["succeeded"] * 2 + ["failed"] * 2
    assert all("what was submitted is not there any more" in r["cause"] for r in runs[2:])
    assert (regatta.cwd / "closed").exists()
    assert "request.json" in regatta("suite", "resume", "--failed", suite, code=None).err


def test_on_exit_is_not_cancelled_and_that_is_said(regatta):
    regatta.job('command = ["true"]\n')
    go = regatta.cwd / "go"
    path = suite_file(regatta, f"[suite]\njob = 'job.toml'\non_exit = ['while ! test -e {go}; do sleep 0.02; done']\n")
    child = regatta.start("suite", "run", path)
    wait_for(lambda: regatta.json("suite", "list")["suites"] and regatta.json("suite", "status")["state"] == "closing",
             what="on_exit")
    suite = regatta.json("suite", "status")["id"]
    text = "all runs have ended, and on_exit is not cancelled"
    assert regatta("suite", "cancel", suite).out == f"{suite}: {text}\n"
    child.send_signal(signal.SIGINT)
    assert text.encode() in child.stderr.readline() + child.stderr.readline()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 7 and b"goes on" in err
    go.touch()
    assert wait_suite(regatta, suite)["state"] == "succeeded"


def test_a_second_interrupt_kills_and_a_closed_terminal_does_nothing(regatta):
    stubborn = regatta.cwd / "stubborn"
    regatta.job(f"""command = ["sh", "-c", "trap : TERM; touch {stubborn}; while :; do sleep 0.05; done"]
timeouts = {{ grace = "10m" }}
""")
    child = regatta.start("suite", "run", suite_file(regatta, SLEEPS.replace("parallel = 2", "")),
                          preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))  # not as nohup has left it
    wait_for(stubborn.exists, what="a run")
    child.send_signal(signal.SIGHUP)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0 and b"goes on: 'regatta suite status " in err and not out
    suite = regatta.json("suite", "status")
    assert suite["state"] == "running" and suite["counts"]["running"] == 1
    regatta("suite", "cancel", suite["id"])
    assert regatta.json("suite", "status")["exit_code"] is None
    regatta("suite", "cancel", suite["id"], "--now")
    wait_suite(regatta, suite["id"])

    stubborn.unlink()
    child = regatta.start("suite", "resume", suite["id"])
    wait_for(stubborn.exists, what="the run again")
    child.send_signal(signal.SIGINT)
    wait_for(lambda: regatta.json("suite", "status")["state"] == "stopping", what="the first interrupt")
    assert child.poll() is None
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 7 and b"killing the active runs" in err


def kill_random(regatta, rng, first):
    kinds = ["master", "node-agent", "shim", "forkserver"]
    rng.shuffle(kinds)
    for kind in ["master"] if first else kinds:
        pids = regatta.pids(kind)
        if pids:
            try:
                os.kill(rng.choice(pids), signal.SIGKILL)
            except ProcessLookupError:
                pass
            return kind
    return None


@pytest.mark.parametrize("seed", range(3))
def test_kills_at_random_moments_neither_lose_nor_repeat_a_variant(regatta, seed):
    """Of the client and the master at any moment; of everything else that belongs to a run."""
    rng = random.Random(seed)
    regatta.job('command = ["sh", "-c", "echo $REGATTA_RUN >>started.$N; sleep 0.05"]\n')
    path = suite_file(regatta, "[suite]\njob = 'job.toml'\nparallel = 3\n[matrix]\n'env.N' = "
                      f"{[str(i) for i in range(24)]}\n")
    suite = regatta("suite", "run", "-d", path).out.strip()
    deadline = time.monotonic() + 100
    kills = collections.Counter()
    while True:
        got = regatta.json("suite", "status", suite)
        if got["exit_code"] is not None:
            break
        assert time.monotonic() < deadline, got["counts"]
        if sum(kills.values()) < 12:
            kills[kill_random(regatta, rng, not kills)] += 1
        time.sleep(rng.random() * 0.2)
    assert len(got["variants"]) == 24
    runs = [r["run"] for _, r in entries(got)]
    assert len(set(runs)) == 24, "a variant has no run, or that of another"
    assert {r["id"] for r in regatta.json("ps", "--all")} == set(runs), "a variant has two runs"
    for variant in got["variants"]:
        assert variant["runs"][0]["state"] in ("succeeded", "failed"), variant
        assert variant["runs"][0]["attempt"] == 1
        begun = regatta.cwd / f"started.{variant['params']['env.N']}"
        assert not begun.exists() or len(begun.read_text().split()) == 1, "a job ran twice"
    assert kills["master"] > 0


def test_the_report_has_table_charts_scaling_and_tests(regatta):
    """Twice the nodes, twice the figure: the difference is tested, and is the speed-up."""
    regatta.job(TRAIN.replace("+ BATCH))", "+ BATCH + $$ % 7))"), "train.toml")
    done = regatta("suite", "run", suite_file(regatta, SCALING.replace("repeats = 2", "repeats = 6")))
    assert "samples_per_s (higher is better)" in done.out and "SPEED-UP" in done.out
    summary = regatta.json("suite", "report", "scaling")
    there = regatta.home / "suites" / summary["id"]
    assert summary == {**json.loads((there / "summary.json").read_text())}
    (metric,) = summary["metrics"]
    rows = {row["variant"]: row for row in metric["rows"]}
    assert rows["count=1,BATCH=1"]["baseline"] is None and rows["count=1,BATCH=1"]["n"] == 6
    two = rows["count=2,BATCH=1"]
    assert two["baseline"] == "count=1,BATCH=1" and two["verdict"] == "better" and two["p_holm"] < 0.05
    assert 85 < two["diff_pct"] < 110 and 1.85 < two["speedup"] < 2.1
    assert abs(two["efficiency"] - two["speedup"] / 2) < 1e-9
    table = list(csv.DictReader((there / "table.csv").open()))
    assert list(table[0]) == ["suite", "variant", "run", "repeat", "metric", "value", "count", "env.BATCH"]
    assert len(table) == 4 * 6 and {r["metric"] for r in table} == {"samples_per_s"}
    values = sorted(float(r["value"]) for r in table if r["variant"] == "count=2,BATCH=1")
    assert (values[2] + values[3]) / 2 == two["median"]
    page = (there / "report.html").read_text()
    assert page.count("<svg") == 2 and "samples_per_s over env.BATCH" in page and "speed-up" in page


def test_tests_are_corrected_over_the_whole_suite_and_scaling_is_within_a_value(regatta):
    """Three pairs and two metrics, every figure of one side above all of the other: the smallest p-value that there is,
    times six.  More nodes are held against fewer with the same other values, whichever way is better."""
    regatta.job("""
command = ["sh", "-c", "echo speed=$((V * WIDE * WORLD_SIZE + $$)) effort=$((V * WIDE * 12 / WORLD_SIZE + $$)) other=1"]
env = { V = "0", WIDE = "100000000" }
[metrics]
speed = 'speed=(?<value>[0-9]+)'
other = 'other=(?<value>[0-9]+)'
[metrics.effort]
pattern = 'effort=(?<value>[0-9]+)'
better = "lower"
""")
    summary = regatta.json("suite", "run", suite_file(regatta, """
[suite]
job = "job.toml"
repeats = 5
parallel = 4
[matrix]
count = [2, 4]
"env.V" = ["1", "2", "3"]
[report]
metric = ["speed", "effort"]
baseline = { count = 2 }
"""))
    assert summary["tests"] == 6 and [m["name"] for m in summary["metrics"]] == ["speed", "effort"]
    for metric, verdict, diff in zip(summary["metrics"], ("better", "better"), (100, -50)):
        rows = [row for row in metric["rows"] if row["baseline"]]
        assert [row["baseline"] for row in rows] == ["count=2,V=1", "count=2,V=2", "count=2,V=3"]
        for row in rows:
            assert abs(row["p_holm"] - 6 * 2 / 252) < 1e-9 and row["verdict"] == verdict
            assert abs(row["diff_pct"] - diff) < 1 and abs(row["speedup"] - 2) < 0.02 and abs(row["efficiency"] - 1) < 0.01
    page = (regatta.home / "suites" / summary["id"] / "report.html").read_text()
    for chart in ("speed over env.V", "effort over env.V", "speed over count", "effort over count"):
        assert chart in page, chart


def test_an_axis_may_be_what_is_uploaded(regatta, fleet):
    """To other machines: each variant has files of its own."""
    fleet.join("alpha")
    for name in "one", "two":
        (regatta.cwd / name).mkdir()
        (regatta.cwd / name / "word").write_text(name)
    for axis, keys in ('"params.from"', '[[data]]\nsrc = "${params.from}"\npath = "in"\n'), ('"source"', ""):
        regatta.job('engine = "hosts"\ncommand = ["sh", "-c", "cat in/word word; true"]\nparams = { from = "one" }\n' + keys)
        text = f'[suite]\njob = "job.toml"\n[matrix]\n{axis} = ["one", "two"]\n'
        suite = regatta.json("suite", "run", suite_file(regatta, text))
        logs = [regatta.log(v["runs"][0]["run"], "worker-0").decode() for v in suite["variants"]]
        assert logs == ["one", "two"], axis


def test_the_report_of_a_suite_without_metrics_has_the_time_that_its_jobs_ran(regatta):
    regatta.job('command = ["true"]\n')
    summary = regatta.json("suite", "run", suite_file(regatta, "[suite]\njob = 'job.toml'\nrepeats = 2\n"))
    assert [m["name"] for m in summary["metrics"]] == ["runtime_s"]
    # A run that was removed is missing in the next report, and nothing else is.
    first, second = (r["run"] for r in summary["variants"][0]["runs"])
    regatta("cleanup", first)
    left = regatta.json("suite", "report", summary["id"])
    assert left["metrics"][0]["rows"][0]["n"] == 1
    # When none is left, what the files of the report say is not lost.
    regatta("cleanup", second)
    assert regatta.json("suite", "report", summary["id"]) == left
    assert len((regatta.home / "suites" / summary["id"] / "table.csv").read_text().splitlines()) == 2


def test_the_example_is_a_suite(regatta):
    summary = regatta.json("suite", "run", ROOT / "examples" / "suite" / "scaling.toml")
    assert summary["counts"]["succeeded"] == 30 and summary["tests"] == 3


def test_suites_are_compared_variant_by_variant(regatta):
    """Twice the work of one variant, another value of the optimiser, one variant more."""
    regatta.job(TRAIN.replace("+ BATCH))", "+ BATCH * FACTOR + $$ % 7))").replace('BATCH = "0"', 'BATCH = "0", FACTOR = "1"'), "train.toml")
    text = """
name = "{name}"
[suite]
job = "train.toml"
repeats = 5
parallel = 2
[matrix]
"env.BATCH" = {batches}
"env.FACTOR" = ["{factor}"]
"""
    old = regatta.json("suite", "run", suite_file(regatta, text.format(name="old", batches=["100", "200"], factor=1)))["id"]
    new = regatta.json("suite", "run", suite_file(regatta, text.format(name="new", batches=["200", "100", "400"], factor=2)))["id"]
    got = regatta.json("compare", f"suite:{old}", f"suite:{new}")
    assert got["runs"] == [old, new] and got["tests"] == 2
    by = {m["variant"]: m for m in got["metrics"]}
    assert set(by) == {"BATCH=100,FACTOR=1", "BATCH=200,FACTOR=1"}
    assert {m["verdict"] for m in by.values()} == {"better"}
    assert 90 < by["BATCH=100,FACTOR=1"]["diff"] < 110 and 190 < by["BATCH=200,FACTOR=1"]["diff"] < 210
    assert f"parameter 'env.FACTOR' is 1 in {old}, is 2 in {new}" in got["notes"]
    assert f"only in {new}: BATCH=400,FACTOR=2" in got["notes"]
    # Their names are enough; the other way round it got worse.
    done = regatta("compare", new, old, code=1)
    assert "VARIANT" in done.out and done.out.count("worse") == 2 and "note: only in new-" in done.out
    run = regatta.json("suite", "status", old)["variants"][0]["runs"][0]["run"]
    assert "a suite can only be compared with suites" in regatta("compare", f"suite:{old}", run, code=2).err
    assert "no suite 'nothing'" in regatta("compare", f"suite:{old}", "suite:nothing", code=3).err
