"""The Python client against the real program: over the unix socket, and over HTTPS with pin and token."""
import http.server
import json
import os
import socketserver
import subprocess
import sys
import threading

import pytest

from conftest import BINARY, ROOT
from service import start_service

sys.path.append(str(ROOT / "clients" / "python"))
import regatta as client  # noqa: E402

STEPS = "for i in 1 2 3; do echo step $i loss=0.$i; done; echo oops >&2"
LOSS = {"loss": {"pattern": r"step (?<step>\d+) loss=(?<value>\S+)", "better": "lower"}}


@pytest.fixture
def master(regatta):
    with client.connect(home=str(regatta.home), program=str(BINARY)) as m:
        yield m


def test_a_run_is_submitted_followed_and_read(regatta, master, monkeypatch):
    (regatta.cwd / "src" / "deep").mkdir(parents=True)
    (regatta.cwd / "src" / "deep" / "data").write_text("payload\n")
    run = master.submit({"name": "py", "source": "src", "metrics": LOSS, "output": {"keep": ["model"]},
                         "command": ["sh", "-c", f"cat deep/data; {STEPS}; echo $WHO > model"]},
                        env={"WHO": "me"}, base_dir=str(regatta.cwd), tags=["py"])
    samples = list(run.stream_metrics())
    assert [(s.node, s.name, s.step, s.value) for s in samples] == [("worker-0", "loss", i, i / 10) for i in (1, 2, 3)]
    assert list(run.logs(follow=True)) == ["payload", "step 1 loss=0.1", "step 2 loss=0.2", "step 3 loss=0.3"]
    assert list(run.logs(stream="err", since="1h")) == ["oops"] and not list(run.logs(since="2999-01-01T00:00:00Z"))
    assert run.wait(timeout=60, check=True) is run and run.ended and run.exit_code == 0 and run.verdict == "succeeded"
    assert [(p.step, p.value) for p in run.series("loss", node="worker-0")] == [(1, 0.1), (2, 0.2), (3, 0.3)]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(client.RegattaError, match="pandas is not installed"):
        run.frame()
    assert run.metrics()["loss"]["all"]["best"] == 0.1
    assert [e.kind for e in run.events(follow=True)][0] == "accepted"
    kept = run.outputs()
    assert [f.path for f in kept] == ["worker-0/model"] and kept[0].sha256
    assert open(run.download("worker-0/model", str(regatta.cwd / "here"))).read() == "me\n"
    os.mkfifo(regatta.cwd / "pipe")
    with pytest.raises(client.Invalid, match="no regular file"):
        run.download("worker-0/model", str(regatta.cwd / "pipe"))
    assert [r.id for r in master.runs()] == [run.id] and master.run("py").id == run.id and list(master.runs(active=True)) == []
    assert run.tags == ["py"] and run.tag("good", remove=["py"]).tags == ["good"]
    assert [r.id for r in master.runs(tags=["good"], state="succeeded", name="p?", engine="local", since=1)] == [run.id]
    assert list(master.runs(tags=["good", "py"])) == [] and list(master.runs(since=9e9)) == []
    assert [n.text for n in run.note("seen").notes] == ["seen"] and run.refresh().notes[0].time > 0 and run.params == {}
    run.cleanup()
    with pytest.raises(client.NotFound):
        master.run(run.id)


