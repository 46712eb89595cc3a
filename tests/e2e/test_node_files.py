"""What nodes of other machines keep comes to the master over its TLS port, whole and once."""
import hashlib
import json
import os
import signal

from conftest import wait_for
from test_link_tls import configs, free_port, move_agents, start_master

# Waits, then leaves 40 MB, a small file in a directory and a link, and prints the digest of the first.
KEEPER = """
import hashlib, os, pathlib, sys, time
go = pathlib.Path(sys.argv[1])
while not go.exists():
    time.sleep(0.02)
data = os.urandom(40_000_000)
os.makedirs("model/deep")
pathlib.Path("model/weights").write_bytes(data)
pathlib.Path("model/deep/notes").write_text("notes of " + os.environ["REGATTA_NODE"])
os.symlink("weights", "model/latest")
print(hashlib.sha256(data).hexdigest())
"""


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def elsewhere(regatta, run, count, master):
    """The agents of a run come back as those of a machine that does not share the master's files."""
    for path in configs(regatta, run, count):
        config = json.loads(path.read_text().splitlines()[0])
        for key in ("base_dir", "blobs", "output_dir"):
            assert config.pop(key)
    nothing = dict.fromkeys(("base_dir", "blobs", "output_dir"), "")
    return move_agents(regatta, run, count, {**master, **nothing, "cache": str(regatta.home / "cache")})


def has_piece(parts):
    """A part of a file is there; it has another name when it is whole."""
    try:
        return any(p.stat().st_size > 100 for p in parts.iterdir())
    except FileNotFoundError:
        return False


def test_kept_files_come_over_tls_although_the_master_is_killed(regatta, tmp_path):
    port = free_port()
    _, master = start_master(regatta, port)
    (regatta.cwd / "keeper.py").write_text(KEEPER)
    job = regatta.job(f'''
        source = "."
        command = ["python3", "keeper.py", "{tmp_path / "go"}"]
        count = 2
        [output]
        keep = ["model/**"]
    ''')
    run = regatta.submit(job)
    regatta.wait(run, state="running")
    elsewhere(regatta, run, 2, master)
    (tmp_path / "go").touch()
    parts = regatta.home / "runs" / run / "uploads"
    wait_for(lambda: has_piece(parts), what="a piece")
    os.kill(int((regatta.home / "lock").read_text()), signal.SIGKILL)
    for child in regatta.children:
        if child.args[1] == "master":
            child.wait()
    (regatta.home / "api.sock").unlink(missing_ok=True)
    start_master(regatta, port)
    assert regatta.wait(run)["verdict"] == "succeeded"
    outputs = regatta.home / "runs" / run / "outputs"
    for node in regatta.status(run)["nodes"]:
        mine = outputs / node["name"] / "model"
        want = regatta.log(run, node["name"]).decode().strip()
        assert digest(mine / "weights") == want
        assert digest(mine / "latest") == want and not (mine / "latest").is_symlink()
        assert (mine / "deep" / "notes").read_text() == f"notes of {node['name']}"
    assert not parts.exists()
