"""Runs of the engine aws.ec2 by the real program, with instances that are only rows: what is made, and that all of it goes."""
import json
import os
import pathlib
import subprocess
import time

import pytest

from . import core
from .conftest import client

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("REGATTA_BINARY", str(ROOT / "build" / "regatta"))
JOB = 'name = "cloudy"\nengine = "aws.ec2"\nmaster = "here"\ncommand = "true"\ncount = 3\ninstance_type = "c5.xlarge"\n'
STAYS = ("bucket", "object")


def wait_for(condition, seconds=30, what="the condition", pause=0.05):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(pause)
    return value


class User:
    patience = 180  # seconds for one command

    def __init__(self, directory, cloud, caller=None):
        self.directory, self.cloud, self.master = directory, cloud, None
        self.env = {**os.environ, "REGATTA_HOME": str(directory / "home"), "REGATTA_IDLE": "20s", "NO_COLOR": "1", "HOME": str(directory),
                    "AWS_EC2_METADATA_DISABLED": "true", **cloud.env(caller)}

    def listen(self, address, port=0):
        """A master that instances reach; what it says of itself."""
        self.log = open(self.directory / "master.err", "w", encoding="utf-8")
        self.master = subprocess.Popen([BINARY, "master", "--listen", f"{address}:{port}", "--output", "json"], env=self.env, stdout=subprocess.PIPE,
                                       stderr=self.log, text=True)
        return json.loads(self.master.stdout.readline())

    def close(self):
        self("master", "--stop", "--cancel", code=None)
        if self.master:
            self.master.wait(60)
            self.log.close()

    def __call__(self, *args, code=0):
        done = subprocess.run([BINARY, *args], cwd=self.directory, env=self.env, capture_output=True, text=True, timeout=self.patience)
        assert code is None or done.returncode == code, f"{args}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def submit(self, job=JOB, more=""):
        (self.directory / "job.toml").write_text(job + more)
        return self("run", "-d", "job.toml").stdout.split()[-1]

    def status(self, run):
        return json.loads(self("status", "--output", "json", run).stdout)

    def ends(self, run, seconds=60):
        return wait_for(lambda: (s := self.status(run))["verdict"] and s["exit_code"] is not None and s, seconds, f"the end of {run}")


@pytest.fixture
def user(tmp_path, cloud):
    cloud.add_decoys()
    made = User(tmp_path, cloud)
    made.listen("0.0.0.0")
    yield made
    made.close()
    cloud.check_decoys()


def launched(cloud, n=3):
    return wait_for(lambda: len(cloud.launched()) == n and cloud.launched(), what=f"{n} instances")


def test_a_run_makes_everything_and_a_kill_removes_it(cloud, user):
    run = user.submit(more='[aws]\ntags = { team = "ads" }\n')
    made = launched(cloud)
    for facts in made.values():
        assert (facts["shutdown"], facts["metadata_tokens"], facts["hop_limit"], facts["monitoring"]) == ("terminate", "required", 1, "enabled")
    assert sorted(facts["index"] for facts in made.values()) == [0, 1, 2] and len({facts["token"] for facts in made.values()}) == 1
    for (kind, _), facts in cloud.left(*STAYS).items():
        assert facts["tags"]["regatta:run"] == run and facts["tags"]["team"] == "ads" and facts["tags"]["regatta:install"], kind
        assert "0.0.0.0/0" not in str(facts.get("ingress"))
    user("kill", run)
    assert user.ends(run)["verdict"] == "cancelled"
    assert len(cloud.named("RunInstances")) == 1  # a call is in the log when it was answered
    assert not cloud.left(*STAYS)
    kinds = {kind for kind, _ in cloud.left()}
    assert kinds == {"bucket", "object"}


def test_a_second_run_uses_bucket_and_program_of_the_first(cloud, user):
    for _ in range(2):
        before = len(cloud.launched())
        run = user.submit()
        launched(cloud, before + 3)
        user("kill", run)
        user.ends(run)
    assert len(cloud.named("CreateBucket")) == 1
    assert len([key for kind, key in cloud.truth() if kind == "object" and "/bin/" in str(key)]) == 1
    assert not cloud.left(*STAYS)


