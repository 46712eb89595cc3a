"""A run again, from its record."""
import shutil
import subprocess

import pytest

JOB = '''
name = "first"
source = "src"
command = ["sh", "-c", "cat word; echo $N $MY_TOKEN"]
[env]
N = "1"
MY_TOKEN = "hush"
'''


def test_a_run_is_repeated_from_its_record(regatta):
    (regatta.cwd / "src").mkdir()
    (regatta.cwd / "src" / "word").write_text("old\n")
    (regatta.cwd / "src" / "word.o").write_text("left out\n")
    (regatta.cwd / "src" / ".gitignore").write_text("*.o\n")
    first = regatta("run", "--output", "json", regatta.job(JOB))
    assert "source: 1 name is left out" in first.err
    (regatta.cwd / "src" / "word").write_text("new\n")

    assert "has no secrets: env.MY_TOKEN" in regatta("rerun", "first", code=2).err
    again = regatta("rerun", "first", "-f", "--set", 'env.N="2"', "--name", "second", env={"MY_TOKEN": "mine"})
    assert again.out == "worker-0 | old\nworker-0 | 2 mine\n"
    assert "again, with the source that it had" in again.err and "env.MY_TOKEN is taken from the environment" in again.err
    assert '  name: "first" -> "second"' in again.err and '  env.N: "1" -> "2"' in again.err
    assert "mine" not in again.err.replace("again", "")

    third = regatta("rerun", "second", "-f", "--set", "source=src", "--set", "env.MY_TOKEN=given")
    assert third.out == "worker-0 | new\nworker-0 | 2 given\n" and "env.MY_TOKEN: given anew" in third.err
    for blob in (regatta.home / "blobs").iterdir():
        blob.unlink()
    gone = regatta("rerun", "first", "--set", "env.MY_TOKEN=x", code=3).err
    assert "has the source of that run no more" in gone
    assert "no run 'none'" in regatta("rerun", "none", code=3).err


def test_a_secret_that_came_from_the_shell_must_be_there_again(regatta):
    job = regatta.job('name = "passes"\npass = ["MY_*"]\ncommand = ["sh", "-c", "echo $MY_TOKEN $MY_WORD"]\n')
    first = regatta("run", "-f", job, env={"MY_TOKEN": "hush", "MY_WORD": "w"})
    assert first.out == "worker-0 | hush w\n"
    refused = regatta("rerun", "passes", code=2).err
    assert "has no secrets: MY_TOKEN; export" in refused and len(refused.splitlines()) == 1
    assert len(regatta.json("ps", "--all")) == 1
    assert regatta("rerun", "passes", "-f", "--name", "second", env={"MY_TOKEN": "mine"}).out == "worker-0 | mine\n"
    assert regatta("rerun", "passes", "-f", "--name", "third", "--env", "MY_TOKEN=given").out == "worker-0 | given\n"


def test_every_secret_that_is_missing_is_named_and_what_is_left_out_is_said(regatta):
    names = [f"SERVICE_NUMBER_{i:02}_TOKEN" for i in range(20)]
    secrets = "".join(f'{n} = "hush"\n' for n in names)
    regatta("run", regatta.job('name = "many"\ncommand = ["true"]\nparams = { lr = 1, model = "a" }\n[env]\n' + secrets
                              + '[roles.worker]\nenv = { ROLE_TOKEN = "hush" }\n'))
    refused = regatta("rerun", "many", code=2).err
    names.append("ROLE_TOKEN")
    assert all(n in refused for n in names) and "roles.worker.env.ROLE_TOKEN" in refused and len(refused.splitlines()) == 1
    again = regatta("rerun", "many", "--name", "again", "--set", "params={lr=1}", env=dict.fromkeys(names, "x")).err
    assert '  params.model: "a" -> not set\n' in again and "params.lr" not in again


def test_what_is_given_for_one_secret_is_not_for_another(regatta):
    regatta("run", regatta.job('name = "two"\ncommand = ["sh", "-c", "echo $A_TOKEN $A_TOKEN_KEY"]\n'
                               'env = { A_TOKEN = "a", A_TOKEN_KEY = "b" }\n'))
    given = ["--set", "env.A_TOKEN_KEY=k"]
    assert "has no secrets: env.A_TOKEN; export the variable, " in regatta("rerun", "two", *given, code=2).err
    again = regatta("rerun", "two", "-f", *given, "--env", "A_TOKEN=given", "--name", "again", env={"A_TOKEN": "of the shell"})
    assert again.out == "worker-0 | given k\n" and "taken from the environment" not in again.err


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_a_directory_that_was_changed_since_is_a_difference(regatta):
    job = regatta.job('name = "here"\ncommand = ["true"]\n')
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-C", regatta.cwd, *words], check=True)
    run = regatta.json("run", job)["id"]
    assert "  nothing differs\n" in regatta("rerun", run).err
    (regatta.cwd / "job.toml").write_text("changed")
    said = regatta("rerun", run).err
    assert "  git revision: " in said and " with changes that are not committed\n" in said and "nothing differs" not in said
