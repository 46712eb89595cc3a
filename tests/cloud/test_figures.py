"""Figures that are promised: how few calls launch a fleet, and what it costs beside the cloud's own meter."""
import json
import time

import pytest

from . import network
from .conftest import wait_for
from .sweep import IS_WHOLE
from .test_ec2_run import JOB, STAYS, launched, user  # noqa: F401  pylint: disable=unused-import
from .test_results import said_of_results
from .test_lost_masters import LONG, person, running
from .test_silent_machines import agents  # noqa: F401  pylint: disable=unused-import

FLEET = 100
MOST_CALLS = 20
# Seconds that are paid for at least, whatever is started; longer than that only in a sweep.
LONG_ENOUGH = 150 if IS_WHOLE else 0


def test_a_fleet_is_launched_and_ended_with_a_handful_of_calls(cloud, user):  # noqa: F811
    """However many instances; a few more the first time, when the bucket is made."""
    for n in (1, FLEET):
        before, there = len(cloud.calls), len(cloud.launched())
        run = user.submit(JOB.replace("count = 3", f"count = {n}"))
        launched(cloud, there + n)
        wait_for(lambda run=run: user.status(run)["state"] == "gathering", 30, "all of them")
        launch, before = cloud.calls[before:], len(cloud.calls)
        user("kill", run)
        user.ends(run)
        wait_for(lambda run=run: said_of_results(user, run), 30, "its results")
        teardown = [call for call in cloud.calls[before:] if call["service"] == "ec2"]
    assert len(launch) <= MOST_CALLS, [call["action"] for call in launch]
    assert len(teardown) <= MOST_CALLS, [call["action"] for call in teardown]
    assert not cloud.left(*STAYS)


@pytest.mark.skipif(bool(network.missing()), reason=network.missing() or "-")
def test_what_a_run_cost_is_what_the_cloud_charges(agents, tmp_path):  # noqa: F811
    user = person(agents, tmp_path / "a")  # noqa: F811
    before = agents.bill()["total"]
    run = running(user, LONG.replace("c5.xlarge", "p4d.24xlarge"))
    began = time.monotonic()
    wait_for(lambda: time.monotonic() - began >= LONG_ENOUGH, LONG_ENOUGH + 10, "a time that counts")
    user("kill", run, "--now")
    user.ends(run)
    said = json.loads(user("cost", run, "--output", "json").stdout)
    user.close()
    agents.settle()
    assert said["usd"] == pytest.approx(agents.bill()["total"] - before, rel=0.01)
