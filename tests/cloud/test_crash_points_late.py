"""kill -9 at the calls of AWS that follow the boot: the nodes of a master on an instance, the end of a run, the copy of its
results, the end of the machine.

The points are tried by test_crash_rounds.py, together with those before the boot, in a region whose machines run their user data
at once: real agents, and a real master on an instance.  Whose call it is says who is killed:

    here    the master of master = "here", at the end of a run whose job has run
    own     the caller's master, which follows a run that it has handed over
    other   the master on the instance, which its machine starts again
    alone   the same, when the caller's master has been gone since the hand-over

A caller's master that was killed is started again, or never, and then `gc` from an empty home removes everything.
"""
import os
import pathlib
import secrets
import signal
import traceback

import pytest

from . import Cloud, core, machine, network
from .sweep import IS_WHOLE
from .test_ec2_run import STAYS, User, wait_for
from .test_handover import ONE, here, kill_own_master

__test__ = IS_WHOLE  # make cloud-sweep looks whether the table has everything
REGION = core.REGION
JOB = ONE.format(seconds=0)
HERE_JOB = JOB.replace('engine = "aws.ec2"\n', 'engine = "aws.ec2"\nmaster = "here"\n')
SECONDS, PAUSE = 300, 0.5
RESULTS = "PutObject runs/"
# Whose call, and how often it is made at least; behind the action, how the key of an object begins.
CALLS = {
    "here": {"TerminateInstances": 1, "DescribeInstances": 2, "RevokeSecurityGroupIngress": 1, "DeleteSubnet": 3, "DeleteSecurityGroup": 1,
             "ListObjectsV2": 1, RESULTS: 10},
    "own": {"PutObject masters/": 1, "HeadObject runs/": 1, "DeleteObject masters/": 1, "TerminateInstances": 1, "RevokeSecurityGroupIngress": 1,
            "DeleteSecurityGroup": 1, "GetObject runs/": 5},
    "other": {RESULTS: 10, "CreateSubnet": 3, "RunInstances": 1, "DescribeInstances": 2, "TerminateInstances": 1, "DeleteSubnet": 3, "ListObjectsV2": 1},
    "alone": {"DeleteSecurityGroup": 1, "DeleteObject masters/": 1, "DescribeSecurityGroups": 1, "ModifyNetworkInterfaceAttribute": 1,
              "RevokeSecurityGroupIngress": 1},
}
NOT_ALWAYS = ("TerminateInstances",)  # a machine whose agent has left switches itself off, maybe before it is asked for
EARLY = ("CreateSubnet", "RunInstances", "PutObject masters/")  # the others are counted when the run has all of its machines
THEN = {"here": ("go on", "collect"), "own": ("go on", "collect"), "other": ("go on",), "alone": ("go on",)}
POINTS = [(who, call, nth, when, then) for who, calls in CALLS.items() for call, n in calls.items() for nth in range(1, n + 1)
          for when in ("before", "after") for then in THEN[who]]


def boots_in_its_region():
    """For Cloud(boot=...)."""
    make = machine.stand_in(machine.run_user_data)
    return lambda cloud, instance: make(cloud, instance) if instance.ec2_backend.region_name == REGION else None


class Person(User):
    """Somebody with keys and an install alone."""
    patience = SECONDS

    def __init__(self, cloud, directory, own=None):
        directory.mkdir(parents=True)
        self.caller, self.own = cloud.callers.make(cloud.root.account), own or secrets.token_hex(8)
        super().__init__(directory, cloud, self.caller)
        self.env["REGATTA_INSTALL"] = self.own

    def of_install(self, facts):
        return facts.get("tags", {}).get("regatta:install") == self.own

    def launched(self):
        return {number: facts for number, facts in self.cloud.launched().items() if self.of_install(facts)}

    def left(self):
        return {key: facts for key, facts in self.cloud.left(*STAYS).items() if self.of_install(facts) and "regatta:run" in facts["tags"]}

    def calls(self, call, who):
        """Is it a call of the caller's master, or of that on the instance?"""
        caller = self.cloud.callers.find(call.claim.key) if call.claim else None
        if who in ("here", "own"):
            return caller is self.caller
        return caller is not None and caller.kind == "role" and caller.name == f"regatta-{self.own}"

    def has_its_machines(self):
        return len(self.launched()) == self.machines_of_run

    def told(self):
        """The last lines of its master, and what its machines have on their consoles."""
        log = self.directory / "home/master.log"
        own = log.read_text(encoding="utf-8", errors="replace")[-2000:] if log.exists() else ""
        return "\n".join([own, *(f"{number} {facts['state']}:\n{self.cloud.console(number)[-2000:]}" for number, facts in self.launched().items())])

    def kill(self, who):
        if who in ("here", "own"):
            kill_own_master(self)
            return
        number = next(number for number, facts in self.launched().items() if facts["tags"]["regatta:role"] == "master")
        init = self.cloud.machines[number].first_process()
        home = pathlib.Path(f"/proc/{init}/root/var/lib/regatta/home/lock")
        inside = home.read_text(encoding="ascii").strip()
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            text = status.read_text(encoding="ascii", errors="replace") if status.exists() else ""
            if f"\t{inside}\n" in text.partition("NSpid:")[2].partition("NSsid")[0] and same_namespace(status.parent, init):
                os.kill(int(status.parent.name), signal.SIGKILL)
                return
        raise AssertionError(f"no process {inside} on {number}")


