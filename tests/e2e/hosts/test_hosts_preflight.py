"""Before a gang starts on several machines they try out the network between them. What fails names the pair, and nothing starts."""
import json

import pytest

from lab import ip, lab, needs_lab  # noqa: F401 (a fixture)

pytestmark = needs_lab

# Nobody may have run it when the preflight failed.
TOUCH = "touch $0/ran-$REGATTA_NODE"


def run(regatta, *options, code=0, nodes=3):
    done = regatta("run", "-n", nodes, "--engine", "hosts", *options, "--", "sh", "-c", TOUCH, regatta.cwd, code=code,
                   timeout=90)
    return regatta.status(done.out.split()[0])


def ran(regatta):
    return sorted(path.name.removeprefix("ran-") for path in regatta.cwd.glob("ran-*"))


def names(lab, status, *hosts):
    """The nodes on these hosts."""
    return {node["name"] for node in status["nodes"] if node["address"] in [lab.address[host] for host in hosts]}


def drop(lab, at, to, what):
    lab.nft(at, f"table inet cut {{\nchain output {{ type filter hook output priority 0; ip daddr {lab.address[to]} {what} drop; }}\n}}\n")


def failed_pair(regatta, lab, pair, why):
    """The run fails, its cause names two nodes, which are on these hosts, and nothing has started."""
    status = run(regatta, code=8)
    cause = status["cause"]
    assert cause.startswith("preflight: ") and why in cause, cause
    first, second = cause.removeprefix("preflight: ").replace(" cannot reach", "").split()[:2]
    assert {first, second} == names(lab, status, *pair), cause
    assert not ran(regatta)
    assert all(node["attempt"] == 0 for node in status["nodes"])


def test_machines_that_reach_each_other_start(regatta, lab):  # noqa: F811
    lab.join("a", "b", "c")
    ip("-n", lab.ns("c"), "link", "set", "eth0", "mtu", "1400")
    status = run(regatta)
    assert ran(regatta) == ["worker-0", "worker-1", "worker-2"]
    events = map(json.loads, regatta("events", "--output", "json", status["id"]).out.splitlines())
    said = [e["text"] for e in events if e["kind"] == "preflight"]
    small, = names(lab, status, "c")
    assert len(said) == 1 and said[0].startswith(f"3 nodes reach each other; MTU differs: 1400 on {small}, 1500 on "), said


def test_a_pair_that_a_firewall_keeps_apart_is_named(regatta, lab):  # noqa: F811
    lab.join("a", "b", "c")
    drop(lab, "b", "c", "")
    failed_pair(regatta, lab, "bc", "no answer within 5.0 s")
    run(regatta, "--set", "preflight=false")  # as the user asked
    assert len(ran(regatta)) == 3


def test_a_pair_between_which_large_packets_are_lost_is_named(regatta, lab):  # noqa: F811
    """As in a tunnel with a small MTU that drops what is too large without a word."""
    lab.join("a", "b", "c")
    drop(lab, "c", "a", "meta length > 600")
    failed_pair(regatta, lab, "ac", "32 KiB does not get through")


def test_a_machine_on_which_few_files_may_be_open_is_named(regatta, lab):  # noqa: F811
    lab.join("a", "c")
    lab.join("b", before=("prlimit", "--nofile=200:200"))
    status = run(regatta, code=5)
    node, = names(lab, status, "b")
    assert status["cause"].startswith(f"preflight: {node} may open 200 files, and at least 256 are needed")
    assert not ran(regatta)
