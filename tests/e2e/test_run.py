"""A run from the outside: what a script may rely on."""
import json
import os
import pathlib
import re
import signal
import time

import pytest

from conftest import ROOT, wait_for


def test_one_command_without_a_file(regatta):
    got = regatta.json("run", "--", "sh", "-c", "echo hello; echo oops >&2")
    assert got["verdict"] == "succeeded" and got["exit_code"] == 0 and got["cause"] is None
    assert re.fullmatch(r"[a-z0-9-]+-[a-z]{4}", got["id"])
    assert [n["name"] for n in got["nodes"]] == ["worker-0"]
    assert got["nodes"][0]["exit_code"] == 0 and got["nodes"][0]["signal"] is None
    assert regatta.log(got["id"], "worker-0") == b"hello\n"
    assert regatta.log(got["id"], "worker-0", err=True) == b"oops\n"
    assert got["dir"] == str(regatta.home / "runs" / got["id"])
    assert set(got["phases"]) >= {"provisioning", "gathering", "running", "collecting", "cleaning"}


def test_every_node_has_its_own_name_rank_and_address(regatta):
    script = "import os,json;print(json.dumps({k:v for k,v in os.environ.items() if k.startswith('REGATTA')}))"
    got = regatta.json("run", "-n", "4", "--", "python3", "-c", script)
    seen = [json.loads(regatta.log(got["id"], f"worker-{i}")) for i in range(4)]
    addresses = [e["REGATTA_ADDRESS"] for e in seen]
    assert len(set(addresses)) == 4 and all(a.startswith("127.") for a in addresses)
    for i, env in enumerate(seen):
        assert env["REGATTA_RUN"] == got["id"]
        assert env["REGATTA_NODE"] == f"worker-{i}" and env["REGATTA_ROLE"] == "worker"
        assert env["REGATTA_INDEX"] == env["REGATTA_RANK"] == str(i)
        assert env["REGATTA_NODES"] == "4" and env["REGATTA_ATTEMPT"] == "1"
        assert os.path.isdir(env["REGATTA_OUTPUT"])
        assert [m.split("=")[1] for m in env["REGATTA_MEMBERS"].split(",")] == addresses
    assert [n["address"] for n in got["nodes"]] == addresses


def test_a_failing_rank_heads_the_summary_and_stops_the_others(regatta):
    job = regatta.job("""
name = "bad"
[roles.a]
command = ["sh", "-c", "echo last words >&2; exit 3"]
[roles.b]
command = ["sleep", "1000"]
""")
    done = regatta("run", job, code=1)
    assert "a-0: exit code 3" in done.out and "last words" in done.out
    got = regatta.json("status", "bad")
    assert got["verdict"] == "failed" and got["cause"] == "a-0: exit code 3"
    nodes = {n["name"]: n for n in got["nodes"]}
    assert nodes["a-0"]["exit_code"] == 3 and nodes["b-0"]["signal"] == signal.SIGTERM


@pytest.mark.parametrize("script,code,signo", [("exit 7", 7, None), ("kill -9 $$", None, 9), ("kill -TERM $$", None, 15)])
def test_how_a_job_ended_is_told_truly(regatta, script, code, signo):
    got = regatta.json("run", "--", "sh", "-c", script, code=1)
    assert got["nodes"][0]["exit_code"] == code and got["nodes"][0]["signal"] == signo


def test_a_detached_run_goes_on_and_can_be_watched(regatta):
    run = regatta.submit("--", "sh", "-c", "echo begun; while [ ! -e go ]; do sleep 0.02; done; echo done")
    wait_for(lambda: b"begun" in regatta("logs", run).stdout, what="the first line")
    listed = regatta.json("ps")
    assert [r["id"] for r in listed] == [run]
    follower = regatta.start("logs", run, "-f")
    (regatta.cwd / "go").touch()
    out, _ = follower.communicate(timeout=20)
    assert out == b"begun\ndone\n"
    assert regatta.wait(run)["verdict"] == "succeeded"


