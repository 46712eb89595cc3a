"""isolate = "netns": nodes with a network of their own, and nothing of it left afterwards, whoever is killed."""
import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import time

import pytest

from conftest import BINARY, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="network namespaces need root and iproute2")

# Listens on port 5000, reaches every node by address and by name, and says so.
PEER = r"""
import os, socket, sys, threading, time
server = socket.create_server(("0.0.0.0", 5000))
def serve():
    while True:
        peer, _ = server.accept()
        peer.sendall(socket.gethostname().encode())
        peer.close()
threading.Thread(target=serve, daemon=True).start()
def reach(host):
    end = time.monotonic() + 20
    while True:
        try:
            with socket.create_connection((host, 5000), 5) as s:
                return s.recv(99).decode()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
for member in os.environ["REGATTA_MEMBERS"].split(","):
    name, address = member.split("=")
    print(reach(address.split(":")[0]) == name, reach(name) == name, flush=True)
time.sleep(float(sys.argv[1]))
"""


def links(regatta):
    """Of this home's runs: the run is in their aliases."""
    runs = {path.name for path in (regatta.home / "runs").glob("*")}
    listed = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^\d+: ([^:@]+).*alias regatta \S+ (\S+)", listed, re.M)
    return [(name, run) for name, run in found if run in runs]


def mounts(regatta):
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return [entry for entry in f if f" {regatta.home}/" in entry]


def is_clean(regatta):
    return not links(regatta) and not mounts(regatta)


@pytest.fixture(autouse=True)
def nothing_stays(regatta):
    """Also of a test that fails: by hand, when its processes are dead."""
    yield
    regatta.kill_all()
    for mount in mounts(regatta):
        subprocess.run(["umount", mount.split()[4]], check=False)
    for name, _ in links(regatta):
        subprocess.run(["ip", "link", "del", name], capture_output=True, check=False)


def peers(regatta, count=3, seconds=1):
    script = regatta.script(PEER, "peer.py")
    return regatta.job(f'name = "iso"\ncount = {count}\nisolate = "netns"\n'
                       f'command = ["python3", "{script}", "{seconds}"]\n', f"iso{count}.toml")


def check_logs(regatta, run, count):
    for rank in range(count):
        assert regatta.log(run, f"worker-{rank}").decode().split() == ["True"] * 2 * count


def test_nodes_use_the_same_port_and_find_each_other_by_name(regatta):
    job = peers(regatta, 3)
    assert "resources  1 local.bridge, 3 local.node\n" in regatta("plan", job).out
    run = regatta.submit(job)
    got = regatta.wait(run, state="running")
    assert len(links(regatta)) == 4 and len(mounts(regatta)) == 3
    # This machine reaches them too.
    def reached():
        try:
            with socket.create_connection((got["nodes"][1]["address"], 5000), 10) as s:
                return s.recv(99)
        except ConnectionRefusedError:
            return None
    assert wait_for(reached, what="worker-1 to listen") == b"worker-1"
    assert regatta.wait(run)["verdict"] == "succeeded"
    check_logs(regatta, run, 3)
    assert is_clean(regatta)


def test_a_job_sees_its_own_name_interface_and_hosts(regatta):
    job = regatta.job('name = "see"\nisolate = "netns"\ncount = 2\ncommand = ["sh", "-c", """'
                      'hostname; ls /sys/class/net; grep -c worker- /etc/hosts; echo $NCCL_SOCKET_IFNAME $MASTER_ADDR; '
                      'ls /sys/fs/cgroup >/dev/null && echo groups; echo 192.0.2.9 extra >>/etc/hosts"""]\n')
    before = open("/etc/hosts", "rb").read(), socket.gethostname()
    run = regatta.submit(job)
    got = regatta.wait(run)
    assert got["verdict"] == "succeeded"
    assert regatta.log(run, "worker-1").decode().split() == [
        "worker-1", "eth0", "lo", "2", "eth0", got["nodes"][0]["address"], "groups"]
    assert (open("/etc/hosts", "rb").read(), socket.gethostname()) == before
    assert is_clean(regatta)


def test_a_port_is_probed_inside_the_node(regatta):
    """The port of the role is taken on this machine, on every address, and answers nowhere but in the node."""
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]
        server = regatta.script("import socket, sys, time\ntime.sleep(0.5)\n"
                                "s = socket.create_server(('0.0.0.0', int(sys.argv[1])))\ntime.sleep(60)\n", "server.py")
        run = regatta.submit(regatta.job(f'''
name = "probe"
isolate = "netns"
[roles.store]
service = true
port = {port}
command = ["python3", "{server}", "{port}"]
[roles.user]
after = ["store"]
command = ["python3", "-c", "import socket; socket.create_connection(('store-0', {port}), 5); print('reached')"]
'''))
        got = regatta.wait(run)
    assert got["verdict"] == "succeeded", got
    assert regatta.log(run, "user-0") == b"reached\n"
    assert is_clean(regatta)


