"""A suite on Kubernetes has one master in the cluster: its runs share it, their results come back, and nothing is left."""
import json

import pytest

from cloud import Cloud
from cloud.conftest import client

from .cluster import wait_for
from .test_agentless import plain
from .test_master import apart, has_ended_there, kill_master, kill_master_there
from .test_tools import gc

SUITE = """name = "sweep"
[suite]
job = "job.toml"
repeats = 2
parallel = 2
on_exit = ["echo $REGATTA_SUITE_STATE >>said"]
[matrix]
"env.N" = ["1", "2"]
"""
MORE = """env = { N = "0" }
[output]
keep = "kept.txt"
[metrics.value]
pattern = 'value=(?<value>[0-9]+)'
"""


def job(script, more=MORE, **rest):
    return apart(["sh", "-c", script], count=1, more=more, **rest)


def start(user, text, suite=SUITE):
    user.job(text)
    user.job(suite, "suite.toml")
    return user("suite", "run", "-d", "suite.toml").stdout.strip()


def status(user, suite):
    return json.loads(user("suite", "status", suite, "--output", "json").stdout)


def runs_of(suite):
    return [run for variant in suite["variants"] for run in variant["runs"]]


def ends(user, suite, seconds=240):
    return wait_for(lambda: (s := status(user, suite))["exit_code"] is not None and s, f"the end of {suite}", seconds)


def running(user, suite, n=2):
    return wait_for(lambda: (up := [r["run"] for r in runs_of(status(user, suite)) if r["state"] == "running"]) and len(up) == n and up, "its runs", 120)


def masters(namespace):
    """The runs that have a master in the cluster."""
    return [pod["metadata"]["labels"]["regatta/run"] for pod in namespace.pods("regatta/role=regatta")]


def made_for(namespace, run):
    return any(pod["metadata"]["labels"]["regatta/run"] == run for pod in namespace.pods("regatta/role=worker"))


def log_of_master(user):
    return (user.directory / "home/master.log").read_text()[-4000:]


def test_one_master_serves_the_whole_suite_without_the_laptop(user, namespace, decoys):
    suite = start(user, job("echo value=$N; echo kept $N > kept.txt; sleep 3"))
    running(user, suite)
    kill_master(user)
    assert masters(namespace) == [suite]
    wait_for(lambda: made_for(namespace, f"{suite}-4"), "the last run, without a client", 120)
    wait_for(lambda: has_ended_there(namespace, suite), "the end of the suite there", 120)
    assert masters(namespace) == [suite]
    ended = ends(user, suite)
    assert (ended["state"], ended["exit_code"]) == ("succeeded", 0), log_of_master(user)
    assert sorted(r["run"] for r in runs_of(ended)) == [f"{suite}-{i}" for i in (1, 2, 3, 4)]
    namespace.nothing_left()
    for variant in ended["variants"]:
        n = variant["params"]["env.N"] if "params" in variant else variant["name"][-1]
        for r in variant["runs"]:
            assert user("logs", r["run"]).stdout == f"value={n}\n"
            home = user.directory / "home/runs" / r["run"]
            assert [path.read_text() for path in (home / "outputs").glob("**/kept.txt")] == [f"kept {n}\n"]
            assert not (home / ".fetched").exists()
    table = (user.directory / "home/suites" / suite / "table.csv").read_text()
    assert table.count(f"{suite},") == 4
    assert not list((user.directory / "home/contexts").iterdir())


@pytest.mark.long
def test_a_failure_a_cancel_and_what_is_resumed(user, namespace):
    """What has ended stays, and goes to no other master; the last one is lost while a run goes on."""
    script = "echo value=$N; case $REGATTA_RUN.$N in *.1) ;; *-r2-*.3|*-r3-*.2) sleep 2;; *.2) exit 3;; *) sleep 600;; esac"
    suite = start(user, job(script), SUITE.replace("repeats = 2\n", "").replace('"2"]', '"2", "3"]'))
    wait_for(lambda: [r["state"] for r in runs_of(status(user, suite))] == ["succeeded", "failed", "running"], "its runs", 120)
    wait_for(lambda: user("logs", f"{suite}-3", code=None).stdout == "value=3\n", "its output, from the master that has it")
    assert masters(namespace) == [suite]
    assert set(gc(user).values()) == {"in use"}
    assert made_for(namespace, f"{suite}-3")
    user("suite", "cancel", suite)
    ended = ends(user, suite)
    assert (ended["state"], ended["exit_code"]) == ("cancelled", 7)
    assert [r["state"] for r in runs_of(ended)] == ["succeeded", "failed", "cancelled"]
    assert runs_of(ended)[1]["cause"] == "worker-0: exit code 3"
    namespace.nothing_left()

    user("suite", "resume", suite, "-d")
    running(user, suite, 1)
    assert masters(namespace) == [f"{suite}-r2"]
    assert kill_master_there(namespace, f"{suite}-r2")  # it is started again in its pod
    ended = ends(user, suite)
    assert (ended["state"], [r["state"] for r in runs_of(ended)]) == ("failed", ["succeeded", "failed", "succeeded"]), log_of_master(user)
    namespace.nothing_left()

    user("suite", "resume", suite, "--failed", "-d")
    ended = ends(user, suite)
    assert (ended["state"], ended["exit_code"]) == ("succeeded", 0), log_of_master(user)
    assert [r["run"] for r in runs_of(ended)] == [f"{suite}-1", f"{suite}-r3-2", f"{suite}-r2-3"]
    assert [user("logs", r["run"]).stdout for r in runs_of(ended)] == [f"value={i}\n" for i in (1, 2, 3)]
    assert user("logs", f"{suite}-2").stdout == "value=2\n"
    assert (user.directory / "said").read_text() == "failed\nsucceeded\n"  # of both resumes: the results are here
    assert (user.directory / "home/suites" / suite / "table.csv").read_text().count(f"{suite},") == 3
    namespace.nothing_left()