def test_any_unique_prefix_names_a_run(regatta):
    a = regatta.json("run", "--name", "alpha", "--", "true")["id"]
    b = regatta.json("run", "--name", "beta", "--", "true")["id"]
    b2 = regatta.json("run", "--name", "beta", "--", "true")["id"]
    assert regatta.json("status", "al")["id"] == a
    assert regatta.json("status", b)["id"] == b
    ambiguous = regatta("status", "beta", code=2)
    assert b in ambiguous.err and b2 in ambiguous.err
    assert "no run" in regatta("status", "gamma", code=3).err


def test_kill_cancels_and_cleanup_forgets(regatta):
    run = regatta.submit("--", "sleep", "1000")
    regatta.wait(run, state="running")
    regatta("kill", run)
    assert regatta.wait(run)["verdict"] == "cancelled"
    folder = regatta.home / "runs" / run
    assert folder.is_dir()
    regatta("cleanup", run)
    assert not folder.exists()
    regatta("status", run, code=3)


def test_cleanup_of_a_running_run_cancels_it_first(regatta):
    run = regatta.submit("--", "sleep", "1000")
    regatta.wait(run, state="running")
    regatta("cleanup", run)
    regatta("status", run, code=3)


def test_ctrl_c_cancels(regatta):
    child = regatta.start("run", "--", "sleep", "1000", start_new_session=True)
    run = wait_for(lambda: regatta.json("ps"), what="the run")[0]["id"]
    regatta.wait(run, state="running")
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=30)
    assert child.returncode == 7
    assert regatta.status(run)["verdict"] == "cancelled"


def test_a_second_ctrl_c_hurries(regatta):
    job = regatta.job("""
name = "stubborn"
command = ["python3", "-c", "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(1000)"]
[timeouts]
grace = "10m"
""")
    child = regatta.start("run", job, start_new_session=True)
    wait_for(lambda: regatta("logs", "stubborn", code=None).stdout == b"ready\n", what="the job")
    child.send_signal(signal.SIGINT)
    wait_for(lambda: regatta.json("status", "stubborn")["cancel_asked"], what="the cancel")
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=30)
    assert child.returncode == 7
    assert regatta.json("status", "stubborn")["nodes"][0]["signal"] == signal.SIGKILL


def test_a_killed_client_leaves_its_run(regatta):
    child = regatta.start("run", "--", "sh", "-c", "while [ ! -e go ]; do sleep 0.02; done")
    run = wait_for(lambda: regatta.json("ps"), what="the run")[0]["id"]
    child.kill()
    child.wait()
    (regatta.cwd / "go").touch()
    assert regatta.wait(run)["verdict"] == "succeeded"


def test_set_overrides_the_file(regatta):
    job = regatta.job('name = "s"\n[roles.t]\ncommand = ["true"]\n')
    got = regatta.json("run", job, "--set", "roles.t.count=3")
    assert len(got["nodes"]) == 3


def test_source_gives_each_node_its_own_copy(regatta):
    source = regatta.cwd / "code"
    (source / "lib").mkdir(parents=True)
    (source / "main.sh").write_text("cat lib/data; echo mine > lib/data; pwd\n")
    (source / "lib" / "data").write_text("shared\n")
    job = regatta.job('name = "src"\nsource = "code"\ncommand = ["sh", "main.sh"]\ncount = 2\n')
    got = regatta.json("run", job)
    logs = [regatta.log(got["id"], f"worker-{i}").decode().split() for i in range(2)]
    assert logs[0][0] == logs[1][0] == "shared" and logs[0][1] != logs[1][1]
    assert (source / "lib" / "data").read_text() == "shared\n"


def test_the_archive_of_a_source_goes_with_its_last_run(regatta):
    (regatta.cwd / "code").mkdir()
    (regatta.cwd / "code" / "x").write_text("x")
    job = regatta.job('name = "b"\nsource = "code"\ncommand = ["cat", "x"]\n')
    first, second = regatta.json("run", job)["id"], regatta.json("run", job)["id"]
    blobs = regatta.home / "blobs"
    assert len(list(blobs.iterdir())) == 1
    regatta("cleanup", first)
    assert len(list(blobs.iterdir())) == 1
    regatta("cleanup", second)
    assert list(blobs.iterdir()) == []


