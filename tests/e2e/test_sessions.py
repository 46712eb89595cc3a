"""A login of the dashboard, and where the master is found, over restarts; and a master that is stopped."""
import os
import signal
import socket
import stat
import time

import pytest

from conftest import wait_for
from service import Service


def restart(regatta):
    regatta("master", "--stop")
    wait_for(lambda: not regatta.ours(), what="the master to leave")
    regatta("ps")
    return Service(regatta)


def test_a_session_and_the_port_survive_a_restart(regatta):
    regatta("ps")
    first = Service(regatta)
    cookie = {"Cookie": first.login()}
    assert first.get("/api/v1/me", token=None, headers=cookie).json["scope"] == "admin"
    again = restart(regatta)
    assert again.port == first.port
    assert again.get("/api/v1/me", token=None, headers=cookie).json["scope"] == "admin"
    kept = regatta.home / "sessions"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert cookie["Cookie"].split("=")[1] not in kept.read_text()
    # One that was left stays over.
    assert again.call("POST", "/api/v1/logout", token=None, headers={**cookie, "Regatta-Request": "1"}).status == 200
    assert restart(regatta).get("/api/v1/me", token=None, headers=cookie).status == 401


def test_a_file_of_sessions_that_is_damaged_costs_a_login_only(regatta):
    (regatta.home).mkdir(parents=True, exist_ok=True)
    regatta.home.chmod(0o700)
    (regatta.home / "sessions").write_bytes(b"\0junk admin 1\n" + b"0" * 64 + b" admin 99999999999999999\nxyz\n\n")
    regatta("ps")
    service = Service(regatta)
    assert service.get("/api/v1/me", token=None, headers={"Cookie": service.login()}).status == 200


def master_pid(regatta):
    return int((regatta.home / "lock").read_text())


def test_a_page_keeps_its_master(regatta):
    """By its event stream, and one that asks now and then without a stream, too."""
    regatta.env["REGATTA_IDLE"] = "1s"
    regatta("ps")
    service, pid = Service(regatta), master_pid(regatta)
    with service.events() as events:
        began = time.monotonic()
        wait_for(lambda: time.monotonic() - began > 3, what="three idle times")
        assert events.status == 200 and master_pid(regatta) == pid and pid in regatta.ours()
        events.sock.shutdown(socket.SHUT_RDWR)
    began = time.monotonic()
    wait_for(lambda: service.get("/api/v1/runs").status == 200 and time.monotonic() - began > 2, what="two idle times")
    assert pid in regatta.ours()
    wait_for(lambda: pid not in regatta.ours(), what="the master to leave when nobody asks")


def test_a_stopped_master_is_told_of(regatta):
    regatta("ps")
    pid = master_pid(regatta)
    os.kill(pid, signal.SIGSTOP)
    try:
        asking = regatta.start("ps")
        told = wait_for(lambda: asking.stderr.readline(), what="the line")
        assert "has not answered for 3 s" in (told if isinstance(told, str) else told.decode())
    finally:
        os.kill(pid, signal.SIGCONT)
    assert asking.wait(30) == 0


@pytest.mark.parametrize("value", ["3000", "0s", "soon"])
def test_an_idle_time_that_is_no_duration_is_told(regatta, value):
    regatta.env["REGATTA_IDLE"] = value
    told = regatta("ps").err
    assert f"REGATTA_IDLE is '{value}' and is ignored: expected a duration such as 90s or 10m\n" in told
    assert "REGATTA_IDLE" not in regatta("ps").err  # only the command that starts a master says so


def submit_to_stopped(regatta, pid, how=()):
    """`regatta run` that waits for the answer of a master that is stopped."""
    os.kill(pid, signal.SIGSTOP)
    child = regatta.start("run", *how, "--", "sleep", "100")
    if "--repeat" in how:
        time.sleep(1)  # its threads do not say that they wait
    else:
        assert b"has not answered for 3 s" in child.stderr.readline()
    return child


@pytest.mark.parametrize("how", [[], ["--detach"], ["--repeat", "4", "--parallel", "2"]], ids=["run", "detach", "repeat"])
def test_an_interrupt_ends_the_wait_for_a_stopped_master(regatta, how):
    regatta("ps")
    pid = master_pid(regatta)
    child = submit_to_stopped(regatta, pid, how)
    try:
        child.send_signal(signal.SIGINT)
        asked = time.monotonic()
        assert child.wait(20) == 7
        assert time.monotonic() - asked < 10  # the call itself would wait for thirty seconds
        assert b"the run may still start; 'regatta ps' shows it" in child.stderr.read()
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("how", [[], ["--detach"]], ids=["run", "detach"])
def test_an_interrupt_while_submitting_cancels_once_the_master_answers(regatta, how):
    regatta("ps")
    pid = master_pid(regatta)
    child = submit_to_stopped(regatta, pid, how)
    try:
        child.send_signal(signal.SIGINT)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert child.wait(30) == 7
    [run] = regatta.json("ps", "-a")
    assert regatta.wait(run["id"])["verdict"] == "cancelled"