def test_a_note_is_not_sent_twice_when_the_master_is_lost(tmp_path):
    """Tags are: twice is the same as once."""
    class Lost(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(self.path.rsplit("/", 1)[1])
            self.rfile.read(int(self.headers["Content-Length"]))  # a socket that is closed with bytes unread loses its answer
            if len(asked) == 3:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

        def address_string(self):
            return ""

        def log_message(self, *_):
            pass

    asked = []
    with socketserver.UnixStreamServer(str(tmp_path / "api.sock"), Lost) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            run = client.Run(client._transport.Transport.local(str(tmp_path), "false"), {"id": "r"})
            with pytest.raises(client.Unavailable, match="was lost before it answered"):
                run.note("seen")
            run._transport._start = None
            run.tag("good")
        finally:
            server.shutdown()
            thread.join()
    assert asked == ["notes", "tags", "tags"]


def test_a_block_that_is_left_cancels_its_run_and_errors_have_kinds(regatta, master):
    with pytest.raises(ZeroDivisionError):
        with master.submit({"name": "py", "count": 2, "command": ["sleep", "1000"]}) as run:
            with pytest.raises(client.Invalid, match="2 nodes"):
                next(run.logs())
            with pytest.raises(TimeoutError):
                run.wait(timeout=0.2)
            raise ZeroDivisionError
    assert run.ended and run.verdict == "cancelled"
    failed = master.submit(regatta.job('name = "f"\ncommand = ["sh", "-c", "exit $N"]\n'), set={"env.N": "0"}, env={"N": "3"}, tags=["f"])
    with pytest.raises(client.RunFailed, match="exit code 3") as e:
        failed.wait(check=True)
    assert e.value.run["id"] == failed.id and failed.tags == ["f"]
    with pytest.raises(client.Invalid) as wrong:
        master.submit({"name": "py", "comand": ["true"]})
    assert any("did you mean 'command'" in d for d in wrong.value.details)
    with pytest.raises(client.Invalid, match="unknown key"):
        master.submit(regatta.job('name = "f"\ncomand = ["true"]\n'))
    with pytest.raises(client.Invalid, match="no such file"):
        master.submit({"name": "py", "source": "none", "command": ["true"]}, base_dir=str(regatta.cwd))


def test_values_that_are_set_keep_their_type(regatta, master, monkeypatch):
    path = regatta.job('command = ["true"]\nparams = { p = 0 }\n')
    for value in "5", "0x10", "5 # x", '"5"', "two\nlines", "\U0001f6a3", "\x7f", "[1]", 5, 2**63 - 1, -2**63, True, 0.5:
        run = master.submit(path, set={"params.p": value})
        assert run.params == {"p": value} and type(run.params["p"]) is type(value)
        run.wait(timeout=60)
    with pytest.raises(client.Invalid, match="params.p is None"):
        master.submit(path, set={"params.p": None})
    assert master.submit(path, set={"params": {"a-b": 1e-05, "c": True}}).params == {"a-b": 1e-05, "c": True}
    assert master.submit(path, set={"env": {"A": 'x "y"'}, "command": ("true", "{}")}).wait(timeout=60).verdict == "succeeded"
    with pytest.raises(client.Invalid, match="env.*\U0001f6a3"):  # the name, and not that all of it is a string
        master.submit(path, set={"env": {"\U0001f6a3": "x"}})
    for value in float("nan"), float("-inf"), object(), 2**63, -2**63 - 1, "\ud800":
        with pytest.raises(client.Invalid, match="params.p"):
            master.submit(path, set={"params.p": value})
    monkeypatch.chdir(regatta.cwd)
    (regatta.cwd / "-x.toml").write_text('command = ["true"]\n')
    assert master.submit("-x.toml").wait(timeout=60).verdict == "succeeded"


def test_a_variable_that_is_not_utf8_stays_here(regatta, master, monkeypatch):
    monkeypatch.setitem(os.environb, b"LC_ODD", b"\xff\xfe")
    monkeypatch.setitem(os.environb, b"LC_GOOD", "\u00e9".encode())
    run = master.submit({"name": "py", "command": ["sh", "-c", "echo ${LC_ODD-none} $LC_GOOD"]})
    assert run.wait(timeout=60, check=True) and list(run.logs()) == ["none \u00e9"]


def test_a_block_may_remove_its_run(regatta, master):
    with master.submit({"name": "py", "command": ["true"]}) as run:
        run.wait(timeout=60).cleanup()
    with pytest.raises(client.NotFound):
        run.refresh()
    with pytest.raises(ZeroDivisionError):
        with master.submit({"name": "py", "command": ["true"]}) as run:
            run.wait(timeout=60).cleanup()
            raise ZeroDivisionError


def test_what_cannot_be_packed_is_refused(regatta, master):
    source = regatta.cwd / "src"
    (source / "deep").mkdir(parents=True)
    for make, why in [(lambda at: at.symlink_to("deep"), "'odd' is a link to a directory"),
                      (lambda at: at.symlink_to("nothing"), "'odd' is a link that leads nowhere"),
                      (os.mkfifo, "'odd' is a device, socket or pipe")]:
        make(source / "odd")
        with pytest.raises(client.Invalid, match=why):
            master.submit({"source": "src", "command": ["true"]}, base_dir=str(regatta.cwd))
        (source / "odd").unlink()


def test_a_killed_master_is_started_again_and_nothing_is_missed(regatta, master):
    run = master.submit({"name": "py", "command": ["sh", "-c", "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two"]},
                        base_dir=str(regatta.cwd))
    lines = run.logs(follow=True, since="1h")
    assert next(lines) == "one"
    subprocess.run(["kill", "-9", *map(str, regatta.pids("master"))], check=True)
    (regatta.cwd / "go").touch()
    assert list(lines) == ["two"]
    assert run.wait(timeout=60).verdict == "succeeded"


def test_another_master_is_known_by_its_pin(regatta, tmp_path):
    service = start_service(regatta, "127.0.0.1:0")
    url, pin = f"https://127.0.0.1:{service.port}", (regatta.home / "http").read_text().split()[1]
    far = client.connect(url, pin=pin + "\n", token=service.token + "\n")  # as they are read from files
    (tmp_path / "src").mkdir()
    run = far.submit({"name": "far", "command": ["true"], "source": "."}, base_dir=str(tmp_path / "src"))
    assert run.wait(timeout=60).verdict == "succeeded"
    with pytest.raises(client.Denied, match="another key than the pin says"):
        client.connect(url, pin="sha256//" + 43 * "A" + "=", token=service.token).version()
    with pytest.raises(client.Denied):
        client.connect(url, pin=pin, token="0" * 64).version()
    with pytest.raises(client.Denied, match="not of a CA that is trusted here: give its pin"):
        client.connect(url, token=service.token).version()
    with pytest.raises(client.Invalid, match="context"):
        far.submit(tmp_path / "job.toml")
    (regatta.home / "contexts").mkdir(exist_ok=True)
    (regatta.home / "contexts" / "lab.json").write_text(json.dumps({"url": url, "pin": pin, "token": service.token}))
    assert client.connect(context="lab", home=str(regatta.home)).run("far").id == run.id
    with pytest.raises(client.NotFound, match="context"):
        client.connect(context="none", home=str(regatta.home))
    for text in "{", "[]", '{"url": "https://x"}':
        (regatta.home / "contexts" / "bad.json").write_text(text)
        with pytest.raises(client.Invalid, match="is no context: 'regatta context add bad'"):
            client.connect(context="bad", home=str(regatta.home))
    with pytest.raises(client.Invalid, match="not the https URL"):
        client.connect("https://127.0.0.1:99999", token="x")