def test_outputs_are_kept(regatta):
    source = regatta.cwd / "code"
    source.mkdir()
    (source / "main.sh").write_text('mkdir -p model/x; echo w > model/x/w.bin; echo no > junk; echo o > "$REGATTA_OUTPUT/o"\n')
    job = regatta.job('name = "out"\nsource = "code"\ncommand = ["sh", "main.sh"]\n[output]\nkeep = ["model/**"]\n')
    got = regatta.json("run", job)
    kept = regatta.home / "runs" / got["id"] / "outputs" / "worker-0"
    assert sorted(str(p.relative_to(kept)) for p in kept.rglob("*") if p.is_file()) == ["model/x/w.bin", "o"]


def test_the_packed_source_is_not_held_while_the_job_runs(regatta):
    (regatta.cwd / "code").mkdir()
    (regatta.cwd / "code" / "file").write_text("x")
    child = regatta.start("run", regatta.job('source = "code"\ncommand = ["sleep", "1000"]\n'))
    run = wait_for(lambda: regatta.json("ps"), what="the run")[0]["id"]
    regatta.wait(run, state="running")
    held = [os.readlink(fd) for fd in pathlib.Path(f"/proc/{child.pid}/fd").iterdir()]
    assert not [path for path in held if "(deleted)" in path and str(regatta.home) in path]
    regatta("kill", run)
    assert child.wait(30) == 7


def test_without_source_only_new_files_are_kept(regatta):
    old = regatta.cwd / "old.json"
    old.write_text("{}")
    # Clocks of file systems lag: what is younger than 20 ms at the start counts as new.
    wait_for(lambda: time.time() - old.stat().st_ctime > 0.05, what="the file to be old")
    job = regatta.job('name = "here"\ncommand = ["sh", "-c", "echo > new.json"]\n'
                      '[output]\nkeep = ["*.json", "*.bin"]\n')
    run = regatta.json("run", job)["id"]
    kept = regatta.home / "runs" / run / "outputs" / "worker-0"
    assert [p.name for p in kept.iterdir()] == ["new.json"]
    assert "keep: '*.bin' matches no file that changed since the job's start" in regatta("events", run).out


def test_data_is_shared_out(regatta):
    data = regatta.cwd / "data"
    data.mkdir()
    for i in range(7):
        (data / f"part-{i}").write_text(str(i))
    job = regatta.job('name = "d"\ncommand = ["sh", "-c", "ls in | sort"]\ncount = 3\n'
                      '[[data]]\nsrc = "data"\npath = "in"\nshard = true\n')
    got = regatta.json("run", job)
    parts = [regatta.log(got["id"], f"worker-{i}").decode().split() for i in range(3)]
    assert sorted(sum(parts, [])) == [f"part-{i}" for i in range(7)]
    assert all(2 <= len(p) <= 3 for p in parts)


def test_metrics_of_all_three_kinds(regatta):
    script = regatta.script("""
import json, os
for step in range(1, 11):
    print(f"step {step} loss={1/step:.6f}", flush=True)
print("noise loss=nan")
print("**metrics_data: speed=12.5,other=abc")
with open(os.environ["REGATTA_METRICS"], "w") as f:
    f.write(json.dumps({"accuracy": 0.9, "step": 10}) + "\\n")
""")
    job = regatta.job(f'name = "m"\ncommand = ["python3", "{script}"]\ncount = 2\n'
                      "[metrics.loss]\npattern = 'step (?<step>\\d+) loss=(?<value>\\S+)'\nbetter = 'lower'\n")
    got = regatta.json("run", job)
    loss = got["metrics"]["loss"]
    assert loss["first"] == 1 and loss["last"] == loss["best"] == 0.1 and loss["count"] == 20
    assert abs(loss["mean"] - sum(1 / i for i in range(1, 11)) / 10) < 1e-6
    assert got["metrics"]["speed"]["last"] == 12.5 and got["metrics"]["accuracy"]["count"] == 2
    series = regatta.json("metrics", got["id"], "loss")["series"]
    assert [p[1] for p in series[0]["points"]] == list(range(1, 11))


