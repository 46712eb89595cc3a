"""on_finish: who is told when a run has ended."""
import contextlib
import http.server
import json
import socket
import sqlite3
import stat
import threading

import pytest

from conftest import wait_for


@pytest.fixture
def receiver():
    """A server that refuses the first call."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.path, self.headers["content-type"], self.rfile.read(int(self.headers["content-length"]))))
            answer = b"" if len(got) == 1 else b"x" * (1 << 20)  # more than anybody wants to read
            self.send_response(503 if len(got) == 1 else 200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            try:
                self.wfile.write(answer)
            except ConnectionError:
                pass

        def log_message(self, *_):
            pass

    got = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    server.got = got
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_end_of_a_run_is_posted_again_until_it_is_taken(regatta, receiver):
    command = "cat > got.json; echo $REGATTA_RUN $REGATTA_VERDICT > words; [ -d $REGATTA_RUN_DIR ]; echo said"
    job = regatta.job(f'''
name = "told"
command = ["sh", "-c", "exit 3"]
[on_finish]
url = "http://127.0.0.1:{receiver.server_port}/runs?x=1"
command = ["sh", "-c", {json.dumps(command)}]
''')
    run = regatta("run", "--output", "json", job, code=1)
    run = json.loads(run.stdout)["id"]
    done = regatta.home / "runs" / run / "on_finish.json"
    wait_for(done.exists, what="the end of the hook")
    told = json.loads(done.read_text())
    assert told["done"] is True and told["tries"] == 2 and told["error"] is None
    assert len(receiver.got) == 2
    path, kind, body = receiver.got[-1]
    assert (path, kind) == ("/runs?x=1", "application/json")
    assert json.loads(body)["id"] == run and json.loads(body)["verdict"] == "failed"
    assert json.loads((regatta.cwd / "got.json").read_text())["exit_code"] == 1
    assert (regatta.cwd / "words").read_text() == f"{run} failed\n"
    assert (done.parent / "on_finish.log").read_text() == "said\n"  # once: what succeeded is not repeated
    wait_for(lambda: not (done.parent / ".on_finish.owed").exists(), what="the hook to be off the list of what is owed")


def test_what_was_posted_is_not_posted_again_for_the_command(regatta, receiver):
    receiver.got.append(None)  # it takes the first call
    command = "test -e once || { touch once; exit 1; }"
    job = regatta.job(f'''
name = "told"
command = ["true"]
on_finish = {{ url = "http://127.0.0.1:{receiver.server_port}/", command = ["sh", "-c", {json.dumps(command)}] }}
''')
    done = regatta.home / "runs" / regatta.json("run", job)["id"] / "on_finish.json"
    wait_for(done.exists, what="the end of the hook")
    told = json.loads(done.read_text())
    assert told["done"] is True and told["tries"] == 2 and len(receiver.got) == 2


def test_a_hook_that_was_not_finished_is_finished_by_the_next_master(regatta, tmp_path):
    """With the secrets that the client passed, which are nowhere else, and gone when it is done."""
    go = tmp_path / "go"
    regatta.env["HOOK_TOKEN"] = "b1946ac92492d234"
    command = f'test -e {go} && cat > got.json && printf %s "$HOOK_TOKEN" > token'
    job = regatta.job(f'''
name = "told"
command = ["true"]
pass = ["HOOK_TOKEN"]
on_finish = {{ command = ["sh", "-c", {json.dumps(command)}] }}
''')
    run = json.loads(regatta("run", "--output", "json", job).stdout)["id"]  # no run waits for its hook
    owed = regatta.home / "runs" / run / ".on_finish.owed"
    assert stat.S_IMODE(owed.stat().st_mode) == 0o600
    regatta("master", "--stop")
    go.touch()
    del regatta.env["HOOK_TOKEN"]
    regatta("ps")
    wait_for(lambda: not owed.exists(), what="the end of the hook")
    assert json.loads((owed.parent / "on_finish.json").read_text())["done"] is True
    assert (regatta.cwd / "token").read_text() == "b1946ac92492d234"
    left = [regatta.cwd / "got.json", *(p for p in regatta.home.rglob("*") if p.is_file())]
    assert [p for p in left if b"b1946ac92492d234" in p.read_bytes()] == []


def test_an_old_hook_is_not_run_and_a_secret_that_was_lost_is_not_set(regatta, tmp_path):
    go = tmp_path / "go"
    regatta.env["HOOK_TOKEN"] = "b1946ac92492d234"
    command = f'test -e {go} && printf %s "${{HOOK_TOKEN-none}}" > $REGATTA_RUN'
    job = regatta.job(f'''
name = "told"
command = ["true"]
pass = ["HOOK_TOKEN"]
on_finish = {{ command = ["sh", "-c", {json.dumps(command)}] }}
''')
    old, new = (regatta.json("run", job)["id"] for _ in range(2))
    owed = [regatta.home / "runs" / run / ".on_finish.owed" for run in (old, new)]
    regatta("master", "--stop")
    assert all(path.exists() for path in owed)
    owed[1].write_text("{")
    with contextlib.closing(sqlite3.connect(regatta.home / "regatta.db")) as db:
        db.execute("UPDATE run SET ended_ms = ended_ms - 7200000 WHERE id = ?", (old,))
        db.commit()
    go.touch()
    regatta("ps")
    wait_for(lambda: not any(path.exists() for path in owed), what="the end of the hooks")
    assert (regatta.cwd / new).read_text() == "none"
    assert not (regatta.cwd / old).exists()


def test_nothing_waits_for_a_webhook_that_nobody_answers(regatta):
    """One that nobody listens on, and one that takes the call and says nothing: runs end, and so does the master."""
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.create_server(("127.0.0.1", 0)) as closed:
        ports = closed.getsockname()[1], silent.getsockname()[1]
        closed.close()
        runs = []
        for port in ports:
            job = regatta.job(f'name = "told"\ncommand = ["true"]\non_finish = {{ url = "http://127.0.0.1:{port}/x" }}\n')
            runs.append(regatta.json("run", job)["id"])
        log = regatta.home / "master.log"
        wait_for(lambda: f"run {runs[0]}: on_finish.url: nobody listens on port {ports[0]} of 127.0.0.1; tried again" in log.read_text(),
                 what="the line about the first try")
        assert silent.accept()  # the second one is being told
        assert regatta.json("run", "--", "true")["verdict"] == "succeeded"
        regatta("master", "--stop")
        for run in runs:  # still owed: the next master goes on
            assert (regatta.home / "runs" / run / ".on_finish.owed").exists()
            assert regatta.status(run)["verdict"] == "succeeded"


def test_a_hook_that_is_given_up_is_an_event(regatta):
    job = regatta.job('name = "told"\ncommand = ["true"]\non_finish = { url = "http://no..host/" }\n')
    run = regatta.json("run", job)["id"]
    said = wait_for(lambda: [e for e in map(json.loads, regatta("events", run, "--output", "json").out.splitlines())
                             if e["kind"] == "hook"], what="the event")
    assert said[0]["text"].startswith("given up after 1 try: on_finish.url: ") and "no..host" in said[0]["text"]
    assert regatta.status(run)["verdict"] == "succeeded"
    wait_for(lambda: not (regatta.home / "runs" / run / ".on_finish.owed").exists(), what="nothing to be owed")
