"""kill -9 at every call of AWS, before it is applied and after: nothing is left, and no instance is made twice.

A point is one call of the client or of the master.  The process is killed while the call is under way, and the
call is applied or not; either way its answer is lost.  Then the master is started again and the run goes on to its end; or
it is never started again, and `gc` from an empty home removes everything.

Points of a master are tried by test_crash_rounds.py, each in a region of its own; those that follow the boot are in
test_crash_points_late.py.
"""
import secrets
import signal
import subprocess
import traceback

import pytest

from .sweep import points
from .test_ec2_run import BINARY, JOB, STAYS, User, launched, wait_for
from .test_iam_policy import CLUSTER

# The calls of a run of three nodes in three zones that is killed when its instances are there; how often each is made.
CLIENT = {"DescribeVpcs": 1, "DescribeSubnets": 1, "DescribeInstanceTypeOfferings": 1, "GetParameter": 1, "DescribeImages": 1}
MASTER = {
    "CreateSubnet": 3, "CreateSecurityGroup": 1, "AuthorizeSecurityGroupIngress": 1, "CreatePlacementGroup": 1,
    "HeadBucket": 1, "CreateBucket": 1, "PutPublicAccessBlock": 1, "PutBucketEncryption": 1, "PutBucketTagging": 1,
    "GetBucketLifecycleConfiguration": 1, "PutBucketLifecycleConfiguration": 1, "HeadObject": 1, "PutObject": 1,
    "RunInstances": 1, "TerminateInstances": 1, "RevokeSecurityGroupIngress": 1, "DeleteSecurityGroup": 1, "DeleteSubnet": 3,
    "DescribePlacementGroups": 1, "DeletePlacementGroup": 1, "DescribeInstances": 1, "DescribeSecurityGroups": 1,
}
# The same until a run is with the master on an instance, by the client's own master; machines do not boot here.
HANDED_JOB = JOB.replace('master = "here"\n', "") + '[timeouts]\nboot = "3s"\n'
HANDED = {
    "CreateSecurityGroup": 1, "AuthorizeSecurityGroupIngress": 2, "HeadBucket": 1, "CreateBucket": 1, "PutPublicAccessBlock": 1,
    "PutBucketEncryption": 1, "PutBucketTagging": 1, "GetBucketLifecycleConfiguration": 1, "PutBucketLifecycleConfiguration": 1,
    "HeadObject": 1, "PutObject": 1, "CreateRole": 1, "PutRolePolicy": 2, "CreateInstanceProfile": 1, "AddRoleToInstanceProfile": 1,
    "RunInstances": 1, "TerminateInstances": 1, "RevokeSecurityGroupIngress": 1, "DeleteSecurityGroup": 1, "DeleteObject": 1,
    "DescribeInstances": 1, "DescribeSecurityGroups": 1,
}
OF_IAM = ("CreateRole", "PutRolePolicy", "CreateInstanceProfile", "AddRoleToInstanceProfile")  # of no region
WHEN = ("before", "after")
SECONDS, PAUSE = 300, 0.5  # two dozen masters share the machine: nobody looks often, and nobody is in a hurry
CLIENT_POINTS = [(action, when) for action in CLIENT for when in WHEN]


class Crashing(User):
    """A user with a region alone, whose master is a child of this process."""
    patience = SECONDS

    def __init__(self, directory, cloud, region="us-east-1", job=JOB + CLUSTER, instances=3):
        directory.mkdir(exist_ok=True)
        super().__init__(directory, cloud)
        self.region, self.job, self.instances, self.own = region, job, instances, secrets.token_hex(8)
        self.env.update(AWS_REGION=region, AWS_DEFAULT_REGION=region, REGATTA_INSTALL=self.own)

    def crash(self, _=None):
        self.master.send_signal(signal.SIGKILL)

    def has_crashed(self):
        return self.master.poll() is not None

    def restart(self):
        self.master.wait(30)
        self.master.stdout.close()
        self.log.close()
        self.listen("0.0.0.0")

    def launched(self):
        return [facts for facts in self.cloud.launched().values() if facts["region"] == self.region]

    def left(self):
        """Of runs: the group that every VPC has is nobody's."""
        return {key: facts for key, facts in self.cloud.left(*STAYS).items() if facts.get("region") == self.region and "regatta:run" in facts.get("tags", {})}

    def ends(self, run, seconds=SECONDS):
        return wait_for(lambda: (s := self.status(run))["verdict"] and s["exit_code"] is not None and s, seconds, f"the end of {run}", PAUSE)

    def has_launched(self):
        return len(self.launched()) == self.instances


