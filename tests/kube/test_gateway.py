"""A gateway before the API server that spoils answers: the run ends as it would have, and nothing is left."""
import itertools
import random

import pytest

from .gateway import FAULTS, Gateway
from .test_agentless import log_of, plain

LINES = 300
SCRIPT = f"i=0; while [ $i -lt {LINES} ]; do echo line $i; i=$((i+1)); [ $((i % 10)) -eq 0 ] && sleep 0.2; done; true"


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_third_answer_is_spoilt(user, namespace, seed):
    chance = random.Random(seed)
    logs, others = itertools.cycle(["cut", "login page", None]), itertools.cycle([True, False, False])

    def fault(method, path):
        if path == "/version":
            return None
        if "/log?" in path:
            how = next(logs)
            return chance.randrange(3000) if how == "cut" else how  # so many bytes, and then nothing
        return chance.choice([how for how in FAULTS if method == "GET" or how != "410"]) if next(others) else None

    run = None
    with Gateway(namespace.cluster, fault) as gateway:
        for _ in range(8):  # a client that is refused says so, and the next try may have more luck
            user.kubeconfig.write_text(gateway.kubeconfig(namespace.name))
            done = user("run", "-d", user.job(plain(["sh", "-c", SCRIPT])), code=None)
            if done.returncode == 0:
                run = done.stdout.split()[-1]
                break
            assert done.returncode in range(2, 9) and len(done.stderr.splitlines()) == 1, done.stderr
        ended = user.ends(run, 300)
        assert ended["verdict"] == "succeeded", (ended["cause"], gateway.calls)
        for node in ("worker-0", "worker-1"):
            assert log_of(user, run, node) == b"".join(b"line %d\n" % i for i in range(LINES)), node
        namespace.nothing_left()
    assert {type(how) for _, _, how in gateway.calls} == {str, int, type(None)}
