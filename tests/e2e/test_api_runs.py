"""Runs over HTTP: submitted, listed, compared; archives and logs."""
import hashlib
import os
import socket

from conftest import wait_for
from database import copies
from openapi import OPERATIONS, check_answer
from service import start_service


def test_a_submitted_run_is_the_same_run_when_it_is_submitted_again(regatta, service):
    body = {"request_id": "the-same-request-twice", "base_dir": str(regatta.cwd), "job": {"name": "j", "command": ["true"]}, "client_env": {}}
    first, again = service.call("POST", "/api/v1/runs", body), service.call("POST", "/api/v1/runs", body)
    assert (first.status, again.status) == (201, 200)
    assert first.json["id"] == again.json["id"]
    regatta.wait(first.json["id"])


def test_the_same_archive_may_be_brought_by_several_at_once(regatta, service):
    blob = os.urandom(200_000)
    path = f"/api/v1/blobs/{hashlib.sha256(blob).hexdigest()}"
    head = (f"PUT {path} HTTP/1.1\r\nHost: {service.own}\r\nAuthorization: Bearer {service.token}\r\n"
            f"Content-Length: {len(blob)}\r\n\r\n").encode()
    socks = [socket.create_connection((service.host, service.port), timeout=20) for _ in range(4)]
    for s in socks:
        s.sendall(head + blob[:100_000])
    parts = regatta.home / "blobs"
    wait_for(lambda: len(list(parts.iterdir())) == 4, what="four uploads")
    socks.pop().close()  # one leaves: the others do not care, and nothing is left of it
    wait_for(lambda: len(list(parts.iterdir())) == 3, what="three uploads")
    for s in socks:
        s.sendall(blob[100_000:])
        assert s.recv(4096).startswith(b"HTTP/1.1 201"), path
        assert service.call("HEAD", path).status == 200
        s.close()
    assert [p.name for p in parts.iterdir()] == [path.split("/")[-1]]
    assert (parts / path.split("/")[-1]).read_bytes() == blob
    # What a master left that was killed goes with the next upload.
    stale = parts / (path.split("/")[-1] + ".0x1.part")
    stale.write_bytes(b"half")
    os.utime(stale, (1, 1))
    assert service.call("PUT", path, blob).status == 201
    assert not stale.exists()


def test_progress_is_kept(regatta, service):
    """Of a run that has ended, and over a restart."""
    run = regatta.submit("-n", "2", regatta.job("""
name = "far"
command = ["sh", "-c", "for i in 1 2 3; do echo step $i/40 loss=0.$i; done; exit $REGATTA_RANK"]
[metrics.loss]
pattern = 'step (?<step>\\d+)/(?<total>\\d+) loss=(?<value>\\S+)'
"""))
    assert regatta.wait(run)["verdict"] == "failed"
    first = service.get(f"/api/v1/runs/{run}").json["progress"]
    assert first == {"step": 3, "total": 40}
    regatta("master", "--stop")
    again = start_service(regatta)
    assert again.get(f"/api/v1/runs/{run}").json["progress"] == first


def test_an_ended_run_in_the_list_says_why_and_how_far_it_was(regatta, service):
    job = regatta.job("""
name = "part"
command = ["sh", "-c", "echo step 3/8 loss=0.5; exit 3"]
[metrics.loss]
pattern = 'step (?<step>\\d+)/(?<total>\\d+) loss=(?<value>\\S+)'
""")
    failed = regatta.submit(job)
    assert regatta.wait(failed)["verdict"] == "failed"
    good = regatta.submit("--", "true")
    regatta.wait(good)
    killed = regatta.submit("--", "sleep", "1000")
    regatta.wait(killed, state="running")
    regatta("kill", killed)
    regatta.wait(killed)
    whole = {run: service.get(f"/api/v1/runs/{run}").json for run in (failed, good, killed)}
    assert whole[failed]["cause"] == "worker-0: exit code 3"
    assert whole[failed]["progress"] == {"step": 3, "total": 8}
    assert (whole[good]["cause"], whole[good]["progress"]) == (None, None) and whole[killed]["cause"]

    def check(at):
        listed = {r["id"]: r for r in check_answer("runs", at.get("/api/v1/runs")).json["runs"]}
        assert {i: (r["cause"], r["progress"]) for i, r in listed.items()} == \
            {i: (r["cause"], r["progress"]) for i, r in whole.items()}
        assert not any("nodes" in r for r in listed.values())  # from the rows, not from a run in memory
    check(service)
    table = regatta("ps", "--all").out.splitlines()
    assert next(line for line in table if line.startswith(failed)).endswith("worker-0: exit code 3")
    assert next(line for line in table if line.startswith(good)).endswith(" -")
    regatta("master", "--stop")
    check(start_service(regatta))


