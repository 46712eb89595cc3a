"""The git commit of the source is recorded with the run, and nothing of the repository is run for that."""
import json
import os
import shutil
import stat
import subprocess

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
JOB = """
name = "rev"
command = ["sh", "-c", "cat value.txt; echo loss=1"]
metrics.loss = 'loss=([0-9.]+)'
"""


class Repository:
    def __init__(self, path):
        self.path = path
        path.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "A")
        self.git("config", "user.email", "a@example.com")
        (path / "job.toml").write_text(JOB)
        self.write("1\n")
        self.commit()

    def git(self, *words):
        return subprocess.run(["git", "-C", self.path, *words], check=True, capture_output=True,
                              text=True).stdout.strip()

    def write(self, text, name="value.txt"):
        (self.path / name).write_text(text)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")

    def head(self):
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(regatta):
    return Repository(regatta.cwd / "repository")


def run(regatta, repository, *words, **kw):
    return regatta.json("run", repository.path / "job.toml", *words, **kw)


def diff_of(regatta, got):
    return regatta.home / "runs" / got["id"] / "source.diff"


def test_a_run_has_the_commit_of_its_directory(regatta, repository):
    got = run(regatta, repository)
    assert got["source"] == {"revision": repository.head(), "branch": "main", "dirty": False}
    assert not diff_of(regatta, got).exists()
    assert f"git     {repository.head()[:12]} on main\n" in regatta("status", got["id"]).out
    assert repository.head() in (regatta.home / "runs" / got["id"] / "report.html").read_text()


def test_what_is_not_committed_is_kept(regatta, repository):
    repository.write("2\n")
    repository.write("new", "new.txt")
    got = run(regatta, repository)
    assert got["source"]["dirty"] is True
    text = diff_of(regatta, got).read_text()
    assert text.startswith("# not tracked: new.txt\n") and "-1\n+2\n" in text
    assert stat.S_IMODE(diff_of(regatta, got).stat().st_mode) == 0o600
    assert ", with changes that are not committed: source.diff\n" in regatta("status", got["id"]).out
    # The repository is as it was.
    assert repository.git("status", "--porcelain") == "M value.txt\n?? new.txt"


def test_only_the_source_directory_counts(regatta, repository):
    (repository.path / "code").mkdir()
    repository.write("3\n", "code/value.txt")
    repository.commit()
    repository.write("outside\n")
    got = run(regatta, repository, "--set", "source=code")
    assert got["source"] == {"revision": repository.head(), "branch": "main", "dirty": False}


def test_a_long_difference_is_cut(regatta, repository):
    repository.write("a line of some length\n" * 30000)
    got = run(regatta, repository)
    text = diff_of(regatta, got).read_text()
    assert 250000 < len(text) < 263000 and text.endswith("\n# cut here: the difference is longer than 256 KiB\n")


def test_no_repository_no_revision(regatta):
    regatta.job(JOB)
    (regatta.cwd / "value.txt").write_text("")
    assert regatta.json("run", "job.toml")["source"] is None


@pytest.mark.parametrize("packed", [False, True])
def test_without_git_the_files_are_read(regatta, repository, packed, tmp_path):
    if packed:
        repository.git("pack-refs", "--all")
    for name in "sh", "cat":
        (tmp_path / name).symlink_to(shutil.which(name))
    got = run(regatta, repository, env={"PATH": str(tmp_path)})
    assert got["source"] == {"revision": repository.head(), "branch": "main", "dirty": None}
    repository.git("checkout", "-q", "--detach")
    got = run(regatta, repository, env={"PATH": str(tmp_path)})
    assert got["source"] == {"revision": repository.head(), "branch": None, "dirty": None}


def test_a_linked_work_tree_has_its_own_commit(regatta, repository):
    linked = regatta.cwd / "linked"
    repository.git("worktree", "add", "-q", "-b", "other", str(linked))
    got = regatta.json("run", linked / "job.toml")
    assert got["source"] == {"revision": repository.head(), "branch": "other", "dirty": False}


def test_a_broken_repository_is_a_warning(regatta, repository):
    (repository.path / ".git" / "index").write_text("broken")
    done = regatta("run", repository.path / "job.toml")
    warnings = [line for line in done.err.splitlines() if "warning" in line]
    assert len(warnings) == 1 and "'git status' fails there" in warnings[0]


def test_no_program_of_the_repository_is_run(regatta, repository):
    """Monitors, hooks, filters, textconv and external diffs of its own settings."""
    spy = regatta.cwd / "spy"
    spy.write_text(f"#!/bin/sh\necho x >>{regatta.cwd}/ran\ncat\n")
    spy.chmod(0o755)
    repository.write("*.txt filter=own diff=own\n", ".gitattributes")
    repository.commit()
    for key in "core.fsmonitor", "filter.own.clean", "filter.own.process", "diff.own.textconv", "diff.own.command":
        repository.git("config", key, str(spy))
    repository.git("config", "filter.own.required", "true")
    repository.git("config", "diff.external", str(spy))
    hook = repository.path / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    shutil.copy(spy, hook)
    repository.write("2\n")
    os.utime(repository.path / "value.txt", (1, 1))
    got = run(regatta, repository)
    assert got["source"]["dirty"] is True and "-1\n+2\n" in diff_of(regatta, got).read_text()
    assert not (regatta.cwd / "ran").exists()


def test_the_callers_own_git_is_not_asked(regatta, repository):
    """Of a hook that starts a run: GIT_DIR names its repository."""
    got = run(regatta, repository, env={"GIT_DIR": "/nowhere"})
    assert got["source"]["revision"] == repository.head()


def test_a_comparison_says_that_revisions_differ(regatta, repository):
    one, old = run(regatta, repository)["id"], repository.head()[:12]
    repository.write("2\n")
    two = run(regatta, repository)["id"]
    repository.commit()
    three, new = run(regatta, repository)["id"], repository.head()[:12]
    assert f"git revisions differ: {old} ({one}); {new} ({three})" in regatta("compare", one, three, code=None).out
    assert f"git revisions differ: {old} ({one}); {old}+ ({two})" in regatta("compare", one, two, code=None).out
    assert "revisions differ" not in regatta("compare", one, one, code=None).out


def test_rerun_says_what_commit_it_has(regatta, repository):
    one, old = run(regatta, repository)["id"], repository.head()
    assert "nothing differs" in regatta("rerun", one).err
    repository.write("2\n")
    repository.commit()
    again = regatta("rerun", one)
    assert f"git revision: {old[:12]} -> {repository.head()[:12]}\n" in again.err
    repository.write("3\n")
    now = repository.head()[:12]
    again = regatta("rerun", "--output", "json", one)
    assert f"git revision: {old[:12]} -> {now} with changes that are not committed\n" in again.err
    repository.git("checkout", "-q", ".")
    again = regatta("rerun", json.loads(again.stdout)["id"])
    assert f"git revision: {now} with changes that are not committed -> {now}\n" in again.err


def test_the_source_of_an_earlier_run_has_the_commit_of_then(regatta, repository):
    repository.write("2\n")
    one, old = run(regatta, repository, "--set", "source=."), repository.head()
    repository.write("3\n")
    repository.commit()
    got = regatta.json("rerun", one["id"])
    assert got["source"] == one["source"] == {"revision": old, "branch": "main", "dirty": True}
    assert diff_of(regatta, got).read_text() == diff_of(regatta, one).read_text()
