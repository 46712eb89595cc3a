"""A suite on EC2 has one master, on an instance of its own: its runs share it, and nothing is left."""
import json

import pytest

from . import Cloud, machine, network
from .conftest import client, wait_for
from .test_ec2_run import User
from .test_handover import STAYS, kill_own_master

pytestmark = pytest.mark.skipif(bool(network.missing()), reason=network.missing() or "-")
JOB = """name = "point"
engine = "aws.ec2"
max_runtime = "10m"
instance_type = "c5.large"
command = ["sh", "-c", "echo value=$N; sleep $SECONDS_; exit $CODE"]
env = { N = "0", SECONDS_ = "0", CODE = "0" }
[metrics.value]
pattern = 'value=(?<value>[0-9]+)'
"""
SUITE = """name = "sweep"
[suite]
job = "job.toml"
parallel = 2
on_exit = ["echo $REGATTA_SUITE_STATE >>said"]
[matrix]
"env.N" = ["1", "2", "3"]
"""


@pytest.fixture(scope="module")
def quick():
    """A cloud whose machines run their user data at once: real masters and agents, without a boot."""
    with Cloud(boot=machine.stand_in(machine.run_user_data)) as cloud:
        cloud.add_decoys()
        yield cloud
        cloud.check_decoys()
        assert not cloud.broken, "\n".join(cloud.broken)


@pytest.fixture
def user(quick, tmp_path):
    made = User(tmp_path, quick)
    yield made
    made.close()


def launched_for(cloud, suite):
    """The numbers of instances by the run that has them."""
    runs = {}
    for facts in cloud.launched().values():
        run = facts["tags"].get("regatta:run", "")
        if run == suite or run.startswith(f"{suite}-"):
            runs[run] = runs.get(run, 0) + 1
    return runs


def start(user, suite=SUITE, job=JOB):
    (user.directory / "job.toml").write_text(job)
    (user.directory / "suite.toml").write_text(suite)
    return user("suite", "run", "-d", "suite.toml").stdout.strip()


def status(user, suite):
    return json.loads(user("suite", "status", suite, "--output", "json").stdout)


def ends(user, suite, seconds=150):
    return wait_for(lambda: (s := status(user, suite))["exit_code"] is not None and s, seconds, f"the end of {suite}")


def runs_of(suite):
    return [run for variant in suite["variants"] for run in variant["runs"]]


def test_one_master_serves_the_whole_suite_and_its_results_come_back(quick, user):
    suite = start(user)
    assert [s["id"] for s in json.loads(user("suite", "list", "--output", "json").stdout)["suites"]] == [suite]
    wait_for(lambda: any(r["state"] == "running" for r in runs_of(status(user, suite))), 120, "a run")
    ended = ends(user, suite)
    assert (ended["state"], ended["exit_code"]) == ("succeeded", 0), (user.directory / "home/master.log").read_text()[-4000:]
    assert launched_for(quick, suite) == {suite: 1, f"{suite}-1": 1, f"{suite}-2": 1, f"{suite}-3": 1}
    assert not quick.left(*STAYS)
    assert [r["run"] for r in runs_of(ended)] == [f"{suite}-{i}" for i in (1, 2, 3)]
    for i in (1, 2, 3):
        assert user("logs", f"{suite}-{i}").stdout == f"value={i}\n"
    table = (user.directory / "home/suites" / suite / "table.csv").read_text()
    assert table.count(f"{suite},") == 3
    assert not list((user.directory / "home/contexts").iterdir())


def test_the_client_that_stays_runs_on_exit_and_the_exit_code_is_the_suites(quick, user):
    failing = JOB.replace('CODE = "0"', 'CODE = "3"')
    (user.directory / "job.toml").write_text(failing)
    (user.directory / "suite.toml").write_text(SUITE.replace('["1", "2", "3"]', '["1"]'))
    done = user("suite", "run", "suite.toml", code=1)
    assert "on_exit has run here" in done.stderr and (user.directory / "said").read_text() == "failed\n", done.stderr
    suite = json.loads(user("suite", "list", "--output", "json").stdout)["suites"][0]["id"]
    assert runs_of(status(user, suite))[0]["cause"] == "worker-0: exit code 3"
    assert "1 of 1 runs have not succeeded" in user("status", suite, code=None).stdout
    assert not quick.left(*STAYS)


