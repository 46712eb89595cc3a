"""Finding runs in the list, and watching it."""
import json
import os
import pty
import signal
import subprocess
import time

from conftest import BINARY, wait_for


def names(regatta, *words):
    return [r["name"] for r in regatta.json("ps", *words)]


def test_runs_are_found_by_what_they_are(regatta, service):
    regatta("run", "--name", "net-a", "--tag", "base", "--tag", "big", "--", "true")
    regatta("run", "--name", "net-b", "--tag", "base", "--", "false", code=1)
    live = regatta.submit("--name", "other", "--", "sleep", "1000")
    assert names(regatta) == ["other"] and names(regatta, "-a") == ["other", "net-b", "net-a"]
    assert names(regatta, "--state", "failed") == ["net-b"] and names(regatta, "--state", "ended") == ["net-b", "net-a"]
    assert names(regatta, "--state", "active") == ["other"]
    assert names(regatta, "--state", "failed", "--state", "succeeded") == ["net-b", "net-a"]
    assert names(regatta, "--name", "net-*") == ["net-b", "net-a"] and names(regatta, "--name", live) == ["other"]
    assert names(regatta, "--tag", "base") == ["net-b", "net-a"] and names(regatta, "--tag", "base", "--tag", "big") == ["net-a"]
    assert names(regatta, "--tag", "bas") == []
    assert names(regatta, "--engine", "local") == names(regatta, "--engine", "l*") == names(regatta, "-a")
    assert names(regatta, "--engine", "hosts") == [] and names(regatta, "--since", "1h") == names(regatta, "-a")
    assert names(regatta, "--tag", "base", "--limit", "1") == ["net-b"]
    assert names(regatta, "--tag", "base", "--state", "succeeded", "--name", "net-?") == ["net-a"]

    # Older runs than the last second are left out; a filter looks at all runs, however few are wanted.
    created = regatta.status("other")["created_ms"]
    wait_for(lambda: time.time() * 1000 > created + 1000, what="a second")
    assert names(regatta, "--since", "900ms") == []
    assert regatta("ps", "--tag", "none").err == "regatta: no run is like that\n"
    page = service.get("/api/v1/runs?tag=base&limit=1").json["runs"]
    assert [r["name"] for r in page] == ["net-b"]
    page = service.get(f"/api/v1/runs?tag=base&limit=1&before={page[0]['id']}").json["runs"]
    assert [r["name"] for r in page] == ["net-a"]


def test_wrong_filters_are_one_line(regatta):
    told = regatta("ps", "--state", "failing", code=2)
    assert told.err.startswith("regatta: there is no state 'failing': all, active, ended, accepted,")
    assert regatta("ps", "--since", "yesterday", code=2).err == (
        "regatta: --since is 'yesterday': expected a duration such as 2d or 90m\n")


def test_a_watched_list_is_printed_when_it_changes(regatta):
    regatta("run", "--name", "one", "--", "true")
    ps = regatta.start("ps", "-a", "--watch", "--output", "json", stdout=subprocess.PIPE)
    assert [r["name"] for r in json.loads(ps.stdout.readline())] == ["one"]
    regatta("run", "--name", "two", "--", "true")
    while [(r["name"], r["state"]) for r in json.loads(ps.stdout.readline())] != [("two", "succeeded"), ("one", "succeeded")]:
        pass
    ps.send_signal(signal.SIGINT)
    assert ps.wait(timeout=60) == 0 and ps.stdout.read() == b""


def test_a_watched_list_is_redrawn_on_a_terminal(regatta):
    run = regatta.submit("--name", "one", "--", "sleep", "1000")
    mine, its = pty.openpty()
    ps = subprocess.Popen([BINARY, "ps", "-a", "--watch"], cwd=regatta.cwd, env={**regatta.env, "TERM": "xterm"}, stdin=its, stdout=its, stderr=its)
    os.close(its)
    shown = b""
    while b"running" not in shown:
        shown += os.read(mine, 4096)
    regatta("kill", run)
    while b"cancelled" not in shown:
        shown += os.read(mine, 4096)
    assert b"\x1b[" in shown
    ps.send_signal(signal.SIGTERM)
    assert ps.wait(timeout=60) == 0
    os.close(mine)
