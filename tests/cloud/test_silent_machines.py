"""Machines that boot and never speak, that switch themselves off, and that are taken back."""
import json

import pytest

from . import Cloud, machine, network
from .conftest import wait_for
from .test_ec2_run import JOB, STAYS, User



class Mute:
    """Boots, prints, and does nothing else; or switches itself off."""

    def __init__(self, cloud, instance, text, leaves=False):
        self.cloud, self.instance, self.text, self.leaves = cloud, instance, text, leaves

    def start(self):
        if self.leaves:
            self.cloud.note_console(self.instance.id, self.text)
            self.cloud.switched_off(self.instance.id)

    def stop(self, keep_disk=False):
        self.cloud.note_console(self.instance.id, self.text)

    def console(self):
        return self.text


def mute_cloud(text, **options):
    return Cloud(boot=lambda cloud, instance: Mute(cloud, instance, text, **options), address="loopback")


@pytest.fixture
def listening(tmp_path):
    """A user of a cloud that the test makes."""
    users = []

    def make(cloud, address="0.0.0.0"):
        users.append(User(tmp_path, cloud))
        users[0].listen(address)
        return users[0]

    yield make
    for user in users:
        user.close()


def test_a_machine_that_never_speaks_is_named_with_its_console(listening):
    with mute_cloud("Kernel panic - not syncing: no init found\n") as cloud:
        user = listening(cloud)
        run = user.submit(more='[timeouts]\nboot = "2s"\n')
        ended = user.ends(run)
        assert (ended["verdict"], ended["exit_code"]) == ("failed", 6)
        assert "(timeouts.boot); console: Kernel panic - not syncing: no init found" in ended["cause"]
        assert any(number in ended["cause"] for number in cloud.launched())
        assert "Kernel panic" in user("events", run).stdout
        assert not cloud.left(*STAYS)
        user.close()


def test_a_machine_whose_user_data_fails_is_named_with_its_console(listening):
    with mute_cloud("[ 9] cloud-init[7]: regatta: the program cannot be had: this machine is switched off\n[ OK ] off\n", leaves=True) as cloud:
        user = listening(cloud)
        run = user.submit()
        ended = user.ends(run)
        assert ended["verdict"] == "failed" and "is terminated" in ended["cause"]
        assert "console: regatta: the program cannot be had: this machine is switched off" in ended["cause"]
        assert not cloud.left(*STAYS)
        user.close()


TOOLS = ("curl", "wget", "python3")


def with_one_tool(instance):
    """User data at once, on an image that can fetch with one of the tools only, another one for each machine."""
    hidden = [tool for i, tool in enumerate(TOOLS) if i != instance.ami_launch_index]
    hide = "; ".join(f'mount --bind /dev/null "$(readlink -f /usr/bin/{tool})"' for tool in hidden)
    shell, option, script = machine.run_user_data(instance)
    return [shell, option, f"{hide}; {script}"]


@pytest.mark.skipif(bool(network.missing()), reason=network.missing() or "-")
def test_the_program_is_fetched_with_whatever_the_image_has(listening):
    with Cloud(boot=machine.stand_in(with_one_tool)) as cloud:
        user = listening(cloud, cloud.network.caller)
        look = "for t in curl wget python3; do command -v $t >/dev/null && echo $t; done; :"
        run = user.submit(JOB.replace('command = "true"', f'command = ["sh", "-c", "{look}"]'))
        ended = user.ends(run)
        assert ended["verdict"] == "succeeded", "\n".join(cloud.console(number)[-2000:] for number in cloud.launched())
        assert sorted(user("logs", run, f"worker-{rank}").stdout for rank in range(3)) == [f"{tool}\n" for tool in sorted(TOOLS)]
        assert not cloud.left(*STAYS)
        user.close()


@pytest.fixture(scope="module")
def agents():
    """A cloud whose machines run their user data at once: real agents, without a boot."""
    with Cloud(boot=machine.stand_in(machine.run_user_data)) as cloud:
        cloud.add_decoys()
        yield cloud
        cloud.check_decoys()
        assert not cloud.broken, "\n".join(cloud.broken)


def running(cloud, user, job):
    """A run whose jobs have all said that they run; its instances by rank."""
    before = set(cloud.launched())
    run = user.submit(job)
    wait_for(lambda: user("logs", run).stdout.count("I run") >= 2, 60, "the jobs")
    made = {facts["index"]: number for number, facts in cloud.launched().items() if number not in before}
    return run, made


SPOT = JOB.replace("count = 3", "count = 2").replace('command = "true"', """spot = true
preempt_signal = "USR1"
command = ["sh", "-c", "trap 'echo told $(cat $REGATTA_PREEMPT_FILE)' USR1; echo I run $REGATTA_ATTEMPT; while :; do sleep 0.1; done"]
""")


@pytest.mark.skipif(bool(network.missing()), reason=network.missing() or "-")
def test_a_spot_notice_reaches_the_job_and_ends_the_run_as_preempted(agents, listening):
    user = listening(agents, agents.network.caller)
    run, made = running(agents, user, SPOT)
    agents.interrupt_spot(made[1], 8)
    notice = int(agents.instances[made[1]].spot_notice)
    ended = user.ends(run, 60)
    assert (ended["verdict"], ended["cause_kind"], ended["exit_code"]) == ("failed", "preempted", 5)
    assert f"told {notice}" in user("logs", run, "worker-1").stdout and "told" not in user("logs", run, "worker-0").stdout
    assert not agents.left(*STAYS)


@pytest.mark.skipif(bool(network.missing()), reason=network.missing() or "-")
def test_only_the_machine_that_was_taken_is_replaced(agents, listening):
    user = listening(agents, agents.network.caller)
    run, made = running(agents, user, f'on_lost = "replace"\n{SPOT}')
    agents.interrupt_spot(made[1], 8)
    wait_for(lambda: "I run 2" in user("logs", run).stdout, 90, "the next attempt")
    alive = {number for number, facts in agents.launched().items() if facts["state"] == "running" and facts["tags"].get("regatta:run") == run}
    assert made[0] in alive and made[1] not in alive and len(alive) == 2
    nodes = {node["name"]: node["attempt"] for node in json.loads(user("status", "--output", "json", run).stdout)["nodes"]}
    assert nodes == {"worker-0": 1, "worker-1": 2}
    user("kill", run, "--now")
    user.ends(run, 60)
    assert not agents.left(*STAYS)