def test_two_runs_at_once_have_networks_of_their_own(regatta):
    runs = [regatta.submit(peers(regatta, 2, 2)) for _ in range(2)]
    got = [regatta.wait(run, state="running") for run in runs]
    assert len({node["address"] for run in got for node in run["nodes"]}) == 4
    assert len({node["address"].rsplit(".", 1)[0] for run in got for node in run["nodes"]}) == 2
    for run in runs:
        assert regatta.wait(run)["verdict"] == "succeeded"
        check_logs(regatta, run, 2)
    assert is_clean(regatta)


def test_kills_leave_nothing(regatta):
    seed = int(os.environ.get("REGATTA_SEED", random.randrange(1 << 32)))
    print("seed", seed)
    rng = random.Random(seed)
    runs = [regatta.submit(peers(regatta, 2, 3)) for _ in range(3)]
    kinds = ["master", "node-agent", "shim", "forkserver"]
    for _ in range(15):
        living = [pid for kind in rng.sample(kinds, len(kinds)) for pid in regatta.pids(kind)[:1]]
        if not living:  # nothing is left to kill: the next command brings the master back
            regatta("ps")
            continue
        try:
            os.kill(living[0], signal.SIGKILL)
        except ProcessLookupError:
            pass
        time.sleep(rng.uniform(0, 0.2))
    for run in runs:
        assert regatta.wait(run, 90)["verdict"] in ("succeeded", "failed")
    assert is_clean(regatta)


@pytest.mark.parametrize("moment", ["create", "running"])
def test_when_everything_was_killed_the_next_master_cleans_up(regatta, moment):
    run = regatta.submit(peers(regatta, 3, 60))
    if moment == "running":
        regatta.wait(run, state="running")
    else:
        wait_for(lambda: links(regatta), what="the first link")
    regatta.kill_all()
    assert links(regatta)
    regatta("kill", run, code=None)
    assert regatta.wait(run)["verdict"] in ("failed", "cancelled")
    assert is_clean(regatta)


def test_what_no_ledger_knows_is_swept_when_a_master_starts(regatta):
    old = regatta.submit("--", "true")
    regatta.wait(old)
    regatta("master", "--stop")
    wait_for(lambda: not regatta.pids("master"), what="the master to leave")
    with sqlite3.connect(regatta.home / "regatta.db") as db:
        install = db.execute("SELECT install FROM install").fetchone()[0]
    db.close()
    name = "rgvtest" + os.urandom(4).hex()
    other = "rgwtest" + os.urandom(4).hex()
    try:
        for link, owner in ((name, install), (other, "somebody-else")):
            subprocess.run(["ip", "link", "add", link, "type", "bridge"], check=True)
            subprocess.run(["ip", "link", "set", link, "alias", f"regatta {owner} {old} worker-0"], check=True)
        regatta("run", "--", "true")
        assert not os.path.exists(f"/sys/class/net/{name}")
        assert os.path.exists(f"/sys/class/net/{other}")
    finally:
        for link in (name, other):
            subprocess.run(["ip", "link", "del", link], capture_output=True)


def refused(regatta, *prefix):
    done = subprocess.run([*prefix, BINARY, "run", peers(regatta)], cwd=regatta.cwd, env=regatta.env, capture_output=True, text=True)
    assert done.returncode == 4, done
    return done.stderr.strip().splitlines()


def test_without_root_it_is_refused_with_one_line(regatta, tmp_path):
    for part in [tmp_path, *tmp_path.parents]:
        if not os.stat(part).st_mode & 1:
            os.chmod(part, os.stat(part).st_mode | 0o11)
    regatta.home.mkdir()
    shutil.copy(BINARY, tmp_path / "regatta")
    for path in (regatta.home, regatta.cwd, tmp_path / "regatta"):
        os.chown(path, 65534, 65534)
    peers(regatta)
    as_nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    done = subprocess.run([tmp_path / "regatta", "run", "iso3.toml"], cwd=regatta.cwd, env=regatta.env, capture_output=True,
                          text=True, **as_nobody)
    subprocess.run([tmp_path / "regatta", "master", "--stop"], env=regatta.env, capture_output=True, **as_nobody)
    assert done.returncode == 4, done
    assert done.stderr.strip().splitlines() == [
        'regatta: isolate = "netns": network namespaces take root, and this master is user 65534; '
        'start the master as root, or leave out isolate']


def test_a_container_that_withholds_the_privilege_is_named(regatta):
    if not shutil.which("setpriv"):
        pytest.skip("needs setpriv")
    assert refused(regatta, "setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin") == [
        'regatta: isolate = "netns": network namespaces take CAP_SYS_ADMIN and CAP_NET_ADMIN, which this container '
        'withholds; start the master as root, or leave out isolate']
