"""Streams over HTTP: the events of one run and of all, the object of a run as it changes; clients that are slow."""
import contextlib
import http.client
import json
import socket
import sqlite3

from conftest import wait_for
from openapi import SPEC, validate
from service import start_service


def test_events_of_all_runs_come_as_they_happen(regatta, service):
    with service.events() as live:
        assert live.status == 200
        a, b = regatta.submit("--", "true"), regatta.submit("--", "false")
        ends = {a: "succeeded", b: "failed"}
        seen = live.until(lambda r: {d["run"]: d["kind"] for _, d in r.seen if d["kind"] in ends.values()} == ends)
    numbers = [n for n, _ in seen]
    assert numbers == sorted(set(numbers))
    for n, data in seen:
        validate(data, SPEC["components"]["schemas"]["AnyEvent"])
    for run in ends:  # every event of the run, in its own order
        of_run = [d["seq"] for _, d in seen if d["run"] == run]
        stored = [json.loads(x) for x in service.get(f"/api/v1/runs/{run}/events").body.splitlines()]
        assert of_run == [e["seq"] for e in stored]


def test_events_resume_where_they_stopped_also_after_a_restart(regatta, service):
    first = regatta.submit("--", "true")
    regatta.wait(first)
    with service.events("/api/v1/events?after=0") as past:
        seen = list(past.until(lambda r: r.seen and r.seen[-1][1]["kind"] == "succeeded"))
    middle = seen[len(seen) // 2][0]
    regatta("master", "--stop")
    again = start_service(regatta)
    with again.events("/api/v1/events?after=0", {"Last-Event-ID": str(middle)}) as rest:
        assert rest.until(lambda r: r.seen and r.seen[-1][1]["kind"] == "succeeded") == \
            [(n, {**d}) for n, d in seen if n > middle]
        # It goes on with what is new, without a gap.
        second = regatta.submit("--", "true")
        rest.until(lambda r: r.seen[-1][1]["run"] == second and r.seen[-1][1]["kind"] == "succeeded")
        assert all(n > seen[-1][0] for n, d in rest.seen if d["run"] == second)


def test_numbers_of_removed_events_are_not_given_again(regatta, service):
    run = regatta.submit("--", "true")
    regatta.wait(run)
    with service.events("/api/v1/events?after=0") as past:
        last = past.until(lambda r: r.seen and r.seen[-1][1]["kind"] == "succeeded")[-1][0]
    regatta("cleanup", run)
    regatta("master", "--stop")
    again = start_service(regatta)
    with again.events(headers={"Last-Event-ID": str(last)}) as live:
        second = regatta.submit("--", "true")
        seen = live.until(lambda r: r.seen and r.seen[-1][1]["kind"] == "succeeded")
    assert {d["run"] for _, d in seen} == {second} and seen[0][0] > last
    assert [d["seq"] for _, d in seen] == list(range(1, len(seen) + 1))


def test_a_long_past_is_sent_in_pieces_without_loss(regatta, service):
    regatta("run", "--repeat", "30", "--parallel", "4", "--", "true", timeout=120)
    with service.events("/api/v1/events?after=0") as past:
        seen = past.until(lambda r: sum(d["kind"] == "succeeded" for _, d in r.seen) == 30)
    runs = {d["run"] for _, d in seen}
    assert len(runs) == 30 and len(seen) > 400
    for run in runs:
        seqs = [d["seq"] for _, d in seen if d["run"] == run]
        assert seqs == list(range(1, len(seqs) + 1))


def test_a_silent_stream_has_a_heartbeat(service):
    with service.events() as live:
        live.until(lambda r: r.comments >= 1, seconds=20)
        assert not live.seen


def test_agents_that_leave_because_they_were_released_are_no_news(regatta, service):
    job = regatta.job('''
name = "bad"
[roles.worker]
count = 8
command = ["sh", "-c", "exit 3"]
''')
    for _ in range(10):  # whether the last words come together with the end is a matter of luck
        run = regatta.submit(job)
        assert regatta.wait(run)["verdict"] == "failed"
        kinds = [json.loads(line)["kind"] for line in service.get(f"/api/v1/runs/{run}/events").body.splitlines()]
        assert kinds[-1] == "failed" and "exited" in kinds and "dropped" not in kinds, kinds


def ask(service, path):
    """A request whose answer nobody has read yet."""
    s = socket.create_connection((service.host, service.port), timeout=30)
    s.sendall(f"GET {path} HTTP/1.1\r\nHost: {service.own}\r\nAuthorization: Bearer {service.token}\r\n\r\n".encode())
    return s


def answer_of(s):
    answer = http.client.HTTPResponse(s)
    answer.begin()
    assert answer.status == 200
    return answer


def lines_of(s):
    """The whole answer; one that was cut is an IncompleteRead."""
    with s, answer_of(s) as answer:
        return [json.loads(line) for line in answer.read().splitlines()]


def test_forty_thousand_events_reach_a_client_that_is_slow(regatta, service):
    run = regatta.submit("--", "true")
    regatta.wait(run)
    regatta("master", "--stop")
    with contextlib.closing(sqlite3.connect(regatta.home / "regatta.db")) as db:
        no, seq, n = db.execute("SELECT run, max(seq), max(n) FROM event").fetchone()
        db.executemany("INSERT INTO event (run, seq, time_ms, kind, node, text, n) VALUES (?, ?, 1, 'note', -1, ?, ?)",
                       ((no, seq + i, "x" * 300, n + i) for i in range(1, 40001)))
        db.commit()
    again = start_service(regatta)
    for path in (f"/api/v1/runs/{run}/events", f"/api/v1/runs/{run}/events?follow=1"):
        s = ask(again, path)
        assert again.get("/healthz").status == 200  # it was asked before, and is being answered
        refused = again.call("POST", f"/api/v1/runs/{run}/cleanup")  # not under somebody who reads
        assert refused.status == 409 and "watched" in refused.json["error"]["message"]
        assert [e["seq"] for e in lines_of(s)] == list(range(1, seq + 40001))
    assert wait_for(lambda: again.call("POST", f"/api/v1/runs/{run}/cleanup").status == 200, what="the clean-up")


def test_a_watcher_that_is_slow_gets_fewer_objects_and_the_last(regatta, service):
    regatta.script("""
import os, time
for i in range(0, 3000, 50):
    print("**metrics_data: " + ",".join(f"m{k}=1" for k in range(i, i + 50)), flush=True)
while not os.path.exists(os.environ["DONE"]):
    print("**metrics_data: m0=2", flush=True)
    time.sleep(0.02)
""")
    run = regatta.submit(regatta.job(f'''
name = "wide"
command = ["python3", "{regatta.cwd}/job.py"]
env = {{DONE = "{regatta.cwd}/done"}}
'''))

    def seen():
        return service.get(f"/api/v1/runs/{run}").json["metrics"].get("m0", {}).get("count", 0)
    wait_for(lambda: len(service.get(f"/api/v1/runs/{run}").json["metrics"]) == 3000, what="all metrics")
    s = ask(service, f"/api/v1/runs/{run}/watch")
    begin = seen()
    wait_for(lambda: seen() >= begin + 200, what="changes that fill every buffer")
    (regatta.cwd / "done").touch()
    end = regatta.wait(run)
    objects = lines_of(s)
    assert objects[-1]["verdict"] == objects[-1]["state"] == "succeeded"
    assert objects[-1]["metrics"]["m0"] == end["metrics"]["m0"]
    counts = [o["metrics"]["m0"]["count"] for o in objects]
    assert counts == sorted(counts) and counts[-1] - counts[-2] > 20, counts  # the last waited for the one before


def test_deltas_are_the_run_again(regatta, service):
    """Whole at first and at the end; in between what changed, for everybody who watches."""
    regatta.script("""
import os, time
rank = int(os.environ["RANK"])
print("loss=1", flush=True)
for name in ("ONE", "TWO"):
    while not os.path.exists(os.environ[name]):
        time.sleep(0.01)
    if rank == 1:
        print("a line", flush=True)
""")
    run = regatta.submit(regatta.job(f'''
name = "deltas"
count = 3
command = ["python3", "{regatta.cwd}/job.py"]
env = {{ONE = "{regatta.cwd}/one", TWO = "{regatta.cwd}/two"}}
[metrics.loss]
pattern = 'loss=(?<value>[0-9]+)'
'''))

    def now():
        return service.get(f"/api/v1/runs/{run}").json

    wait_for(lambda: all(n["log_bytes"] == 7 and n["metrics"] for n in now()["nodes"]), what="the first lines")
    with contextlib.ExitStack() as stack:
        both = [answer_of(stack.enter_context(ask(service, f"/api/v1/runs/{run}/watch?deltas=1"))) for _ in range(2)]
        firsts = [json.loads(answer.readline()) for answer in both]
        assert all("delta" not in first and len(first["nodes"]) == 3 for first in firsts)
        (regatta.cwd / "one").touch()
        for answer, first in zip(both, firsts):
            nodes = first["nodes"]
            while [n["log_bytes"] for n in nodes] != [7, 14, 7]:  # the end of the answer is no JSON
                delta = json.loads(answer.readline())
                assert delta["delta"]
                for n in delta["nodes"]:
                    nodes[n["rank"]] = n
        (regatta.cwd / "two").touch()
        end = regatta.wait(run)
        for answer in both:
            *deltas, last = [json.loads(line) for line in answer.read().splitlines()]
            assert all(d["delta"] for d in deltas)
            assert "delta" not in last and last["state"] == "succeeded"
            assert [n["log_bytes"] for n in last["nodes"]] == [n["log_bytes"] for n in end["nodes"]] == [7, 21, 7]
