"""Words that people put on runs."""
import json
import os
import signal

from conftest import wait_for


def test_tags_and_notes_are_kept_with_a_run(regatta):
    regatta("run", "--name", "one", "--tag", "draft", "--tag", "team:a", "--tag", "draft", "--", "true")
    assert regatta("tag", "one").out == "draft\nteam:a\n"
    assert regatta("tag", "one", "+base", "-draft", "-none").out == "base\nteam:a\n"
    regatta("note", "one", "first\nand more")
    regatta("note", "one", "second")
    run = regatta.status("one")
    assert run["tags"] == ["base", "team:a"] and [n["text"] for n in run["notes"]] == ["first\nand more", "second"]
    assert run["created_ms"] <= run["notes"][0]["time_ms"] <= run["notes"][1]["time_ms"]
    shown = regatta("status", "one").out
    assert "tags    base,team:a\n" in shown and "  first\n        and more\nnote    " in shown
    table = regatta("ps", "-a").out.splitlines()
    assert table[0].split()[-1] == "TAGS" and table[1].split()[-1] == "base,team:a"
    events = [json.loads(line) for line in regatta("events", "one", "--output", "json").out.splitlines()]
    assert [e["text"] for e in events if e["kind"] == "tag"] == ["-draft", "+base"]

    # Files and report of the ended run follow; the next master knows all of it.
    report = regatta.home / "runs" / run["id"] / "report.html"
    wait_for(lambda: "second" in report.read_text() and "base, team:a" in report.read_text(), what="the report")
    assert '"tags":["base","team:a"]' in (report.parent / "summary.json").read_text()
    for pid in regatta.pids("master"):
        os.kill(pid, signal.SIGKILL)
    assert regatta.status("one")["notes"] == run["notes"] and regatta.json("ps", "-a")[0]["tags"] == run["tags"]

    # A run that is repeated has the tags, not the notes.
    regatta("rerun", "one", "--name", "two", "--tag", "again")
    two = regatta.status("two")
    assert two["tags"] == ["again", "base", "team:a"] and two["notes"] == []
    regatta("run", "--name", "plain", "--", "true")
    plain = regatta.status("plain")["id"]
    assert regatta("prune", "--older-than", "1ms", "--keep-tagged", "--dry-run").out == plain + "\n"
    regatta("prune", "--older-than", "1ms", "--keep-tagged")
    assert [r["name"] for r in regatta.json("ps", "-a")] == ["two", "one"]
    regatta("cleanup", "one")


def test_an_active_run_is_tagged_too(regatta):
    run = regatta.submit("--", "sleep", "1000")
    assert regatta("tag", run, "+now").out == "now\n"
    regatta("note", run, "it runs")
    assert regatta.json("ps")[0]["tags"] == ["now"]
    regatta("kill", run)
    done = regatta.wait(run)
    assert done["tags"] == ["now"] and done["notes"][0]["text"] == "it runs"


def test_wrong_tags_are_one_line(regatta):
    regatta("run", "--name", "one", "--", "true")
    many = [f"+t{i}" for i in range(65)]
    for words, line in ((["tag", "one", "x"], "'x': write +TAG to add a tag, -TAG to remove one"),
                        (["tag", "one", "+a\nb"], "a tag has a line break or control character: it is one printable word"),
                        (["tag", "one", "+" + "x" * 65], "tag 'xxxxxxxxxxxxxxxxxxxx...' has 65 bytes: at most 64"),
                        (["tag", "one", *many], "65 tags: a run has at most 64"),
                        (["run", "--tag", "a b", "--", "true"],
                         "--tag: tag 'a b' has a blank or comma: it is one word; give several each on its own"),
                        (["note", "one", "\x1b[2J"], "the note has a control character: only line breaks and tabs are taken"),
                        (["note", "one", " "], "the note is empty")):
        told = regatta(*words, code=2)
        assert told.err == f"regatta: {line}\n" and told.out == ""
    assert regatta("tag", "one", *many[:64]).out.count("\n") == 64
    assert "would have 65 tags: at most 64" in regatta("tag", "one", "+more", code=2).err
    assert regatta("tag", "one", "+more", "-t0").out.count("\n") == 64
    assert "no run 'none'" in regatta("tag", "none", "+a", code=3).err


def test_more_tags_than_a_run_may_have_are_one_line(regatta):
    run = regatta.submit("--", "true")
    many = [f"+t{i}" for i in range(10000)]
    assert regatta("tag", run, *many, code=2).err == "regatta: 10000 tags: a run has at most 64\n"
    assert len(regatta("tag", run, *many[:64]).out.split()) == 64
    assert regatta("tag", run, "+more", code=2).err == f"regatta: run '{run}' would have 65 tags: at most 64\n"
    assert "more" in regatta("tag", run, "+more", "-t0").out.split()


def test_the_records_of_a_run_are_replaced_as_a_whole(regatta):
    """A master that is killed while it writes them leaves the old ones."""
    run = regatta.submit("--", "true")
    regatta.wait(run)
    there = regatta.home / "runs" / run
    for name in "events.jsonl", "summary.json":
        wait_for((there / name).exists, what=name)
        os.link(there / name, regatta.cwd / name)
    old = {name: (regatta.cwd / name).read_bytes() for name in ("events.jsonl", "summary.json")}
    regatta("note", run, "slow disk")
    for name, text in old.items():
        assert (regatta.cwd / name).read_bytes() == text and b"slow disk" in (there / name).read_bytes(), name


def test_the_runs_of_a_suite_have_its_tags(regatta):
    regatta.job('command = "true"\n')
    (regatta.cwd / "s.toml").write_text('name = "s"\n[suite]\njob = "job.toml"\nrepeats = 2\n')
    regatta("suite", "run", "s.toml", "--tag", "sweep")
    assert [r["tags"] for r in regatta.json("ps", "-a")] == [["sweep"], ["sweep"]]