def test_whole_runs_come_in_pages(regatta, service):
    first = regatta.submit("--", "true")
    regatta.wait(first)
    regatta("master", "--stop")
    copies(regatta, first, 250)
    again = start_service(regatta)
    page = again.get("/api/v1/runs?full=1&limit=200").json["runs"]
    assert len(page) == 200 and all("nodes" in r for r in page)
    rest = again.get(f"/api/v1/runs?full=1&limit=200&before={page[-1]['id']}").json["runs"]
    assert [r["id"] for r in rest] == [f"many-{i:04}" for i in reversed(range(50))] + [first]
    refused = again.get("/api/v1/runs?full=1&limit=10000")
    assert refused.status == 400 and "from 1 to 200" in refused.json["error"]["message"]
    assert len(again.get("/api/v1/runs?limit=10000").json["runs"]) == 251
    assert again.get("/api/v1/runs?limit=1&state=active").json == {"runs": [], "total": 251}
    # The command turns the pages itself.
    assert [r["id"] for r in regatta.json("ps", "--all", "--limit", "10000")] == [r["id"] for r in page + rest]
    assert len(regatta.json("ps", "--all", "--limit", "240")) == 240
    cut = regatta("ps", "--all")
    assert cut.out.count("\n") == 51 and cut.err == "regatta: these are the newest 50; add '--limit 0' for all\n"
    assert regatta("ps", "--all", "--limit", "0").err == ""


def test_samples_are_compared_by_their_median_only(service, run):
    described = {p["name"]: p for p in OPERATIONS["compare"][2]["parameters"]}
    assert "use=median only" in described["samples"]["description"]
    for use in described["use"]["schema"]["enum"]:
        answer = check_answer("compare", service.get(f"/api/v1/compare?run={run}&run={run}&samples=1&use={use}"))
        assert answer.status == (200 if use == "median" else 400), (use, answer)


def test_a_log_is_read_by_range_and_by_its_end(regatta, service):
    run = regatta.submit("--", "sh", "-c", "seq 1 1000")
    regatta.wait(run)
    path = f"/api/v1/runs/{run}/logs/worker-0"
    whole = service.get(path).body
    assert whole == b"".join(b"%d\n" % i for i in range(1, 1001))
    part = service.get(f"{path}?offset=10&limit=7")
    assert (part.body, part.headers["regatta-offset"]) == (whole[10:17], "10")
    tail = service.get(f"{path}?tail=2")
    assert (tail.body, tail.headers["regatta-offset"]) == (b"999\n1000\n", str(len(whole) - 9))
    assert service.get(f"{path}?offset=999999").body == b""


def test_a_directory_that_the_master_lacks_is_told_with_what_to_do(service):
    """Without source a job runs where its file is, and that may be on another machine."""
    body = {"request_id": "0123456789abcdef", "job": {"command": ["true"]}, "base_dir": "/no/such/place"}
    got = service.call("POST", "/api/v1/runs", body)
    assert got.status == 400
    assert "the master's machine has no directory '/no/such/place' to run in" in got.json["error"]["message"]
    assert 'source = "."' in got.json["error"]["message"]