@pytest.mark.long
def test_runs_whose_master_was_lost_are_removed_and_run_again(user, namespace):
    script = "echo value=$N; case $REGATTA_RUN.$N in *-r2-*|*.1) ;; *) sleep 600;; esac"
    suite = start(user, job(script), SUITE.replace("repeats = 2\n", ""))
    wait_for(lambda: [r["state"] for r in runs_of(status(user, suite))] == ["succeeded", "running"], "its runs", 120)
    namespace.kubectl("delete", "job", f"{suite}-regatta")
    ended = ends(user, suite)
    assert (ended["state"], [r["state"] for r in runs_of(ended)]) == ("failed", ["succeeded", "failed"]), log_of_master(user)
    assert "master has gone" in ended["cause"], ended["cause"]
    namespace.nothing_left()
    user("suite", "resume", suite, "--failed", "-d")
    ended = ends(user, suite)
    assert (ended["state"], runs_of(ended)[1]["run"]) == ("succeeded", f"{suite}-r2-2"), log_of_master(user)
    namespace.nothing_left()


STORED = MORE.replace("[output]\n", "[output]\ns3 = \"s3://results-of-pods/runs\"\n")


def copied(s3):
    """The runs of which a complete copy is in the bucket."""
    found = s3.list_objects_v2(Bucket="results-of-pods", Prefix="runs/").get("Contents", [])
    return sorted(o["Key"].split("/")[1] for o in found if o["Key"].count("/") == 2 and o["Key"].endswith("/index.json"))


@pytest.mark.long
def test_results_of_a_suite_go_to_a_bucket_without_a_client(user, namespace):
    with Cloud(host=namespace.cluster.at.here) as cloud:
        user.env.update(cloud.env())
        s3 = client(cloud, "s3", signature_version="s3v4")
        s3.create_bucket(Bucket="results-of-pods")
        suite = start(user, job("echo value=$N; echo kept $N > kept.txt; sleep 3", STORED))
        running(user, suite)
        kill_master(user)
        names = [f"{suite}-{i}" for i in (1, 2, 3, 4)]
        wait_for(lambda: copied(s3) == sorted([suite, *names]), "the copies", 240)
        namespace.nothing_left()  # its master has removed everything of the suite, itself at last
        ended = ends(user, suite)
        assert (ended["state"], ended["exit_code"]) == ("succeeded", 0), log_of_master(user)
        assert sorted(user("logs", name).stdout for name in names) == ["value=1\n"] * 2 + ["value=2\n"] * 2


@pytest.mark.long
def test_results_of_a_suite_that_cannot_be_copied_are_fetched(user, namespace):
    with Cloud(host=namespace.cluster.at.here) as cloud:
        reader = cloud.user("reader", {"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Action": ["s3:GetBucketLocation", "s3:ListBucket", "s3:GetObject"], "Resource": "*"}]})
        user.env.update(cloud.env(reader))
        s3 = client(cloud, "s3", signature_version="s3v4")
        s3.create_bucket(Bucket="results-of-pods")
        suite = start(user, job("echo value=$N; echo kept $N > kept.txt", STORED))
        ended = ends(user, suite)
        assert (ended["state"], ended["exit_code"]) == ("succeeded", 0), log_of_master(user)
        namespace.nothing_left()
        assert copied(s3) == []
        assert sorted(user("logs", f"{suite}-{i}").stdout for i in (1, 2, 3, 4)) == ["value=1\n"] * 2 + ["value=2\n"] * 2
        assert "not copied, and fetched from its master" in user("events", suite).stdout


@pytest.mark.long
@pytest.mark.parametrize("table", ["", "as = \"pytorchjob\""])
def test_runs_without_the_agent_share_a_master_too(training_operator, user, namespace, table):
    text = plain(["sh", "-c", "echo value=$N; sleep 1"], "env = { N = \"0\" }", table, count=1).replace('master = "here"\n', "")
    suite = start(user, text, SUITE.replace("repeats = 2\n", "").replace('"2"]', '"2", "3"]'))
    running(user, suite)
    assert masters(namespace) == [suite]
    ended = ends(user, suite)
    assert (ended["state"], ended["exit_code"]) == ("succeeded", 0), log_of_master(user)
    namespace.nothing_left()
    logs = [user("logs", r["run"]).stdout for r in runs_of(ended)]
    assert logs == [f"value={i}\n" for i in (1, 2, 3)]