def same_namespace(process, init):
    try:
        return os.readlink(process / "ns/pid") == os.readlink(f"/proc/{init}/ns/pid")
    except OSError:
        return False


def run_into(cloud, user, who, call, nth, when):
    """A run that loses one of its masters at this call; None if it has ended without the call."""
    action, _, key = call.partition(" ")
    wrong = []

    def crash(_):
        try:
            user.kill(who)
        except Exception:  # pylint: disable=broad-exception-caught
            wrong.append(traceback.format_exc())

    fault = cloud.fault(action, nth=nth, lost=when, hook=crash,
                        where=lambda c: user.calls(c, who) and c.key.startswith(key) and (call in EARLY or user.has_its_machines()))
    if who == "alone":  # the caller's master dies with the first call of the other one
        cloud.fault("CreateSubnet", hook=lambda _: kill_own_master(user), where=lambda c: user.calls(c, "other"))
    if who == "here":
        user.port = int(user.listen(cloud.network.caller)["url"].rpartition(":")[2])
    run = user.submit(HERE_JOB if who == "here" else JOB)
    wait_for(lambda: fault.hits or (call in NOT_ALWAYS and user.has_its_machines() and not user.left()), SECONDS, "the crash", PAUSE)
    assert not wrong, wrong
    return run if fault.hits else None


def go_on(user, who, run):
    if who == "here":
        user.master.wait(30)
        user.log.close()
        user.listen(user.cloud.network.caller, user.port)  # its agents look for it there
    if who == "alone":
        wait_for(lambda: not user.left(), SECONDS, "that everything is gone", PAUSE)
    ended = wait_for(lambda: (s := here(user, run))["exit_code"] is not None and s, SECONDS, "the end", PAUSE)
    assert ended["verdict"] == "succeeded", ended
    sign = "/ has " if who == "here" else "taken from s3://"
    wait_for(lambda: sign in user("events", run).stdout, SECONDS, "the results", PAUSE)
    assert user("logs", run).stdout.splitlines()[-1].endswith("ended")


def collect(cloud, user):
    stranger = Person(cloud, user.directory / "elsewhere", user.own)
    first = stranger("gc", "--install", user.own, code=None)
    if first.returncode or user.left():  # the other master goes on meanwhile, and a call may be applied after its caller's death
        assert first.returncode in (0, 1), first.stderr
        stranger("gc", "--install", user.own)


def try_point(cloud, directory, point):
    """None, or what went wrong."""
    who, call, nth, when, then = point
    user = Person(cloud, directory)
    user.machines_of_run = 1 if who == "here" else 2
    try:
        run = run_into(cloud, user, who, call, nth, when)
        if then == "go on" and run:
            go_on(user, who, run)
        elif run:
            collect(cloud, user)
        assert not user.left(), user.left()
        made = len(user.launched())
        assert made == user.machines_of_run or (then == "collect" and made < user.machines_of_run), user.launched()
    except Exception:  # pylint: disable=broad-exception-caught
        return f"{point}:\n{traceback.format_exc(limit=-3)}\n{user.told()}"
    finally:
        user("master", "--stop", "--cancel", code=None)
        if user.master:
            user.master.kill()
            user.master.wait(30)
    return None


@pytest.fixture
def agents():
    with Cloud(boot=boots_in_its_region()) as cloud:
        cloud.add_decoys()
        yield cloud
        cloud.check_decoys()
        assert not cloud.broken, "\n".join(cloud.broken)


@pytest.mark.skipif(bool(network.missing()), reason=network.missing() or "-")
def test_the_table_has_every_call_that_follows_the_boot(agents, tmp_path):
    """What is in no row is only looked at, or made before the boot (test_crash_points.py)."""
    made, calls = {}, []
    agents.fault("*", where=lambda call: calls.append(call))  # never strikes
    for who in ("here", "own", "alone"):
        user = Person(agents, tmp_path / who)
        if who == "here":
            user.listen(agents.network.caller)
        if who == "alone":
            agents.fault("CreateSubnet", hook=lambda _, user=user: kill_own_master(user), where=lambda c, user=user: user.calls(c, "other"))
        calls.clear()
        run = user.submit(HERE_JOB if who == "here" else JOB)
        if who == "alone":  # its own master would find in the bucket what it takes in with "own" too
            wait_for(lambda: user.launched() and not user.left(), SECONDS, "that everything is gone")
        else:
            wait_for(lambda: here(user, run)["exit_code"] is not None, SECONDS, "the end")
            sign = "/ has " if who == "here" else "taken from s3://"
            wait_for(lambda: sign in user("events", run).stdout, SECONDS, "the results")
        made[who] = {c.action for c in calls if user.calls(c, who)}
        if who == "own":  # the same run, of which this is the other master
            made["other"] = {c.action for c in calls if user.calls(c, "other")}
        user.close()
        assert not user.left()
    changes = {who: {a for a in actions if not a.startswith(("Describe", "Get", "Head", "List"))} for who, actions in made.items()}
    rows = {who: {call.split()[0] for call in calls} for who, calls in CALLS.items()}
    assert changes["other"] <= rows["other"], changes
    assert changes["alone"] - changes["other"] == rows["alone"] - {"DescribeSecurityGroups"}, changes
    assert {a for a in changes["here"] | changes["own"] if a.startswith(("Delete", "Terminate", "Revoke", "Modify"))} <= rows["here"] | rows["own"]
