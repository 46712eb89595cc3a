"""What a node does before its job starts: setup."""
import os
import signal
import tarfile
import time

from conftest import processes, wait_for


def test_setup_runs_once_on_each_node_before_anything_starts(regatta):
    regatta.job('''
name = "s"
source = "src"
setup = ["echo first $REGATTA_NODE $COLOR; echo made > made", "echo second >&2; test -f made"]
env = { COLOR = "red" }
[roles.ps]
command = ["sh", "-c", "cat made more; sleep 60"]
service = true
setup = "echo third > more"
[roles.w]
count = 2
command = ["sh", "-c", "cat made; ls; echo running"]
''')
    (regatta.cwd / "src").mkdir()
    (regatta.cwd / "src" / "file").write_text("x")
    run = regatta.submit("job.toml")
    assert regatta.wait(run)["verdict"] == "succeeded"
    for node in ("w-0", "w-1"):
        log = regatta.log(run, node).decode()
        assert log.startswith(f"+ echo first $REGATTA_NODE $COLOR; echo made > made\nfirst {node} red\n+ echo second"), log
        assert log.endswith("made\nfile\nmade\nrunning\n")
        assert regatta.log(run, node, err=True) == b"second\n"
    assert "third" in regatta.log(run, "ps-0").decode()


def test_a_command_that_fails_is_named_with_its_code_and_shown(regatta):
    regatta.job('name = "s"\ncommand = ["touch", "never"]\nsetup = ["echo before", "echo because >&2; exit 7", "touch after"]')
    run = regatta.submit("job.toml")
    status = regatta.wait(run)
    assert status["verdict"] == "failed"
    assert "setup 'echo because >&2; exit 7' failed with exit code 7: because" in status["cause"]
    assert regatta.log(run, "worker-0", err=True) == b"because\n"
    assert "because" in regatta("logs", run).out
    assert not (regatta.cwd / "after").exists() and not (regatta.cwd / "never").exists()


def test_setup_may_install_the_command_itself(regatta):
    regatta.job('''name = "s"\nsource = "src"\ncommand = ["./tool"]
setup = ["printf '#!/bin/sh\\necho tool\\n' > tool; chmod +x tool"]''')
    (regatta.cwd / "src").mkdir()
    run = regatta.submit("job.toml")
    assert regatta.wait(run)["verdict"] == "succeeded"
    assert regatta.log(run, "worker-0").endswith(b"\ntool\n")


def test_setup_has_a_time_limit_of_its_own(regatta):
    regatta.job('name = "s"\ncommand = ["true"]\nsetup = ["sleep 600"]\n[timeouts]\nsetup = "1s"\ngather = "30s"')
    run = regatta.submit("job.toml")
    status = regatta.wait(run, seconds=30)
    assert "setup 'sleep 600' was not done within 1.0 s (timeouts.setup)" in status["cause"], status["cause"]
    assert status["exit_code"] == 6


def sleeper(number):
    """The pid of `sleep NUMBER`, and nothing else."""
    for pid, (cmd, _) in processes().items():
        if cmd == b"sleep\0" + str(number).encode() + b"\0":
            return pid
    return None


def test_cancel_stops_setup(regatta):
    regatta.job('name = "s"\ncommand = ["true"]\nsetup = ["setsid sleep 61733 & sleep 61734"]')
    run = regatta.submit("job.toml")
    wait_for(lambda: sleeper(61733) and sleeper(61734))
    before = time.monotonic()
    regatta("kill", run)
    assert regatta.wait(run)["verdict"] == "cancelled"
    assert time.monotonic() - before < 20
    assert not sleeper(61733) and not sleeper(61734)


def test_setup_goes_on_when_agent_and_master_are_killed_and_is_not_run_twice(regatta):
    go = regatta.cwd / "go"
    regatta.job('''name = "s"\ncommand = ["echo", "running"]
setup = ["echo a >> count", "while ! test -f go; do sleep 0.1; done", "echo b >> count"]''')
    run = regatta.submit("job.toml")
    wait_for(lambda: (regatta.cwd / "count").exists() and b"+ while" in regatta.log(run, "worker-0"))
    for pid in regatta.pids("node-agent") + regatta.pids("master"):
        os.kill(pid, signal.SIGKILL)
    regatta("ps")  # starts another master
    wait_for(lambda: len(regatta.pids("node-agent")) == 1)
    go.write_text("")
    assert regatta.wait(run)["verdict"] == "succeeded"
    assert (regatta.cwd / "count").read_text() == "a\nb\n"
    log = regatta.log(run, "worker-0").decode()
    assert log == "+ echo a >> count\n+ while ! test -f go; do sleep 0.1; done\n+ echo b >> count\nrunning\n"


def test_a_killed_shim_of_setup_is_taken_over(regatta):
    regatta.job('name = "s"\ncommand = ["echo", "running"]\nsetup = ["while ! test -f go; do sleep 0.1; done; exit 3"]')
    run = regatta.submit("job.toml")
    wait_for(lambda: regatta.pids("shim"))
    for pid in regatta.pids("shim"):
        os.kill(pid, signal.SIGKILL)
    (regatta.cwd / "go").write_text("")
    assert "failed with exit code 3" in regatta.wait(run)["cause"]


def test_another_attempt_on_the_same_machine_does_not_set_up_again(regatta):
    regatta.job('''name = "s"\nretries = 1\nsetup = ["echo a >> count"]
command = ["sh", "-c", "test $REGATTA_ATTEMPT = 2"]''')
    run = regatta.submit("job.toml")
    assert regatta.wait(run)["verdict"] == "succeeded"
    assert (regatta.cwd / "count").read_text() == "a\n"


def test_hosts_set_up_and_unpack_too(regatta, fleet):
    fleet.join("a", "b")
    with tarfile.open(regatta.cwd / "set.tar.gz", "w:gz") as t:
        t.add("/etc/hostname", "name")
    run = regatta.submit(regatta.job('''
        engine = "hosts"
        count = 2
        command = ["sh", "-c", "ls set; cat made"]
        setup = ["echo on $REGATTA_NODE | tee made"]
        [[data]]
        src = "set.tar.gz"
        unpack = true
    '''))
    assert regatta.wait(run)["verdict"] == "succeeded"
    for node in regatta.status(run)["nodes"]:
        want = f"+ echo on $REGATTA_NODE | tee made\non {node['name']}\nname\non {node['name']}\n"
        assert regatta.log(run, node["name"]).decode() == want
