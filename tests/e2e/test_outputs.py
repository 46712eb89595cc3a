"""The files that a run has kept: their list, their sums, and the way to get them."""
import hashlib
import os

from conftest import wait_for
from openapi import check_answer
from service import Service

JOB = '''
name = "out"
source = "src"
command = ["sh", "main.sh", "{go}"]
[output]
keep = ["model", "early"]
'''
MAIN = '''
mkdir -p model/deep && echo weights > model/a && echo deep > model/deep/b && chmod +x model/deep/b
ln -s deep/b model/latest && echo "$REGATTA_OUTPUT" && echo early > "$REGATTA_OUTPUT/early"
while [ ! -e "$1" ]; do sleep 0.02; done
'''


def test_kept_files_are_listed_checked_and_copied(regatta, tmp_path):
    go = tmp_path / "go"
    (regatta.cwd / "src").mkdir()
    (regatta.cwd / "src" / "main.sh").write_text(MAIN)
    run = regatta.submit(regatta.job(JOB.format(go=go)))
    early = wait_for(lambda: regatta.json("outputs", run)["files"], what="a file that is kept while the job runs")
    assert [(f["path"], f["sha256"]) for f in early] == [("worker-0/early", None)]
    assert not (regatta.home / "runs" / run / "outputs.json").exists()
    go.touch()
    assert regatta.wait(run)["verdict"] == "succeeded"

    listed = {f["path"]: f for f in regatta.json("outputs", run)["files"]}
    assert set(listed) == {"worker-0/early", "worker-0/model/a", "worker-0/model/deep/b", "worker-0/model/latest"}
    assert listed["worker-0/model/a"]["sha256"] == hashlib.sha256(b"weights\n").hexdigest()
    assert listed["worker-0/model/latest"]["link"] == "deep/b"
    record = regatta.home / "runs" / run / "outputs.json"
    wait_for(record.exists, what="the record of the sums")

    regatta("cp", f"{run}:worker-0/model", "got")
    got = regatta.cwd / "got"
    assert (got / "a").read_text() == "weights\n" and (got / "latest").read_text() == "deep\n"
    assert os.access(got / "deep/b", os.X_OK) and not os.access(got / "a", os.X_OK)
    reading, writing = os.pipe()  # `regatta cp ... - | head`
    os.close(reading)
    copy = regatta.start("cp", f"{run}:worker-0/model/a", "-", stdout=writing)
    os.close(writing)
    assert copy.communicate()[1] == b"" and copy.returncode == 0
    assert "has no output 'worker-0/b'" in regatta("cp", f"{run}:worker-0/b", "x", code=3).err

    service = Service(regatta)
    at = f"/api/v1/runs/{run}/outputs/file?path=worker-0/"
    answer = check_answer("outputFile", service.call("GET", at + "model/a"))
    assert answer.body == b"weights\n" and answer.headers["content-disposition"] == "attachment; filename*=UTF-8''a"
    assert service.call("GET", at + "model/a", headers={"Range": "bytes=4-"}).body == b"hts\n"
    for path, status in [("model/latest", 404), ("model", 404), ("none", 404), ("../../job.toml", 400), ("%2e%2e/x", 400)]:
        assert check_answer("outputFile", service.call("GET", at + path)).status == status, path
    assert service.call("GET", at + "model/a", token=None).status == 401


def test_a_run_without_outputs_has_an_empty_list_and_no_record(regatta):
    run = regatta("run", "--output", "json", "--", "true")
    assert "has no outputs" in regatta("outputs").err
    assert not list(regatta.home.glob("runs/*/outputs.json"))
    assert run.returncode == 0


NAMES = '''
import os
top = os.environ["REGATTA_OUTPUT"]
for name in ["a b/c'd", 'q"', "new\\nline", "\\u00fc/\\u00e7", "-dash", "...", "x" * 250, "per%cent?&#=+", "back\\\\slash", "/".join("d" * 70)]:
    path = os.path.join(top, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "w").write(name)
open(os.fsencode(top) + b"/latin\\xe9", "w").write("has no name in JSON")
'''


def test_files_of_any_name_are_copied_and_one_that_cannot_be_does_not_keep_the_others(regatta):
    run = regatta.submit("--", "python3", regatta.script(NAMES))
    assert regatta.wait(run)["verdict"] == "succeeded"
    copied = regatta("cp", f"{run}:", "got", code=3)
    top = regatta.cwd / "got" / "worker-0"
    got = {str(p.relative_to(top)): p.read_text() for p in top.rglob("*") if p.is_file()}
    assert len(got) == 10 and all(name == text for name, text in got.items())
    assert "the run has no output file 'worker-0/latin" in copied.err and len(copied.err.splitlines()) == 1


def test_a_copy_that_is_killed_leaves_nothing(regatta):
    run = regatta.submit("--", "sh", "-c", "truncate -s 400M $REGATTA_OUTPUT/large")
    assert regatta.wait(run, 300)["verdict"] == "succeeded"
    to = regatta.cwd / "to"
    to.mkdir()
    regatta("outputs", run, timeout=300)  # the sums are made
    copy = regatta.start("cp", f"{run}:worker-0/large", "to/")

    def opened():
        links = [f"/proc/{copy.pid}/fd/{fd}" for fd in os.listdir(f"/proc/{copy.pid}/fd")]
        sizes = [os.stat(link).st_size for link in links if os.readlink(link).startswith(str(to) + "/")]
        return [size for size in sizes if size]
    wait_for(opened, what="some bytes to be copied")
    copy.kill()
    copy.wait()
    assert list(to.iterdir()) == []