def runs_there(user, suite, n=2):
    return wait_for(lambda: (up := [r["run"] for r in runs_of(status(user, suite)) if r["state"] == "running"]) and len(up) == n and up, 120, "its runs")


def test_a_cancel_reaches_the_runs_and_ends_the_machine(quick, user):
    suite = start(user, job=JOB.replace('SECONDS_ = "0"', 'SECONDS_ = "600"'))
    up = runs_there(user, suite)
    wait_for(lambda: user("logs", up[0]).stdout.startswith("value="), 60, "its output, from the master that has it")
    user("suite", "cancel", suite)
    ended = ends(user, suite)
    assert (ended["state"], ended["exit_code"]) == ("cancelled", 7)
    assert [r["state"] for r in runs_of(ended)] == ["cancelled", "cancelled", "waiting"]
    assert sum(launched_for(quick, suite).values()) == 3 and not quick.left(*STAYS)


def gone(cloud, suite):
    return all(facts["state"] == "terminated" for facts in cloud.launched().values() if facts["tags"].get("regatta:run", "").startswith(suite))


def test_the_suite_goes_on_without_the_laptop_and_its_machine_ends_by_itself(quick, user):
    suite = start(user, job=JOB.replace('SECONDS_ = "0"', 'SECONDS_ = "4"'))
    runs_there(user, suite)
    kill_own_master(user)
    wait_for(lambda: len(launched_for(quick, suite)) == 4 and gone(quick, suite), 240, "the end of all machines")
    ended = ends(user, suite)
    assert (ended["state"], [r["state"] for r in runs_of(ended)]) == ("succeeded", ["succeeded"] * 3)
    assert [user("logs", r["run"]).stdout for r in runs_of(ended)] == [f"value={i}\n" for i in (1, 2, 3)]
    assert not quick.left(*STAYS)


def test_what_a_lost_master_made_is_removed_and_another_one_goes_on_when_the_suite_is_resumed(quick, user):
    """What has succeeded does not run again, and on_exit runs here."""
    ready = user.directory / "ready"
    job = JOB.replace("sleep $SECONDS_", "[ -e $SECONDS_ ] || [ $N = 1 ] || sleep 600").replace('SECONDS_ = "0"', f'SECONDS_ = "{ready}"')
    suite = start(user, SUITE.replace('"3"]', '"3", "4"]'), job)
    wait_for(lambda: [r["state"] for r in runs_of(status(user, suite))] == ["succeeded", "running", "running", "waiting"], 150, "its runs")
    machines = {facts["tags"].get("regatta:run"): number for number, facts in quick.launched().items()}
    client(quick, "ec2").terminate_instances(InstanceIds=[machines[suite]])
    ended = ends(user, suite, 300)
    assert (ended["state"], ended["exit_code"]) == ("failed", 1)
    assert "master has gone" in ended["cause"], ended["cause"]
    assert [r["state"] for r in runs_of(ended)] == ["succeeded", "failed", "failed", "waiting"]
    assert (user.directory / "said").read_text() == "failed\n"
    assert gone(quick, suite) and not quick.left(*STAYS)

    ready.write_text("")
    user("suite", "resume", suite, "--failed", "-d")
    ended = ends(user, suite)
    assert (ended["state"], ended["exit_code"]) == ("succeeded", 0), (user.directory / "home/master.log").read_text()[-4000:]
    assert [r["run"] for r in runs_of(ended)] == [f"{suite}-1", f"{suite}-r2-2", f"{suite}-r2-3", f"{suite}-r2-4"]
    assert [user("logs", r["run"]).stdout for r in runs_of(ended)] == [f"value={i}\n" for i in (1, 2, 3, 4)]
    made = [facts["tags"].get("regatta:run", "") for facts in quick.launched().values()]
    assert sorted(run for run in made if run.startswith(f"{suite}-r2")) == [f"{suite}-r2"] + [r["run"] for r in runs_of(ended)[1:]]
    assert (user.directory / "said").read_text() == "failed\nsucceeded\n"
    assert (user.directory / "home/suites" / suite / "table.csv").read_text().count(f"{suite},") == 4
    assert gone(quick, suite) and not quick.left(*STAYS)
