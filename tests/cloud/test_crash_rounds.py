"""The crash points of masters (test_crash_points.py, test_crash_points_late.py), tried many at once, and whatever else waits as long.

A master that was started again waits a minute before it believes that something is gone, and half a minute after a delete without an
answer.  So a round is one cloud in which everything is tried together, and each test waits for what became of its own.
"""
import concurrent.futures
import contextlib
import functools
import itertools
import random

import pytest
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

from . import Cloud, network
from . import test_crash_points as before_boot
from . import test_crash_points_late as past_boot
from .sweep import IS_WHOLE, points
from .test_ec2_run import User, wait_for
from .test_handover import ONE, here, is_taken_in, kill_own_master

REGIONS = ("ap-south-2", "us-east-2", "us-west-1", "us-west-2", "ca-central-1", "eu-west-1", "eu-west-2", "eu-west-3", "eu-central-1",
           "eu-north-1", "ap-south-1", "ap-southeast-1", "ap-southeast-2", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "sa-east-1",
           "af-south-1", "ap-east-1", "ap-southeast-3", "eu-south-1", "eu-central-2", "me-south-1")
OF_LOST_ANSWERS = "eu-south-2"
SECONDS, PAUSE = before_boot.SECONDS, before_boot.PAUSE
PAST_BOOT_AT_ONCE = 13  # as many masters on instances as a small machine has room for


def named(*parts):
    return "-".join(str(part).rstrip("/").replace(" ", "-").replace("_", "-") for part in parts)


