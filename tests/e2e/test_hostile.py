"""Jobs that behave badly may harm themselves, but not the master, the agent or the machine."""
import os
import pty
import signal
import subprocess
import time

import pytest

from conftest import BINARY, processes, wait_for


def alive_with(mark):
    return [pid for pid, (cmd, _) in processes().items() if mark.encode() in cmd]


@pytest.mark.parametrize("script,size", [
    ("head -c 200000000 /dev/zero | tr '\\0' x", 200_000_000),
    ("i=0; while [ $i -lt 3000 ]; do printf x; i=$((i+1)); done", 3000),
])
def test_output_without_newlines(regatta, script, size):
    got = regatta.json("run", "--", "sh", "-c", script, timeout=120)
    assert got["verdict"] == "succeeded" and got["nodes"][0]["log_bytes"] == size
    assert regatta.log(got["id"], "worker-0") == b"x" * size


def test_binary_output_is_kept_byte_for_byte(regatta):
    data = bytes(range(256)) * 4096 + b"\xff\xfe\xed\xa0\x80\r\n\0\x1b[31m"
    (regatta.cwd / "data").write_bytes(data)
    got = regatta.json("run", "--", "cat", "data")
    assert regatta.log(got["id"], "worker-0") == data
    assert regatta("logs", "--raw", got["id"]).stdout == data


def test_escapes_never_reach_a_terminal_raw(regatta):
    evil = b"\x1b]0;owned\x07\x1b[2J\x9b31m\xe2\x80\xae \x1b[31mred\r\n" * 3
    (regatta.cwd / "data").write_bytes(evil)
    got = regatta.json("run", "--", "sh", "-c", "cat data; cat data >&2; exit 1", code=1)
    for args in (["logs", got["id"]], ["status", got["id"]], ["logs", "--merge", got["id"]]):
        parent, child = pty.openpty()
        p = subprocess.Popen([BINARY, *args], env=regatta.env, stdout=child, stderr=child, stdin=subprocess.DEVNULL)
        os.close(child)
        seen = b""
        while True:
            try:
                chunk = os.read(parent, 65536)
            except OSError:
                break
            if not chunk:
                break
            seen += chunk
        p.wait(timeout=20)
        os.close(parent)
        assert b"owned" in seen
        for bad in (b"\x1b]", b"\x07", b"\x1b[2J", b"\x9b", b"\xe2\x80\xae", b"\x1b[31mred"):
            assert bad not in seen, (args, bad)


def test_a_job_that_ignores_sigterm_is_killed(regatta):
    job = regatta.job('name = "i"\ncommand = ["sh", "-c", "trap \\"\\" TERM; echo up; while :; do sleep 0.1; done"]\n'
                      '[timeouts]\ngrace = "200ms"\n')
    run = regatta.submit(job)
    wait_for(lambda: regatta("logs", run).stdout == b"up\n", what="the job")
    regatta("kill", run)
    got = regatta.wait(run)
    assert got["verdict"] == "cancelled" and got["nodes"][0]["signal"] == signal.SIGKILL


def test_double_forked_daemons_do_not_survive(regatta):
    mark = f"987{os.getpid()}"
    script = f"setsid sh -c 'setsid sleep {mark} & setsid sleep {mark} & exit' & sleep 0.3; exit 0"
    got = regatta.json("run", "--", "sh", "-c", script)
    assert got["verdict"] == "succeeded"
    assert alive_with(f"sleep\0{mark}") == []


def test_a_daemon_that_holds_stdout_open(regatta):
    mark = f"986{os.getpid()}"
    start = time.monotonic()
    got = regatta.json("run", "--", "sh", "-c", f"echo before; (setsid sleep {mark} &) ; exit 0")
    assert got["verdict"] == "succeeded" and time.monotonic() - start < 30
    assert regatta.log(got["id"], "worker-0") == b"before\n"
    assert alive_with(f"sleep\0{mark}") == []


def test_a_job_that_closes_its_output(regatta):
    got = regatta.json("run", "--", "sh", "-c", "echo out; exec >&- 2>&-; sleep 0.3; exit 5", code=1)
    assert got["nodes"][0]["exit_code"] == 5 and regatta.log(got["id"], "worker-0") == b"out\n"


def test_a_job_that_leaves_its_session_is_found_at_cancel(regatta):
    mark = f"985{os.getpid()}"
    run = regatta.submit("--", "sh", "-c", f"setsid -f setsid -f sleep {mark}; echo up; sleep 1000")
    wait_for(lambda: regatta("logs", run).stdout == b"up\n", what="the job")
    regatta("kill", "--now", run)
    regatta.wait(run)
    assert alive_with(f"sleep\0{mark}") == []


def test_metric_lines_that_are_no_numbers_are_counted(regatta):
    lines = "loss=nan\\nloss=inf\\nloss=1e400\\nloss=0x10\\nloss=1.5\\n**metrics_data: a=b,c=2\\n"
    job = regatta.job(f"""name = "m"\ncommand = ["printf", "{lines}"]\n[metrics.loss]\npattern = 'loss=(?<value>\\S+)'\n""")
    got = regatta.json("run", job)
    assert got["metrics"]["loss"]["count"] == 1 and got["metrics"]["c"]["last"] == 2
    assert got["nodes"][0]["bad_values"] >= 5


def test_too_many_metric_names_do_not_hurt(regatta):
    script = regatta.script("for i in range(11000): print(f'**metrics_data: m{i}=1')")
    got = regatta.json("run", "--", "python3", script, timeout=120)
    assert got["verdict"] == "succeeded" and len(got["metrics"]) <= 10000


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small tmpfs needs root")
def test_a_full_disk_is_survived(regatta, tmp_path):
    home = tmp_path / "small"
    home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "regatta-test", home], check=True)
    try:
        regatta.home = home
        regatta.env["REGATTA_HOME"] = str(home)
        run = regatta.submit("--", "sh", "-c", "head -c 30000000 /dev/zero | tr '\\0' y; exit 0")
        wait_for(lambda: os.statvfs(home).f_bavail * 4096 < 300_000, what="the disk to be full")
        time.sleep(0.5)
        subprocess.run(["mount", "-o", "remount,size=200m", home], check=True)
        got = regatta.wait(run, 90)
        log = regatta.log(run, "worker-0")
        # Nothing is lost without a word: either all bytes are there, or the run says which are not.
        assert set(log) <= {ord("y")}
        assert len(log) == 30_000_000 or got["nodes"][0]["reason"], got
        regatta("master", "--stop", "--cancel", code=None)
        wait_for(lambda: not regatta.ours(), 20, "everything to leave")
    finally:
        regatta.kill_all()
        subprocess.run(["umount", "-l", home], check=False)


def test_many_bytes_on_many_streams(regatta):
    got = regatta.json("run", "-n", "8", "--", "sh", "-c", "head -c 3000000 /dev/urandom > own-$REGATTA_NODE; cat own-$REGATTA_NODE")
    for i in range(8):
        assert regatta.log(got["id"], f"worker-{i}") == (regatta.cwd / f"own-worker-{i}").read_bytes()


def test_out_of_memory_is_called_by_its_name(regatta):
    job = regatta.job('name = "oom"\n[roles.w]\nmemory = "64MiB"\ncommand = ["python3", "-c", "x = bytearray(1 << 30); print(len(x))"]\n')
    done = regatta("run", "--output", "json", job, code=None)
    if done.returncode == 8:
        pytest.skip("no writable memory cgroup here: " + done.out[:200])
    assert '"oom":true' in done.out and done.returncode == 1
