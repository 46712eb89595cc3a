"""Variables of the command line and of the caller's shell."""
import os


def test_variables_of_the_command_line_win(regatta):
    job = regatta.job('''name = "envs"
env = { A = "job", B = "job" }
[roles.one]
env = { C = "role" }
command = ["sh", "-c", "echo $A-$B-$C-$D"]
''')
    (regatta.cwd / "first.env").write_text("# both\nA=file\nC='file'\nD=first\n")
    (regatta.cwd / "second.env").write_text('export D="two words" # why\n')
    told = regatta("run", "-f", "--env-file", "first.env", "--env-file", "second.env", "--env", "A=a=line", job)
    assert told.out == "one-0 | a=line-job-file-two words\n"
    assert '"D": "two words"' in regatta("plan", "--env-file", "second.env", "--output", "json", job).out.replace('":"', '": "')
    assert "HELLO=there" in regatta("run", "-f", "--env", "HELLO=there", "--", "env").out

    again = regatta("rerun", "envs", "-f", "--env", "B=new")
    assert again.out == "one-0 | a=line-new-file-two words\n" and 'env.B: "job" -> "new"' in again.err


def test_wrong_variables_are_one_line(regatta):
    (regatta.cwd / "bad.env").write_text("A=1\nhunter2\n")
    for words, line in (
            (["--env", "A"], "regatta: --env 'A': expected NAME=VALUE; `pass` in the job file takes variables of your shell"),
            (["--env", "1A=x"], "regatta: --env '1A' cannot be the name of a variable: use letters, digits and _, and no digit first"),
            (["--env", "REGATTA_X=x"], "regatta: --env 'REGATTA_X': names that start with REGATTA_ are set by regatta itself: choose another"),
            (["--env-file", "bad.env"], "regatta: bad.env:2: expected NAME=VALUE"),
            (["--env-file", "none.env"], "regatta: --env-file: open 'none.env': No such file or directory")):
        told = regatta("run", *words, "--", "true", code=3 if "none.env" in words else 2)
        assert told.err == line + "\n" and told.out == ""
    job = regatta.job('command = "true"\npass = ["OK_*",\n  "*", "REGATTA_*"]\n')
    told = regatta("run", job, code=2).err
    assert "job.toml:3:3: pass: '*' is no pattern of names" in told and "job.toml:3:8: pass: 'REGATTA_*'" in told


def test_the_shell_passes_what_the_job_asks_for(regatta):
    job = regatta.job('''name = "passes"
command = ["sh", "-c", "echo $WANDB_MODE-$WANDB_DIR-$OTHER; env | grep -c ^REGATTA_HOME= || true"]
pass = ["WANDB_*", "*_HOME"]
env = { WANDB_DIR = "job" }
''')
    told = regatta("run", "-f", job, env={"WANDB_MODE": "offline", "WANDB_DIR": "shell", "OTHER": "no"})
    assert told.out == "worker-0 | offline-job-\nworker-0 | 0\n"


def test_other_machines_get_less_of_the_shell(regatta, fleet):
    fleet.join("alpha")
    job = regatta.job('''name = "far"
engine = "hosts"
command = ["sh", "-c", "echo $WANDB_MODE-$TZ-$PYTHONPATH-$LD_LIBRARY_PATH-$FROM_LINE-${PATH##*:}"]
pass = ["WANDB_*"]
''')
    told = regatta("run", "-f", "--env", "FROM_LINE=x", job,
                   env={"WANDB_MODE": "offline", "TZ": "UTC", "PYTHONPATH": "/mine", "LD_LIBRARY_PATH": "/mine",
                        "PATH": f"{os.environ['PATH']}:/mine"})
    assert told.out == f"worker-0 | offline-UTC---x-{os.environ['PATH'].rsplit(':', 1)[-1]}\n"


def test_an_environment_that_is_too_large_is_said(regatta):
    """A request has a limit, which says nothing of its own."""
    env = {f"BIG_{i}": "x" * 100_000 for i in range(11)}
    job = regatta.job('command = ["true"]\npass = ["BIG_*"]\n')
    assert "environment are too large to send: they take more than 1024 KiB" in regatta("run", job, env=env, code=2).err
    env.popitem()
    assert regatta("run", job, env=env)
