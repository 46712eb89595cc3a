"""Metrics of a run that are sent to CloudWatch, as boto3 sees them there; and what does not get there harms no run."""
import datetime
import json

import pytest

from . import Cloud, machine, network
from .conftest import client, wait_for
from .test_ec2_run import STAYS, User
from .test_handover import STAYS as STAYS_OF_MASTERS

pytestmark = pytest.mark.skipif(bool(network.missing()), reason=network.missing() or "-")
JOB = """name = "measured"
engine = "aws.ec2"
count = 2
instance_type = "c5.large"
max_runtime = "10m"
command = ["sh", "-c", "for i in 1 2 3 4; do echo loss=$i; done"]
[metrics.loss]
pattern = 'loss=(?<value>\\S+)'
[aws]
cloudwatch = "Team/Regatta"
"""
HERE = 'master = "here"\n'


@pytest.fixture(scope="module")
def agents():
    """A cloud whose machines run their user data at once: real agents, without a boot."""
    with Cloud(boot=machine.stand_in(machine.run_user_data)) as cloud:
        cloud.add_decoys()
        yield cloud
        cloud.check_decoys()
        assert not cloud.broken, "\n".join(cloud.broken)


@pytest.fixture
def user(agents, tmp_path):
    made = User(tmp_path, agents)
    yield made
    agents.script.clear()
    made.close()


def there(cloud, run):
    """{node: (count, minimum, maximum, average)} of the metric `loss`."""
    watch = client(cloud, "cloudwatch")
    now = datetime.datetime.now(datetime.timezone.utc)
    found = {}
    for metric in watch.list_metrics(Namespace="Team/Regatta")["Metrics"]:
        has = {d["Name"]: d["Value"] for d in metric["Dimensions"]}
        if has["Run"] != run:
            continue
        assert (metric["MetricName"], has["Job"]) == ("loss", "measured")
        points = watch.get_metric_statistics(
            Namespace="Team/Regatta", MetricName="loss", Dimensions=metric["Dimensions"], Period=86400, StartTime=now - datetime.timedelta(hours=23),
            EndTime=now + datetime.timedelta(hours=1), Statistics=["SampleCount", "Minimum", "Maximum", "Sum"])["Datapoints"]
        found[has["Node"]] = (sum(p["SampleCount"] for p in points), min(p["Minimum"] for p in points), max(p["Maximum"] for p in points),
                              sum(p["Sum"] for p in points))
    return found


WHOLE = {"worker-0": (4, 1, 4, 10), "worker-1": (4, 1, 4, 10)}


@pytest.mark.parametrize("fault", [{}, {"throttle": True, "times": 2}, {"lost": "before"}])
def test_the_metrics_of_a_run_are_there_when_it_has_ended(agents, user, fault):
    user.listen(agents.network.caller)
    if fault:
        agents.fault("PutMetricData", **fault)
    run = user.submit(HERE + JOB)
    assert user.ends(run)["verdict"] == "succeeded"
    assert wait_for(lambda: there(agents, run), 60, "the metrics") == WHOLE
    assert not agents.left(*STAYS)


@pytest.mark.parametrize("fault", [{"denied": True}, {"error": "InvalidParameterValue"}])
def test_metrics_that_cannot_be_sent_are_an_event_and_no_failure(agents, user, fault):
    user.listen(agents.network.caller)
    agents.fault("PutMetricData", times=None, **fault)
    run = user.submit(HERE + JOB)
    assert user.ends(run)["verdict"] == "succeeded"
    wait_for(lambda: "not sent" in user("events", run).stdout, 120, "the event")
    assert not there(agents, run) and not agents.left(*STAYS)


def test_a_master_on_an_instance_may_send_them_to_the_namespace_of_its_job(agents, user):
    run = user.submit(JOB)
    ended = wait_for(lambda: (s := json.loads(user("status", "--master", "local", "--output", "json", run).stdout))["exit_code"] is not None and s, 150, "the end")
    assert ended["verdict"] == "succeeded", ended
    assert there(agents, run) == WHOLE
    assert "metrics-Team=Regatta" in next(client(agents, "iam").list_role_policies(RoleName=role["RoleName"])["PolicyNames"]
                                          for role in client(agents, "iam").list_roles()["Roles"] if role["RoleName"].startswith("regatta-"))
    assert not agents.left(*STAYS_OF_MASTERS)
