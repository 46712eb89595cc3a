"""kill -9 at calls of the API server: of the client's own master, and of the master in the cluster.  A sample is in
test_master.py: after a kill what was sent may arrive for half a minute, and so long a run looks for it."""
import concurrent.futures
import itertools
import secrets

import pytest

from .audit import Audit
from .cluster import wait_for
from .conftest import Namespace, User
from .test_agentless import plain
from .test_master import apart, kill_master, kill_master_there
from .test_tools import ROLE

QUICK = ["sh", "-c", "echo hello; sleep 2; echo bye"]
SWEEP = 60  # more than any of these runs has changes
AT_ONCE = 3  # runs: most of their time is that half minute


def somebody(namespace, directory, name):
    """Somebody whose calls are recorded."""
    directory.mkdir()
    who = User(directory, namespace, namespace.cluster.user(name))
    namespace.kubectl("create", "-f", "-", input=ROLE)
    namespace.kubectl("create", "rolebinding", name, "--role=regatta", f"--user={name}")
    namespace.before = namespace.things()
    return who


@pytest.fixture
def alice(namespace, tmp_path):
    who = somebody(namespace, tmp_path / "alice", "alice")
    yield who
    who("master", "--stop", "--cancel", code=None)


def await_change(audit, account, number, user, run):
    """True when the account has made its change of that number, perhaps without an answer yet; False: the run ended before."""
    return wait_for(lambda: ("there",) if len(audit.changes(account)) >= number else ("over",) if is_over(user, run) else None,
                    f"change {number} of {account}")[0] == "there"


def is_over(user, run):
    return user.status(run)["exit_code"] is not None


def ends_well(user, namespace, run):
    """The end that the master of this home knows, with the results of a run that another one had."""
    ended = user.ends(run, 300)
    assert ended["verdict"] == "succeeded", ended["cause"]
    namespace.nothing_left()
    wait_for(lambda: user("logs", run, "worker-0", code=None).stdout == "hello\nbye\n", "the log", 60)
    assert user.ends(run, 60)["verdict"] == "succeeded"


@pytest.mark.long
def test_a_client_that_is_killed_at_its_calls_makes_and_removes_everything_once(alice, namespace):
    audit = Audit(namespace.cluster)
    run = alice.submit(alice.job(plain(QUICK, count=1)))
    for number in (1, 3):  # it makes the first object, and a later one
        wait_for(lambda number=number: len(audit.changes("alice")) >= number, f"change {number}")
        kill_master(alice)
        alice.status(run)
    wait_for(lambda: any(c.verb == "delete" for c in audit.changes("alice")), "the first delete")
    kill_master(alice)
    ends_well(alice, namespace, run)
    assert len({c.name for c in audit.changes("alice") if c.verb == "create" and c.resource == "jobs" and c.code == 201}) <= 1


class Sweep:
    """A run for each change of an account, until a run has none left; kill(who, run) at that change."""

    def __init__(self, cluster, directory, job, account_of, kill):
        self.cluster, self.directory, self.job, self.account_of, self.kill = cluster, directory, job, account_of, kill
        self.numbers, self.last = itertools.count(1), SWEEP

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for done in [pool.submit(self.take, number) for number in range(AT_ONCE)]:
                done.result()
        assert 3 < self.last < SWEEP, f"no end after {SWEEP} changes"

    def take(self, place):
        namespace = Namespace(self.cluster, f"t-{secrets.token_hex(4)}")
        who = somebody(namespace, self.directory / f"alice{place}", f"alice{place}")
        try:
            while (number := next(self.numbers)) < self.last:
                self.kill_at(who, number)
        except BaseException:
            self.last = 0  # the others end too
            raise
        finally:
            who("master", "--stop", "--cancel", code=None)
            namespace.remove()

    def kill_at(self, who, number):
        audit = Audit(self.cluster)
        run = who.submit(who.job(self.job))
        try:
            if not await_change(audit, self.account_of(who, run), number, who, run):
                self.last = min(self.last, number)
                return
            self.kill(who, run)
            ends_well(who, who.namespace, run)
        except BaseException as e:
            raise AssertionError(f"killed at change {number} of {run}: {audit.changes(self.account_of(who, run))[:number][-1:]}") from e


@pytest.mark.long
@pytest.mark.parametrize("job", [plain(QUICK, count=1), apart(QUICK, count=1)], ids=["here", "in-cluster"])
def test_a_client_that_is_killed_at_any_of_its_calls(cluster, tmp_path, job):
    Sweep(cluster, tmp_path, job, lambda who, run: who.directory.name, lambda who, run: kill_master(who)).run()


@pytest.mark.long
def test_a_master_in_the_cluster_that_is_killed_at_any_of_its_calls(cluster, tmp_path):
    Sweep(cluster, tmp_path, apart(QUICK, count=1), lambda who, run: f"system:serviceaccount:{who.namespace.name}:{run}-regatta",
          lambda who, run: kill_master_there(who.namespace, run)).run()
