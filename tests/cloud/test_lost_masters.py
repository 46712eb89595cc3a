"""Masters that never return, and installs side by side: what costs ends by itself, and nobody touches another's."""
import signal

import pytest

from . import network
from .conftest import wait_for
from .test_ec2_run import JOB, STAYS, User
from .test_silent_machines import agents  # noqa: F401  pylint: disable=unused-import

pytestmark = pytest.mark.skipif(bool(network.missing()), reason=network.missing() or "-")
LONG = JOB.replace("count = 3", "count = 2").replace('command = "true"', 'command = ["sh", "-c", "echo I run; sleep 1000"]')


def person(cloud, directory):
    """Somebody with a home of their own, and so an install."""
    directory.mkdir()
    made = User(directory, cloud)
    made.listen(cloud.network.caller)
    return made


def running(user, job=LONG):
    run = user.submit(job)
    wait_for(lambda: user("logs", run).stdout.count("I run") == 2, 60, "the jobs")
    return run


def of_run(cloud, run):
    return {key: facts for key, facts in cloud.truth(ended=True).items() if facts.get("tags", {}).get("regatta:run") == run}


def test_a_master_that_never_returns_costs_nothing_after_the_lease(agents, tmp_path):  # noqa: F811
    user = person(agents, tmp_path / "a")
    run = running(user, LONG + '[timeouts]\nlease = "3s"\n')
    asked = len(agents.named("TerminateInstances"))
    user.master.send_signal(signal.SIGKILL)
    user.master.wait(30)
    user.log.close()
    wait_for(lambda: {facts["state"] for (kind, _), facts in of_run(agents, run).items() if kind == "instance"} == {"terminated"}, 60, "the end of its machines")
    assert len(agents.named("TerminateInstances")) == asked
    left = agents.left(*STAYS)
    assert {kind for kind, _ in left} == {"security-group", "subnet"}
    install = {facts["tags"]["regatta:install"] for facts in left.values()}.pop()
    (tmp_path / "elsewhere").mkdir()
    stranger = User(tmp_path / "elsewhere", agents)
    assert install in stranger("gc", code=1).stdout
    stranger("gc", "--install", install)
    assert not agents.left(*STAYS)


def test_two_installs_in_one_account_do_not_touch_each_other(agents, tmp_path):  # noqa: F811
    first, second = person(agents, tmp_path / "a"), person(agents, tmp_path / "b")
    one, two = running(first), running(second)
    others = of_run(agents, two)
    installs = {facts["tags"]["regatta:install"] for run in (one, two) for facts in of_run(agents, run).values()}
    assert len(installs) == 2 and of_run(agents, one)
    first("gc")
    assert of_run(agents, two) == others
    first("kill", one, "--now")
    first.ends(one)
    first("gc")
    first.close()
    assert not [key for key, facts in of_run(agents, one).items() if facts.get("state") != "terminated"]
    assert of_run(agents, two) == others and second.status(two)["verdict"] is None
    second("kill", two, "--now")
    second.ends(two)
    second.close()
    assert not agents.left(*STAYS)