def test_a_zone_without_capacity_is_passed_over(cloud, user):
    cloud.capacity[("c5.xlarge", "us-east-1a", "any")] = 2
    run = user.submit()
    assert {facts["zone"] for facts in launched(cloud).values()} == {"us-east-1b"}
    user("kill", run)
    user.ends(run)
    assert not cloud.left(*STAYS)


def test_a_gang_that_cannot_be_complete_is_released(cloud, user):
    """Two of its roles can be had, the third in no zone: what was made goes, and the cause says what was tried."""
    cloud.capacity[("c5.2xlarge", "*", "any")] = 0
    roles = "".join(f'[roles.{role}]\ncount = 2\ninstance_type = "{kind}"\n' for role, kind in (("a", "c5.large"), ("b", "c5.xlarge"), ("c", "c5.2xlarge")))
    run = user.submit('name = "gang"\nengine = "aws.ec2"\nmaster = "here"\nstrategy = "roles"\ncommand = "true"\ntimeouts.launch = "4s"\n' + roles)
    ended = user.ends(run)
    assert (ended["verdict"], ended["exit_code"]) == ("failed", 5)
    assert "InsufficientInstanceCapacity" in ended["cause"] and "timeouts.launch" in ended["cause"]
    assert len(cloud.launched()) == 4 and not cloud.left(*STAYS)


# Deletes that are applied and have no answer take half a minute: test_crash_rounds.py.
@pytest.mark.parametrize("actions, lost", [
    *(([action], lost) for action in ("CreateSecurityGroup", "CreateSubnet", "RunInstances", "AuthorizeSecurityGroupIngress", "TerminateInstances")
      for lost in ("before", "after")), (["DeleteSecurityGroup", "DeleteSubnet"], "before")])
def test_an_answer_that_is_lost_makes_nothing_twice_and_leaves_nothing(cloud, user, actions, lost):
    for action in actions:
        cloud.fault(action, lost=lost)
    run = user.submit()
    launched(cloud)
    user("kill", run)
    user.ends(run)
    assert not cloud.left(*STAYS) and len(cloud.launched()) == 3
    assert all(len(cloud.named(action)) > 1 for action in actions), "an answer that was lost is asked for again"


@pytest.mark.parametrize("times", [1, 5])
def test_a_range_that_somebody_else_takes_first_is_passed_over(cloud, user, ec2, times):
    """Free when the run was submitted; a run that is handed over makes its subnets minutes later."""
    taken = []

    def take(call):
        taken.append(ec2.create_subnet(VpcId=call.params["VpcId"], CidrBlock=call.params["CidrBlock"])["Subnet"]["SubnetId"])

    cloud.fault("CreateSubnet", times=times, hook=take, where=lambda call: b"regatta" in call.body)
    run = user.submit()
    launched(cloud)
    user("kill", run)
    user.ends(run)
    assert len(taken) == times
    for number in taken:
        ec2.delete_subnet(SubnetId=number)
    assert not cloud.left(*STAYS)


def test_a_quota_ends_the_run_with_its_name_and_nothing_is_left(cloud, user):
    cloud.vcpu_quota[("standard", "on-demand")] = 8
    run = user.submit()
    ended = user.ends(run)
    assert ended["verdict"] == "failed" and "VcpuLimitExceeded" in ended["cause"] and not cloud.left(*STAYS)


@pytest.mark.parametrize("action", ["CreateSecurityGroup", "AuthorizeSecurityGroupIngress", "CreateSubnet", "RunInstances", "CreateBucket", "PutObject"])
def test_a_create_that_is_denied_is_named_and_nothing_is_left(cloud, user, action):
    cloud.fault(action, denied=True, times=None)
    run = user.submit()
    ended = user.ends(run)
    assert ended["verdict"] == "failed" and action in ended["cause"]
    assert not cloud.left(*STAYS)


def test_what_is_not_there_yet_is_waited_for(cloud, user):
    cloud.lag.update({"security-group": 1, "subnet": 1, "instance": 1})
    run = user.submit()
    launched(cloud)
    user("kill", run)
    user.ends(run)
    assert not cloud.left(*STAYS) and len(cloud.launched()) == 3


