"""Many clients at once: the short answers do not wait for the long ones."""
import concurrent.futures
import resource
import selectors
import socket
import sqlite3
import time

import pytest
from conftest import wait_for
from service import Service

RUNS, LISTS = 10_000, 50
STREAMS, TOKENS, RUNS_WITH_EVENTS = 200, 5, 400
SOON = 0.5  # seconds; it took 1.8 with the lists and 1.5 with the streams, and takes 0.06


def clone_run(home):
    """The rows of one real run RUNS times, and its events RUNS_WITH_EVENTS times, while no master runs."""
    db = sqlite3.connect(home / "regatta.db")
    first = db.execute("SELECT max(no) FROM run").fetchone()[0]

    def columns(table, *without):
        return [c[1] for c in db.execute(f"PRAGMA table_info({table})") if c[1] not in without]

    names = ", ".join(columns("run", "no", "id", "request_id"))
    events = db.execute("SELECT seq, time_ms, kind, node, text FROM event WHERE run = ? ORDER BY seq", (first,)).fetchall()
    number = db.execute("SELECT max(n) FROM event").fetchone()[0]
    with db:
        db.executemany(f"INSERT INTO run (id, {names}) SELECT ?, {names} FROM run WHERE no = ?",
                       [(f"clone-{i:05}", first) for i in range(RUNS)])
        for table in ("job", "node", "resource"):
            rest = columns(table, "run")
            db.execute(f"INSERT INTO {table} (run, {', '.join(rest)}) SELECT no, {', '.join(f'{table}.{c}' for c in rest)}"
                       f" FROM run JOIN {table} ON {table}.run = ? WHERE no > ?", (first, first))
        db.executemany("INSERT INTO event (run, seq, time_ms, kind, node, text, n) VALUES (?, ?, ?, ?, ?, ?, ?)",
                       [(first + 1 + i // len(events), *events[i % len(events)], number + 1 + i)
                        for i in range(RUNS_WITH_EVENTS * len(events))])
    db.close()


@pytest.fixture
def crowded(regatta):
    """A master with many runs on record, and enough descriptors for its clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    regatta("run", "--", "true")
    regatta("master", "--stop")
    wait_for(lambda: not (regatta.home / "api.sock").exists() or not regatta.ours(), what="the master to leave")
    clone_run(regatta.home)
    regatta("ps")
    yield Service(regatta)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def drain(sockets, enough):
    """Reads from all of them until each has given so many bytes; returns the statuses."""
    got, statuses = dict.fromkeys(sockets, 0), {}
    deadline = time.monotonic() + 60
    with selectors.DefaultSelector() as waiting:
        for s in sockets:
            waiting.register(s, selectors.EVENT_READ)
        while waiting.get_map():
            assert time.monotonic() < deadline, "the answers did not come"
            for key, _ in waiting.select(1):
                text = key.fileobj.recv(1 << 18)
                statuses.setdefault(key.fileobj, text[9:12])
                got[key.fileobj] += len(text)
                if got[key.fileobj] >= enough or not text:
                    waiting.unregister(key.fileobj)
    return list(statuses.values())


def slowest_short_answer(service, path, tokens, enough):
    """Of /healthz, from the moment that all the clients have asked until each has got enough of its answer.
    There is a client for each of the tokens."""
    sockets = [socket.create_connection((service.host, service.port), timeout=60) for _ in tokens]
    slowest = 0.0
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        try:
            for s, token in zip(sockets, tokens):
                s.sendall(f"GET {path} HTTP/1.1\r\nHost: {service.own}\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
            reader = pool.submit(drain, sockets, enough)
            while not reader.done():
                began = time.monotonic()
                assert service.get("/healthz", token=None, timeout=60).status == 200
                slowest = max(slowest, time.monotonic() - began)
            assert reader.result() == [b"200"] * len(tokens)
        finally:
            for s in sockets:
                s.close()
    return slowest


def test_healthz_answers_soon_beside_long_lists(crowded):
    assert slowest_short_answer(crowded, "/api/v1/runs?limit=0", [crowded.token] * LISTS, enough=2_000_000) < SOON


def test_healthz_answers_soon_beside_streams_of_the_past(crowded):
    tokens = [crowded.new_token("read") for _ in range(TOKENS)] * STREAMS
    assert slowest_short_answer(crowded, "/api/v1/events?after=0", tokens, enough=100_000) < SOON


def test_a_long_list_is_whole(crowded):
    runs = crowded.get("/api/v1/runs?limit=0").json["runs"]
    assert len(runs) == RUNS + 1
    assert [r["id"] for r in runs[:-1]] == [f"clone-{i:05}" for i in reversed(range(RUNS))]
    assert len(crowded.get("/api/v1/runs?limit=1000").json["runs"]) == 1000
    full = crowded.get("/api/v1/runs?limit=20&full=1&before=clone-00100").json["runs"]
    assert [r["id"] for r in full] == [f"clone-{i:05}" for i in range(99, 79, -1)]