@pytest.fixture
def user(tmp_path, cloud):
    cloud.add_decoys()
    made = Crashing(tmp_path, cloud)
    made.listen("0.0.0.0")
    yield made
    made.close()
    cloud.check_decoys()


def test_the_table_has_every_call(cloud, user):
    run = user.submit(more=CLUSTER)
    launched(cloud)
    user("kill", run)
    user.ends(run)
    # The copy of the results, which begins when the run has ended, has tests of its own.
    calls = [call["action"] for call in cloud.calls if not call["params"].get("Key", "").startswith("runs/")]
    assert set(calls) - {"GetCallerIdentity", "ListObjectsV2"} == set(CLIENT) | set(MASTER)
    # how often it looks depends on the time that things take
    assert {action: n for action, n in MASTER.items() if calls.count(action) != n and not action.startswith("Describe")} == {}


@pytest.mark.parametrize("action, when", points(CLIENT_POINTS, 4, lambda point: point[1]))
def test_a_client_that_dies_has_made_nothing_and_can_be_repeated(cloud, user, action, when):
    (user.directory / "job.toml").write_text(JOB)
    client = []
    cloud.fault(action, lost=when, hook=lambda call: client[0].send_signal(signal.SIGKILL))
    client.append(subprocess.Popen([BINARY, "run", "-d", "job.toml"], cwd=user.directory, env=user.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    assert client[0].wait(60) == -signal.SIGKILL
    assert not cloud.left()
    run = user.submit()
    launched(cloud)
    user("kill", run)
    user.ends(run)
    assert not cloud.left(*STAYS) and len(cloud.launched()) == 3


def run_into(cloud, user, point):
    """A run whose master dies at this point."""
    action, nth, when = point

    def is_ours(call):
        body = call.body.decode(errors="replace")
        return user.own in body if action in OF_IAM else call.region == user.region and (action not in CLIENT or "regatta" in body)

    fault = cloud.fault(action, nth=nth, lost=when, hook=user.crash, where=is_ours)
    run = user.submit(user.job)
    wait_for(lambda: user.has_crashed() or user.has_launched(), SECONDS, "the crash, or the instances", PAUSE)
    if not user.has_crashed():
        user("kill", run, code=None)
        wait_for(user.has_crashed, SECONDS, "the crash", PAUSE)
    assert fault.hits == 1
    return run


def go_on(_, user, run):
    """The master is started again."""
    user.restart()
    status = user.status(run)
    if status["verdict"] is None and not status["cancel_asked"]:
        wait_for(user.has_launched, SECONDS, "the instances", PAUSE)
        user("kill", run)
    user.ends(run)


def collect(cloud, user, _):
    """The master is gone for ever, and somebody with an empty home is told the install."""
    stranger = Crashing(user.directory / "elsewhere", cloud, user.region)
    stranger("gc", "--install", user.own)
    if user.left():  # a call that was under way when the master died was applied after it
        stranger("gc", "--install", user.own)


def try_point(cloud, directory, region, then, point, shape):
    """None, or what went wrong; shape: what a Crashing runs, if not the usual."""
    user = Crashing(directory, cloud, region, *shape)
    user.listen("0.0.0.0")
    try:
        run = run_into(cloud, user, point)
        then(cloud, user, run)
        assert not user.left() and len(user.launched()) in (0, user.instances), user.left()
    except Exception:  # pylint: disable=broad-exception-caught
        return f"{point} in {region}:\n{traceback.format_exc(limit=-3)}"
    finally:
        user.crash()
        user.master.wait(30)
        user.log.close()
    return None


def test_the_table_of_a_run_that_is_handed_over_has_every_call(cloud, user):
    run = user.submit(HANDED_JOB)
    launched(cloud, 1)
    user("kill", run)
    user.ends(run)
    calls = [call["action"] for call in cloud.calls]
    assert set(calls) - {"GetCallerIdentity"} == set(CLIENT) | set(HANDED)
    varies = ("DescribeInstances", "DeleteObject", "DescribeSecurityGroups")
    assert {action: n for action, n in HANDED.items() if calls.count(action) != n and action not in varies} == {}