def spread(calls, count, begin):
    """Every point of a table in a sweep; else `count` of them, evenly from the whole table, before and after the call in turns."""
    if IS_WHOLE:
        return [(action, nth, when) for action, n in calls.items() for nth in range(1, n + 1) for when in before_boot.WHEN]
    every = list(calls.items())
    chosen = [every[(begin + i * len(every) // count) % len(every)] for i in range(count)]
    return [(action, 1 + i % n, before_boot.WHEN[(begin + i) % 2]) for i, (action, n) in enumerate(chosen)]


def points_before_boot():
    """[(name, what follows, point, what a Crashing runs)]: of a sample 23, as many as there are regions."""
    found = []
    for then, *tables in ((before_boot.go_on, ("here", before_boot.MASTER, 9, 0), ("handed", before_boot.HANDED, 3, 1, before_boot.HANDED_JOB, 1)),
                          (before_boot.collect, ("here", before_boot.MASTER, 8, 2), ("handed", before_boot.HANDED, 3, 4, before_boot.HANDED_JOB, 1))):
        for who, calls, count, begin, *shape in tables:
            found += [(named("early", who, *point, then.__name__), then, point, shape) for point in spread(calls, count, begin)]
    return found


def points_past_boot():
    """[(name, point)]: of a sample 13, from everybody's calls, with all that may follow."""
    if network.missing():
        return []
    mixed = random.Random(10).sample(past_boot.POINTS, len(past_boot.POINTS))  # the same every time
    chosen = points(mixed, PAST_BOOT_AT_ONCE, lambda point: (point[0], *point[3:]), [p for p in mixed if p[1] in past_boot.NOT_ALWAYS])
    return [(named("late", *point), point) for point in past_boot.POINTS if point in chosen]


def make_rounds():
    """[{name: what tries it in a cloud and a directory}]"""
    early, late = points_before_boot(), points_past_boot()
    rounds = []
    for i, j in itertools.zip_longest(range(0, len(early), len(REGIONS)), range(0, len(late), PAST_BOOT_AT_ONCE)):
        one = {}
        if i is not None:
            for region, (name, then, point, shape) in zip(REGIONS, early[i:]):
                one[name] = functools.partial(before_boot.try_point, region=region, then=then, point=point, shape=shape)
        if j is not None:
            for name, point in late[j:j + PAST_BOOT_AT_ONCE]:
                one[name] = functools.partial(past_boot.try_point, point=point)
        rounds.append(one)
    return rounds


def lose_answers_of_deletes(cloud, directory):
    """What is gone after a delete without an answer is believed after half a minute."""
    actions = ("DeleteSecurityGroup", "DeleteSubnet")
    with contextlib.closing(before_boot.Crashing(directory, cloud, OF_LOST_ANSWERS)) as user:
        user.listen("0.0.0.0")
        for action in actions:
            cloud.fault(action, lost="after", where=lambda call: call.region == user.region)
        run = user.submit()
        wait_for(user.has_launched, SECONDS, "the instances", PAUSE)
        user("kill", run)
        user.ends(run)
        assert not user.left() and len(user.launched()) == 3
        for action in actions:
            asked = [call for call in cloud.named(action) if call["region"] == user.region]
            assert len(asked) > 1, "an answer that was lost is asked for again"


def close_the_laptop(cloud, directory):
    """The own master dies right after the hand-over; the run ends alone, and its results are read from the bucket."""
    with contextlib.closing(past_boot.Person(cloud, directory)) as user:
        run = user.submit(ONE.format(seconds=5))
        wait_for(lambda: here(user, run)["master_url"], SECONDS, "the hand-over", PAUSE)
        kill_own_master(user)
        wait_for(lambda: not user.left(), SECONDS, "that everything is gone", PAUSE)
        ended = wait_for(lambda: (s := here(user, run))["exit_code"] is not None and s, SECONDS, "the end", PAUSE)
        assert ended["verdict"] == "succeeded" and not user.left(), f"{ended}\n{user.told()}"
        wait_for(lambda: is_taken_in(user, run), SECONDS, "the results", PAUSE)
        assert user("logs", run).stdout.splitlines()[-1].endswith("ended")
    # Also from another home, which is told nothing but the id of the run.
    (directory / "elsewhere").mkdir()
    with contextlib.closing(User(directory / "elsewhere", cloud)) as other:
        assert other("logs", run).stdout.splitlines()[-1].endswith("ended")


def lose_their_master(cloud, directory):
    """The machine of a master is gone while its run goes on: the own master removes what that one had made."""
    with contextlib.closing(past_boot.Person(cloud, directory)) as user:
        run = user.submit(ONE.format(seconds=1000))
        wait_for(lambda: here(user, run)["state"] == "running" and len(user.launched()) == 2, SECONDS, "the hand-over and the node", PAUSE)
        cloud.switched_off(next(number for number, facts in user.launched().items() if facts["tags"]["regatta:role"] == "master"))
        ended = wait_for(lambda: (s := here(user, run))["exit_code"] is not None and s, SECONDS, "the end", PAUSE)
        assert (ended["verdict"], ended["exit_code"]) == ("failed", 8) and "left no results" in ended["cause"], ended["cause"]
        assert not user.left(), user.left()


ROUNDS = make_rounds()
BESIDE = {function.__name__: function for function in (lose_answers_of_deletes, *(() if network.missing() else (close_the_laptop, lose_their_master)))}
POINTS = [(i, name) for i, one in enumerate(ROUNDS) for name in one]
ROUNDS[0].update(BESIDE)


@pytest.fixture(scope="module")
def tried(request, tmp_path_factory):
    """A round of those that were asked for: {name: future}."""
    asked = [item.callspec.params["name"] for item in request.session.items
             if item.module is request.module and item.callspec.params["tried"] == request.param]
    with pytest.MonkeyPatch.context() as patch:
        # gc looks into every region that there is, and each costs moto half a second
        used = (past_boot.REGION, OF_LOST_ANSWERS, *REGIONS)
        patch.setattr(RegionsAndZonesBackend, "regions", [r for r in RegionsAndZonesBackend.regions if r.name in used])
        with Cloud(boot="none" if network.missing() else past_boot.boots_in_its_region()) as cloud:
            cloud.add_decoys()
            with concurrent.futures.ThreadPoolExecutor(len(asked)) as pool:
                yield {name: pool.submit(ROUNDS[request.param][name], cloud, tmp_path_factory.mktemp("point") / "user") for name in asked}
            cloud.check_decoys()
            assert not cloud.broken, "\n".join(cloud.broken)


@pytest.mark.parametrize("tried, name", POINTS, indirect=["tried"], scope="module")
def test_a_master_that_dies_leaves_nothing_and_makes_nothing_twice(tried, name):
    assert not (wrong := tried[name].result()), wrong


@pytest.mark.parametrize("tried, name", [(0, name) for name in BESIDE], indirect=["tried"], scope="module")
def test_nothing_is_left_by_those_who(tried, name):
    tried[name].result()
