"""A run that is handed to a master on an instance of its own: from the caller to that master, to the nodes, and to nothing.

That the laptop may be closed meanwhile is among the tests that wait long, in test_crash_rounds.py."""
import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import subprocess

import pytest

from . import Cloud, network
from .conftest import client, wait_for
from .test_ec2_boot import QUICKSTART, add_programs, consoles, look_of
from .test_ec2_run import BINARY, User
from .test_inputs import archive

pytestmark = pytest.mark.skipif(bool(network.missing()), reason=network.missing() or "-")
HANDED = QUICKSTART.replace('master = "here"\n', "").replace("count = 2", "count = 3").replace("count = 1", "count = 2")
ONE = """name = "alone"
engine = "aws.ec2"
max_runtime = "10m"
instance_type = "c5.large"
command = ["sh", "-c", "echo begun; sleep {seconds}; echo ended"]
"""
# Every kind of input, and results for a bucket of the user's own.
FORMS = """name = "forms"
engine = "aws.ec2"
max_runtime = "10m"
instance_type = "c5.large"
count = 2
image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/train:1"
registry = "ecr"
source = "docker:///app"
setup = "echo set-up >made"
command = ["sh", "-c", "cat greeting made x/in; ls parts; sleep 600"]
output.s3 = "s3://of-the-user/results"
[[data]]
src = "s3://of-the-user/parts/"
shard = true
[[data]]
src = "s3://of-the-user/x.tar.gz"
unpack = true
"""
GONE = 4  # enum res_state
STAYS = ("bucket", "object", "role", "instance-profile")  # of the install, and the results


@pytest.fixture(scope="module")
def real():
    with Cloud(boot="real") as cloud:
        cloud.add_decoys()
        yield cloud
        cloud.check_decoys()
        assert not cloud.broken, "\n".join(cloud.broken)


@pytest.fixture
def user(real, tmp_path):
    made = User(tmp_path, real)
    add_programs(tmp_path)
    yield made
    made.close()


def said(user, cloud):
    return f"{(user.directory / 'home/master.log').read_text(encoding='utf-8')[-3000:]}\n{consoles(cloud)}"


def here(user, run):
    """The run as the own master has it."""
    return json.loads(user("status", "--master", "local", "--output", "json", run).stdout)


def left_of(cloud, run):
    return {key: facts for key, facts in cloud.left(*STAYS).items() if facts.get("tags", {}).get("regatta:run") == run}


def launched_for(cloud, run):
    return {number for number, facts in cloud.launched().items() if facts["tags"].get("regatta:run") == run}


def ends_here(user, cloud, run, seconds=120):
    ended = wait_for(lambda: (s := here(user, run))["exit_code"] is not None and s, seconds, f"the end of {run}")
    assert not left_of(cloud, run), said(user, cloud)
    return ended


def kill_own_master(user):
    """As if the laptop were closed."""
    pid = int(pathlib.Path(user.directory / "home/lock").read_text(encoding="ascii"))
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not pathlib.Path(f"/proc/{pid}").exists() or "Z" in pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2], 10, "its end")


def is_taken_in(user, run):
    return "taken from s3://" in user("events", run).stdout


def test_the_quickstart_goes_through_a_master_instance_and_nothing_is_left(real, user, tmp_path):
    (tmp_path / "job.toml").write_text(HANDED)
    shown = subprocess.Popen([BINARY, "run", "job.toml"], cwd=tmp_path, env=user.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    run = wait_for(lambda: (runs := json.loads(user("ps", "--output", "json").stdout)) and runs[0]["id"], 60, "the run")
    made = wait_for(lambda: len(found := launched_for(real, run)) == 6 and found, 120, "six instances")
    look_of(client(real, "ec2"), run, made)
    # Commands go to the master that has the run, without being told.
    assert len(json.loads(user("status", run, "--output", "json").stdout)["nodes"]) == 5
    assert "https://" in user("ps").stdout
    out, _ = shown.communicate(timeout=150)
    assert shown.returncode == 0, f"{out}\n{said(user, real)}"
    assert ": running\n" not in out.partition(": cleaning\n")[2], out
    assert "succeeded" in out and str(tmp_path / "home/runs" / run) in out, out
    assert not left_of(real, run), said(user, real)
    assert not list((tmp_path / "home/contexts").iterdir())
    assert is_taken_in(user, run)  # `run` has waited for it
    assert [role["name"] for role in json.loads(user("cost", run, "--output", "json").stdout)["roles"]] == ["master", "trainer", "pserver"]
    loss = json.loads(user("metrics", run, "loss", "--output", "json").stdout)["metrics"]["loss"]["all"]
    assert loss["last"] < loss["first"] / 10
    assert "step 8000/8000" in user("logs", run, "trainer-0").stdout
    assert len(list((tmp_path / "home/runs" / run / "outputs").glob("**/model-*"))) == 3
    user("master", "--stop")
    with contextlib.closing(sqlite3.connect(tmp_path / "home/regatta.db")) as db:
        ledger = db.execute("SELECT kind, state FROM resource WHERE kind LIKE 'ec2.%'").fetchall()
    assert {kind for kind, _ in ledger} == {"ec2.security_group", "ec2.subnet", "ec2.master", "ec2.instance"}
    assert {state for _, state in ledger} == {GONE}


def put_inputs(s3):
    s3.create_bucket(Bucket="of-the-user")
    for name, body in (("parts/p0", b"0"), ("parts/p1", b"1"), ("parts/p2", b"2"), ("x.tar.gz", archive(**{"in": b"unpacked\n"}))):
        s3.put_object(Bucket="of-the-user", Key=name, Body=body)


def test_a_cancel_reaches_the_master_that_has_the_run(real, user):
    """Its inputs and results are in a bucket of the user's own, which the role of that master may read and write."""
    s3 = client(real, "s3")
    put_inputs(s3)
    run = user.submit(FORMS)
    wait_for(lambda: here(user, run)["master_url"], 90, "the hand-over")
    wait_for(lambda: [n["state"] for n in json.loads(user("status", run, "--output", "json").stdout)["nodes"]] == ["running"] * 2, 60, "the nodes")
    for node, parts in (("worker-0", ["p0", "p2"]), ("worker-1", ["p1"])):
        wanted = ["greeting of /app/.", "set-up", "unpacked", *parts]
        wait_for(lambda node=node, wanted=wanted: user("logs", run, node).stdout.splitlines()[-len(wanted):] == wanted, 30, f"the output of {node}")
    assert user("exec", run, "worker-0", "--", "hostname").stdout.startswith("ip-")
    user("kill", run)
    assert ends_here(user, real, run)["verdict"] == "cancelled"
    kept = {o["Key"].split("/", 2)[2] for o in s3.list_objects_v2(Bucket="of-the-user", Prefix=f"results/{run}/")["Contents"]}
    assert {"index.json", "summary.json", "job.toml", "logs/worker-0.log"} <= kept
    wait_for(lambda: is_taken_in(user, run), 60, "the results")


def test_a_cancel_before_the_master_has_booted_removes_it(real, user):
    run = user.submit(ONE.format(seconds=600))
    wait_for(lambda: len(launched_for(real, run)) == 1, 30, "the machine of the master")
    user("kill", run)
    assert ends_here(user, real, run)["verdict"] == "cancelled"
    assert len(launched_for(real, run)) == 1
