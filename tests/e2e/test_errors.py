"""Bad input and missing things: one clear line that says what, where and what next; nothing half done."""
import contextlib
import os
import socket
import sqlite3
import subprocess

import pytest

from conftest import BINARY, wait_for


def one_line(done, *words):
    lines = [l for l in done.err.splitlines() if l.strip()]
    assert lines, "nothing was said"
    for word in words:
        assert any(word in l for l in lines), f"{word!r} not in {done.err!r}"
    assert "Traceback" not in done.err and "Assert" not in done.err


def test_unknown_key_names_place_and_suggestion(regatta):
    job = regatta.job('name = "x"\n[roles.t]\ncuont = 3\ncommand = ["true"]\n')
    one_line(regatta("run", job, code=2), "job.toml:3:1", "unknown key 'cuont'", "did you mean 'count'")
    assert regatta.json("ps", "-a") == []


def test_all_problems_of_a_file_in_one_go(regatta):
    job = regatta.job('name = "BAD NAME"\nengine = "lcoal"\nmax_runtime = "soon"\n[roles.t]\ncount = "x"\ncolour = 1\n')
    done = regatta("run", job, code=2)
    assert sum("job.toml:" in line for line in done.err.splitlines()) >= 4


@pytest.mark.parametrize("env", ['env = { PATH = "/nowhere" }\n[roles.w]\n', '[roles.w]\nenv = { PATH = "/nowhere" }\n'])
def test_a_command_is_searched_where_the_job_will_find_it(regatta, env):
    """In the PATH that the job file gives it, before anything starts."""
    got = regatta.json("run", regatta.job(f'{env}command = ["true"]\n'), code=3)
    assert got["cause"] == "w-0: command 'true' not found in PATH"
    assert all(node["attempt"] == 0 for node in regatta.status(got["id"])["nodes"])


@pytest.mark.parametrize("text,words", [
    ('name = "x"\ncommand = ["true"]\ncount = "many"\n', ["job.toml:3:", "whole number"]),
    ('name = "x"\ncommand = [\n', ["job.toml:", "expected"]),
    ('name = "x"\ncommand = ["true"]\nengine = "aws.batch"\n', ["job.toml:3:", "aws.batch", "local"]),
    ('name = "x"\ncommand = ["true"]\nstrategy = "rols"\n', ["job.toml:3:", "roles"]),
    ('name = "x"\n[roles.a]\ncommand = ["true"]\nafter = "b"\n', ["'b'"]),
    ('name = "x"\ncommand = ["true"]\n[metrics.m]\npattern = "(unclosed"\n', ["m"]),
])
def test_wrong_job_files(regatta, text, words):
    job = regatta.job(text)
    one_line(regatta("run", job, code=2), *words)
    one_line(regatta("plan", job, code=2), *words)
    assert regatta.json("ps", "-a") == []


def test_missing_file(regatta):
    one_line(regatta("run", "nowhere.toml", code=3), "nowhere.toml", "does not exist")


def test_command_not_found_starts_nothing(regatta):
    job = regatta.job('name = "x"\n[roles.a]\ncommand = ["touch", "started"]\n[roles.b]\ncommand = ["no-such-program"]\n')
    done = regatta("run", job, code=3)
    assert "no-such-program" in done.out + done.err and "not found" in done.out + done.err
    assert not (regatta.cwd / "started").exists()


def test_unreadable_source(regatta):
    one_line(regatta("run", regatta.job('name = "x"\nsource = "nope"\ncommand = ["true"]\n'), code=3), "nope")
    if os.geteuid() != 0:
        secret = regatta.cwd / "secret"
        secret.mkdir(mode=0)
        one_line(regatta("run", regatta.job('name = "x"\nsource = "secret"\ncommand = ["true"]\n'), code=4), "secret")
    assert regatta.json("ps", "-a") == []


def test_a_taken_port_is_found_before_anything_starts(regatta):
    with socket.socket() as s:
        s.bind(("0.0.0.0", 0))
        s.listen()
        port = s.getsockname()[1]
        job = regatta.job(f'name = "x"\n[roles.a]\ncommand = ["touch", "started"]\nport = {port}\n')
        done = regatta("run", job, code=2)
    assert f"port {port}" in done.out + done.err and "taken" in done.out + done.err
    assert not (regatta.cwd / "started").exists()


def test_a_second_master_says_who_is_first(regatta):
    regatta("ps")
    pid = regatta.pids("master")[0]
    one_line(regatta("master", code=2), str(pid), "already")


def test_master_port_taken(regatta):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        one_line(regatta("master", "--listen", f"127.0.0.1:{port}", code=2), str(port), "taken")


def test_a_newer_database_is_left_alone(regatta):
    regatta("ps")
    regatta("master", "--stop")
    db = regatta.home / "regatta.db"
    wait_for(lambda: not regatta.pids("master"), what="the master to leave")
    with contextlib.closing(sqlite3.connect(db)) as c:
        c.execute("PRAGMA user_version = 999")
    one_line(regatta("ps", code=8), "999", "newer")
    one_line(regatta("master", code=8), "999", "newer")
    with contextlib.closing(sqlite3.connect(db)) as c:
        assert c.execute("PRAGMA user_version").fetchone()[0] == 999


def test_a_database_that_is_none(regatta):
    regatta.home.mkdir(mode=0o700)
    (regatta.home / "regatta.db").write_bytes(b"this is not a database" * 100)
    one_line(regatta("master", code=8), "regatta.db")


def test_unknown_words_get_a_suggestion(regatta):
    one_line(regatta("statsu", code=2), "statsu", "status")
    one_line(regatta("run", "--detahc", "--", "true", code=2), "--detahc", "--detach")
    one_line(regatta("explain", "roles.trainer.cuont", code=None), "count")


def test_a_home_that_cannot_be_made(regatta):
    one_line(regatta("ps", code=None, env={"REGATTA_HOME": "/proc/nowhere/x"}), "/proc/nowhere")


def test_no_home_at_all(regatta):
    env = {k: v for k, v in os.environ.items() if k not in ("HOME", "REGATTA_HOME", "XDG_STATE_HOME")}
    done = subprocess.run([BINARY, "ps"], env=env, capture_output=True, text=True, timeout=20)
    assert done.returncode == 2 and "REGATTA_HOME" in done.stderr


def test_a_long_home_path_works(regatta, tmp_path):
    home = tmp_path / ("d" * 80) / ("e" * 80) / "home"
    regatta.home = home
    regatta.env["REGATTA_HOME"] = str(home)
    assert regatta.json("run", "--", "true")["verdict"] == "succeeded"
