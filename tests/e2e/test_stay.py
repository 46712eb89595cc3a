"""wait, attach and --exit-code: the end of a run that somebody else has started."""
import signal

HELD = 'command = ["sh", "-c", "echo here; until [ -e %s ]; do sleep 0.05; done; exit %d"]\n'


def held(regatta, name, code):
    """A run that ends with this exit code once its file is there."""
    return regatta.submit(regatta.job(f'name = "{name}"\n' + HELD % (regatta.cwd / name, code), f"{name}.toml"))


def test_waiting_ends_with_the_runs(regatta):
    good, bad = held(regatta, "good", 0), held(regatta, "bad", 3)
    assert regatta("status", bad, "--exit-code", code=8).err == f"regatta: {bad} has not ended: it has no exit code yet\n"
    waiting = regatta.start("wait", good, "bad")
    logs = regatta.start("logs", "bad", "-f", "--exit-code")
    events = regatta.start("events", "bad", "-f", "--exit-code")
    (regatta.cwd / "good").touch()
    assert waiting.stdout.readline().startswith(f"{good} succeeded after ".encode())
    assert waiting.poll() is None and logs.poll() is None and events.poll() is None
    (regatta.cwd / "bad").touch()
    out, err = waiting.communicate(timeout=60)
    assert out.startswith(f"{bad} failed after ".encode()) and b"exit code 3" in out and not err
    assert logs.communicate(timeout=60)[0] == b"here\n"
    events.communicate(timeout=60)
    assert (waiting.returncode, logs.returncode, events.returncode) == (1, 1, 1)

    assert regatta("wait", good, "--output", "json").out.startswith('[{"id":')
    for args in (["wait", "bad"], ["attach", "bad"], ["status", "bad", "--exit-code"], ["logs", "bad", "--exit-code"]):
        regatta(*args, code=1)
    regatta("wait", good, "bad", "--job-code", code=3)
    assert regatta("wait", good, "none", code=3).out == ""  # all are looked for before the first is waited for
    regatta("wait", "bad", good, code=1)  # whatever ended after it


def test_attached_one_sees_the_run_and_may_leave_it(regatta):
    run = held(regatta, "long", 0)
    for sig in (signal.SIGINT, signal.SIGTERM):
        attached = regatta.start("attach", "long", "-f")
        assert attached.stdout.readline() == b"worker-0 | here\n"
        attached.send_signal(sig)
        assert b"goes on without this terminal" in attached.communicate(timeout=60)[1] and attached.returncode == 7
    waiting = regatta.start("wait")
    assert b"latest run" in waiting.stderr.readline()
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(60) == -signal.SIGINT
    assert regatta.status(run)["state"] == "running"

    attached = regatta.start("attach", run)
    (regatta.cwd / "long").touch()
    out, _ = attached.communicate(timeout=60)
    assert attached.returncode == 0 and out.startswith(f"{run} succeeded after ".encode())


def test_a_dry_run_is_a_plan(regatta):
    job = regatta.job('command = ["true"]\n')
    assert regatta("run", "--dry-run", job).out == regatta("plan", job).out
    assert not regatta.pids("master")