def test_close_together_is_a_placement_group_of_the_run(cloud, user):
    run = user.submit(more='[aws]\nplacement = "cluster"\n')
    assert len({facts["placement_group"] for facts in launched(cloud).values()} - {""}) == 1
    user("kill", run)
    user.ends(run)
    assert not cloud.left(*STAYS)


def test_reserved_capacity_is_used_in_its_zone_and_an_unknown_reservation_is_named(cloud, user):
    cloud.reservations["cr-0123456789abcdef0"] = {"type": "c5.xlarge", "zone": "us-east-1b", "count": 3}
    run = user.submit(more='[aws]\nreservation = "cr-0123456789abcdef0"\n')
    assert {(facts["zone"], facts["reservation"]) for facts in launched(cloud).values()} == {("us-east-1b", "cr-0123456789abcdef0")}
    ended = user.ends(user.submit(more='timeouts.launch = "4s"\n[aws]\nreservation = "cr-0123456789abcdef0"\n'))  # there are no more
    assert (ended["verdict"], ended["exit_code"]) == ("failed", 5) and "ReservationCapacityExceeded" in ended["cause"]
    ended = user.ends(user.submit(more='[aws]\nreservation = "cr-00000000000000000"\n'))
    assert (ended["verdict"], ended["exit_code"]) == ("failed", 3) and "InvalidCapacityReservationId.NotFound" in ended["cause"]
    user("kill", run)
    user.ends(run)
    assert not cloud.left(*STAYS) and len(cloud.launched()) == 3


def test_spot_instances_are_asked_for_as_such(cloud, user):
    run = user.submit(more="spot = true\n")
    assert {facts["lifecycle"] for facts in launched(cloud).values()} == {"spot"}
    user("kill", run)
    user.ends(run)
    assert not cloud.left(*STAYS)


@pytest.mark.parametrize("more, text", [
    ('[aws]\nami = "ami-0123456789abcdef0"\n', "InvalidAMIID.NotFound"),
    ('[aws]\nami = "fedora"\n', "ami 'fedora': it is neither"),
    ('[aws]\nsubnets = ["subnet-0123456789abcdef0"]\n', "InvalidSubnetID.NotFound"),
    ('[aws]\nzones = ["eu-west-1a"]\n', "no zone of this run's subnets offers c5.xlarge"),
    ('[aws]\nregion = "no where"\n', "'no where' is not the name of a region"),
])
def test_what_cannot_be_had_is_one_line_and_nothing_is_made(cloud, user, more, text):
    (user.directory / "job.toml").write_text(JOB + more)
    said = user("run", "-d", "job.toml", code=None)
    assert said.returncode != 0 and text in said.stderr and len(said.stderr.strip().splitlines()) == 1
    assert not cloud.left()


def test_a_region_without_a_default_vpc_is_named(cloud, user):
    for backend in core.ec2_backends[core.ACCOUNT].values():
        for vpc in backend.vpcs.values():
            vpc.is_default = "false"
    (user.directory / "job.toml").write_text(JOB)
    assert "has no default VPC: name one with `vpc`" in user("run", "-d", "job.toml", code=None).stderr


def test_a_master_that_instances_cannot_reach_takes_no_run(cloud, tmp_path):
    user = User(tmp_path, cloud)
    (tmp_path / "job.toml").write_text(JOB)
    said = user("run", "-d", "job.toml", code=2)
    assert "cannot reach this master" in said.stderr and "--listen ADDRESS:PORT" in said.stderr and len(said.stderr.strip().splitlines()) == 1
    assert not cloud.left()
    user.close()


def test_no_credentials_are_one_line(cloud, user):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        user.env.pop(name, None)
    (user.directory / "job.toml").write_text(JOB)
    said = user("run", "-d", "job.toml", code=4)
    assert len(said.stderr.strip().splitlines()) == 1 and "credentials" in said.stderr


def test_a_bucket_of_another_account_is_refused(cloud, user):
    client(cloud, "s3", cloud.other_account).create_bucket(Bucket="of-somebody-else")
    cloud.baseline |= set(cloud.truth())
    run = user.submit(more='[aws]\nbucket = "of-somebody-else"\n')
    ended = user.ends(run)
    assert ended["verdict"] == "failed" and "of-somebody-else" in ended["cause"] and not cloud.left()
