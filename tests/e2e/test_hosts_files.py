"""Engine hosts: source and data come to the hosts, outputs and kept files to the master, whole, whatever is killed."""
import contextlib
import hashlib
import os
import subprocess

import pytest

from conftest import wait_for

SHARDS = 5
# Prints the digests of what it got, waits, and leaves files in both ways.
JOB = """
import hashlib, os, pathlib, sys, time
for p in sorted(pathlib.Path(".").rglob("*")):
    if p.is_file() and p.name != "job.py":
        print(p, hashlib.sha256(p.read_bytes()).hexdigest(), flush=True)
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.02)
data = os.urandom(30_000_000)
os.makedirs("model")
pathlib.Path("model/weights").write_bytes(data)
pathlib.Path(os.environ["REGATTA_OUTPUT"], "summary").write_text(os.environ["REGATTA_NODE"])
print("weights", hashlib.sha256(data).hexdigest())
"""


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def make_files(regatta):
    (regatta.cwd / "src").mkdir()
    (regatta.cwd / "src" / "job.py").write_text(JOB)
    (regatta.cwd / "src" / "lib.bin").write_bytes(os.urandom(5_000_000))
    (regatta.cwd / "parts").mkdir()
    for i in range(SHARDS):
        (regatta.cwd / "parts" / f"p{i}").write_bytes(os.urandom(200_000))
    (regatta.cwd / "one.csv").write_text("1,2\n")


def lines_of(regatta, run, node):
    return dict(line.split() for line in regatta.log(run, node).decode().splitlines())


def test_files_go_to_hosts_and_come_back_although_the_master_is_killed(regatta, fleet, tmp_path):
    fleet.join("a", "b")
    make_files(regatta)
    run = regatta.submit(regatta.job(f'''
        engine = "hosts"
        count = 2
        source = "src"
        command = ["python3", "job.py", "{tmp_path / "go"}"]
        [[data]]
        src = "parts"
        shard = true
        [[data]]
        src = "one.csv"
        sha256 = "{digest(regatta.cwd / "one.csv")}"
        [output]
        keep = ["model/**"]
    '''))
    regatta.wait(run, state="running")
    (tmp_path / "go").touch()
    uploads = regatta.home / "runs" / run / "uploads"
    wait_for(lambda: uploads.exists() and any(p.stat().st_size > 100 for p in uploads.iterdir()), what="a piece")
    fleet.kill_master()
    fleet.start_master()
    assert regatta.wait(run)["verdict"] == "succeeded"
    for rank, node in enumerate(regatta.status(run)["nodes"]):
        got = lines_of(regatta, run, node["name"])
        want = {f"parts/p{i}": digest(regatta.cwd / "parts" / f"p{i}") for i in range(rank, SHARDS, 2)}
        want |= {"lib.bin": digest(regatta.cwd / "src" / "lib.bin"), "one.csv": digest(regatta.cwd / "one.csv")}
        outputs = regatta.home / "runs" / run / "outputs" / node["name"]
        assert digest(outputs / "model" / "weights") == got.pop("weights")
        assert (outputs / "summary").read_text() == node["name"]
        assert got == want
    assert not uploads.exists()


def test_a_command_that_counts_on_a_file_beside_the_job_file_is_refused(regatta, fleet):
    fleet.join("a")
    (regatta.cwd / "train.py").write_text("print('never')")
    done = regatta("run", "--engine", "hosts", "--", "python3", "train.py", code=2)
    assert "train.py" in done.err and "source" in done.err
    assert "succeeded" in regatta("run", "--engine", "hosts", "--set", "source=.", "--", "python3", "train.py").out


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small tmpfs needs root")


@pytest.fixture
def small(tmp_path):
    """A directory with room for 2 MiB."""
    path = tmp_path / "small"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "regatta-test", path], check=True)
    yield path
    subprocess.run(["umount", "-l", path], check=False)


def run_with_source(regatta, megabytes):
    (regatta.cwd / "src").mkdir(exist_ok=True)
    (regatta.cwd / "src" / "big").write_bytes(os.urandom(int(megabytes * (1 << 20))))
    return regatta("run", "--engine", "hosts", "--set", "source=src", "--", "true", code=None)


@needs_root
def test_a_host_without_room(regatta, fleet, small):
    fleet.start("full", "--dir", str(small / "dir"))
    fleet.wait(["full"], "free")
    cache = small / "dir" / "cache"
    done = run_with_source(regatta, 5)
    assert done.returncode == 5 and "source:" in done.out and "No space left on device" in done.out
    assert not list(cache.iterdir()) and not fleet.nodes("full")
    # Half of it is in the cache, then: what is cached makes room.
    for _ in range(3):
        assert run_with_source(regatta, 0.8).returncode == 0
    assert len(list(cache.iterdir())) == 1
    # Not even a node can be made: another host is taken.
    with open(small / "fill", "wb", buffering=0) as f, contextlib.suppress(OSError):
        while f.write(b"x" * 4096):
            pass
    fleet.join("other")
    run = regatta.submit("--engine", "hosts", "--", "true")
    assert regatta.wait(run)["verdict"] == "succeeded"
    said = regatta("events", run).out
    assert "host 'full': node 'worker-0'" in said and "No space left on device" in said
    assert not fleet.nodes("full")
    assert not list((small / "dir" / "runs").iterdir())