def test_a_metric_that_no_line_matched_is_named(regatta):
    job = regatta.job("""
command = ["sh", "-c", 'echo loss=1; echo "speed 3"']
[metrics]
loss = 'loss=([0-9]+)'
accuracy = 'accuracy=([0-9]+)'
any = '(?<name>speed) (?<value>[0-9]+)'
top5 = 'top5=([0-9]+)'
""")
    done = regatta("run", job)
    run = done.out.split()[0]
    assert "note    metrics accuracy, top5: no line matched their patterns\n" in done.out + done.err
    assert regatta.status(run)["unmatched"] == ["accuracy", "top5"]
    assert "no line matched" in regatta("status", run).out
    every = regatta.json("run", "--", "true")
    assert "unmatched" not in every


def test_progress_is_known_where_the_pattern_says_step_and_total(regatta):
    job = regatta.job("""name = "p"
command = ["sh", "-c", "echo step $((30 + REGATTA_RANK))/100 loss=1; while [ ! -e go ]; do sleep 0.02; done"]
count = 2
[metrics]
loss = 'step (?<step>[0-9]+)/(?<total>[0-9]+) loss=(?<value>[0-9]+)'
""")
    run = regatta.submit(job)
    wait_for(lambda: all(n["metrics"] for n in regatta.status(run)["nodes"]), what="the steps of both")
    assert regatta.status(run)["progress"] == {"step": 30, "total": 100}  # the rank that is least far
    (regatta.cwd / "go").touch()
    assert regatta.wait(run)["verdict"] == "succeeded"


def test_max_runtime_ends_a_run(regatta):
    got = regatta.json("run", "--set", "max_runtime='300ms'", "--", "sleep", "1000", code=6)
    assert "max_runtime" in got["cause"]


def test_gates_open_in_order(regatta):
    job = regatta.job("""
name = "gates"
[roles.prepare]
command = ["sh", "-c", "echo prepared > made"]
ready_when = "finished"
[roles.db]
command = ["python3", "-c", "import os,socket,time; s=socket.socket(); time.sleep(0.2); s.bind((os.environ['REGATTA_ADDRESS'], 7777)); s.listen(); time.sleep(1000)"]
port = 7777
service = true
after = "prepare"
[roles.work]
command = ["python3", "-c", "import os,socket; m=dict(x.split('=') for x in os.environ['REGATTA_MEMBERS'].split(',')); h,p=m['db-0'].split(':'); socket.create_connection((h,int(p))); print(open('made').read())"]
after = ["prepare", "db"]
count = 2
""")
    got = regatta.json("run", job)
    assert got["verdict"] == "succeeded"
    assert regatta.log(got["id"], "work-0") == b"prepared\n\n"


def test_quickstart_learns(regatta):
    got = regatta.json("run", ROOT / "examples" / "quickstart.toml")
    loss = got["metrics"]["loss"]
    assert loss["first"] / loss["last"] >= 10
    assert {n["role"] for n in got["nodes"]} == {"pserver", "trainer"} and len(got["nodes"]) == 5
    assert got["elapsed_ms"] < 30000


def test_repeat_runs_the_same_job_again(regatta):
    got = regatta.json("run", "--repeat", "5", "--parallel", "2", "--", "true")
    assert len(got) == 5 and len({r["id"] for r in got}) == 5
    assert all(r["verdict"] == "succeeded" for r in got)


def test_the_files_of_a_run(regatta):
    got = regatta.json("run", "--", "true")
    folder = regatta.home / "runs" / got["id"]
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["id"] == got["id"] and summary["verdict"] == "succeeded"
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
    assert "job.toml" in os.listdir(folder) and json.loads((folder / "plan.json").read_text())
    assert not list(folder.glob("*.node"))
    wait_for(lambda: not (regatta.home / "trash").exists(), what="the trash to be emptied")
    assert oct(regatta.home.stat().st_mode & 0o777) == "0o700"


def test_many_nodes(regatta):
    got = regatta.json("run", "-n", "64", "--", "sh", "-c", "echo $REGATTA_RANK", timeout=120)
    assert got["verdict"] == "succeeded"
    assert [regatta.log(got["id"], f"worker-{i}") for i in range(64)] == [f"{i}\n".encode() for i in range(64)]
