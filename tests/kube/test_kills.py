"""kill -9 at calls of the API server: of the client's own master, and of the master in the cluster.  A sample is in
test_master.py: after a kill what was sent may arrive for half a minute, and so long a run looks for it."""
import pytest

from .audit import Audit
from .cluster import wait_for
from .conftest import User
from .test_agentless import plain
from .test_master import apart, kill_master, kill_master_there
from .test_tools import ROLE

QUICK = ["sh", "-c", "echo hello; sleep 2; echo bye"]
SWEEP = 60  # more than any of these runs has changes


@pytest.fixture
def alice(namespace, tmp_path):
    """Somebody whose calls are recorded."""
    (tmp_path / "alice").mkdir()
    who = User(tmp_path / "alice", namespace, namespace.cluster.user("alice"))
    namespace.kubectl("create", "-f", "-", input=ROLE)
    namespace.kubectl("create", "rolebinding", "alice", "--role=regatta", "--user=alice")
    namespace.before = namespace.things()
    yield who
    who("master", "--stop", "--cancel", code=None)


def await_change(audit, account, number, user, run):
    """True when the account has made its change of that number, perhaps without an answer yet; False: the run ended before."""
    return wait_for(lambda: ("there",) if len(audit.changes(account)) >= number else ("over",) if is_over(user, run) else None,
                    f"change {number} of {account}")[0] == "there"


def is_over(user, run):
    return user.status(run)["exit_code"] is not None


def ends_well(user, namespace, run):
    ended = user.ends(run, 300)
    assert ended["verdict"] == "succeeded", ended["cause"]
    assert user("logs", run, "worker-0").stdout == "hello\nbye\n"
    namespace.nothing_left()


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


def sweep(alice, namespace, job, account_of, kill, numbers=range(1, SWEEP)):
    """A run for each change, until a run has none left."""
    for number in numbers:
        audit = Audit(namespace.cluster)
        run = alice.submit(alice.job(job))
        if not await_change(audit, account_of(run), number, alice, run):
            assert number > 3
            return
        kill(run)
        ends_well(alice, namespace, run)
    raise AssertionError(f"no end after {SWEEP} changes")


@pytest.mark.long
@pytest.mark.parametrize("job", [plain(QUICK, count=1), apart(QUICK, count=1)], ids=["here", "in-cluster"])
def test_a_client_that_is_killed_at_any_of_its_calls(alice, namespace, job):
    sweep(alice, namespace, job, lambda run: "alice", lambda run: kill_master(alice))


@pytest.mark.long
def test_a_master_in_the_cluster_that_is_killed_at_any_of_its_calls(alice, namespace):
    sweep(alice, namespace, apart(QUICK, count=1), lambda run: f"system:serviceaccount:{namespace.name}:{run}-regatta",
          lambda run: kill_master_there(namespace, run))
