"""Strategy mpi with Debian's Open MPI and MPICH: without ssh, on four and on sixteen nodes, and what happens when a
process, the launcher or a node dies."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

from conftest import ROOT, processes, wait_for

EXAMPLE = ROOT / "examples" / "mpi-allreduce"
SECONDS = 120
# The compiler, and the command: Debian's alternatives decide which of the two plain mpirun is.
OPENMPI = ("mpicc.openmpi", ["mpirun.openmpi"])
MPICH = ("mpicc.mpich", ["mpiexec.hydra"])
BOTH = pytest.mark.parametrize("mpi", [OPENMPI, MPICH], ids=["openmpi", "mpich"])

# Rank 1 does what the argument says; the others wait for it.
PATIENT = r"""
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Barrier(MPI_COMM_WORLD);
	printf("rank %d is here\n", rank);
	fflush(stdout);
	if (rank == 1 && strcmp(argv[1], "kill") == 0)
		raise(SIGKILL);
	if (rank == 1 && strcmp(argv[1], "abort") == 0)
		MPI_Abort(MPI_COMM_WORLD, 5);
	if (rank == 1 && strcmp(argv[1], "leave") == 0)
		exit(0);
	for (;;)
		sleep(1);
}
"""


@pytest.fixture(autouse=True)
def no_ssh(tmp_path, monkeypatch, regatta):
    """A path with everything of this machine but ssh and rsh."""
    bin_dir = tmp_path / "no-ssh"
    bin_dir.mkdir()
    for directory in ("/usr/bin", "/bin"):
        for name in os.listdir(directory):
            if not name.startswith(("ssh", "rsh", "slogin")) and not (bin_dir / name).exists():
                (bin_dir / name).symlink_to(os.path.join(directory, name))
    assert not shutil.which("ssh", path=str(bin_dir))
    regatta.env["PATH"] = str(bin_dir)


def compiled(regatta, mpi, source, name):
    subprocess.run([mpi[0], "-o", regatta.cwd / name, source], check=True, capture_output=True, timeout=60)


def patient(regatta, mpi, what, **more):
    (regatta.cwd / "patient.c").write_text(PATIENT)
    compiled(regatta, mpi, regatta.cwd / "patient.c", "patient")
    keys = "".join(f"{key} = {value}\n" for key, value in more.items())
    words = ", ".join(f'"{word}"' for word in [*mpi[1], "-n", "3", "./patient", what])
    regatta.job(f'strategy = "mpi"\ncount = 3\n{keys}command = [{words}]\n')


def pids(regatta, word):
    return [pid for pid, cmd in regatta.ours().items() if word in cmd]


def ranks_are_here(regatta, run):
    log = regatta.home / "runs" / run / "logs" / "worker-0.log"
    wait_for(lambda: log.exists() and log.read_bytes().count(b"is here") == 3, SECONDS, "all ranks")


def summed(regatta, got, nodes, per_node=1):
    assert got["verdict"] == "succeeded", got
    size = nodes * per_node
    found = re.findall(r"rank (\d+) of (\d+) on (\S+): sum (\S+)", regatta.log(got["id"], "worker-0").decode())
    assert sorted(int(rank) for rank, _, _, _ in found) == list(range(size))
    assert {(int(n), float(total)) for _, n, _, total in found} == {(size, size * (size + 1) / 4)}
    by_node = [node for _, _, node, _ in found]
    assert sorted(by_node) == sorted([f"worker-{i}" for i in range(nodes)] * per_node)


def copied(regatta, run, nodes):
    """Each other node's log is what its own ranks have printed."""
    all_lines = regatta.log(run, "worker-0").decode().splitlines()
    for i in range(1, nodes):
        own = regatta.log(run, f"worker-{i}").decode().splitlines()
        assert own and sorted(own) == sorted(line for line in all_lines if f" on worker-{i}: " in line)


@BOTH
@pytest.mark.parametrize("isolate", ["none", "netns"])
def test_all_reduce_on_four_nodes(regatta, mpi, isolate):
    if isolate == "netns" and os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    compiled(regatta, mpi, EXAMPLE / "allreduce.c", "allreduce")
    regatta.job(f'strategy = "mpi"\ncount = 4\nisolate = "{isolate}"\ncommand = ["{mpi[1][0]}", "-n", "4", "./allreduce"]\n')
    got = regatta.json("run", "job.toml", timeout=SECONDS)
    summed(regatta, got, 4)
    if mpi is OPENMPI:
        copied(regatta, got["id"], 4)
    events = [json.loads(line) for line in regatta("events", got["id"], "--output", "json").out.splitlines()]
    starts = [e for e in events if e["kind"] == "exec"]
    assert {e["node"] for e in starts} >= {"worker-1", "worker-2", "worker-3"}
    assert all(node["exit_code"] == 0 for node in got["nodes"])


def test_a_job_of_one_node_runs_all_ranks_there(regatta):
    compiled(regatta, OPENMPI, EXAMPLE / "allreduce.c", "allreduce")
    regatta.job('strategy = "mpi"\nprocesses_per_node = 2\ncommand = ["mpirun.openmpi", "-n", "2", "./allreduce"]\n')
    got = regatta.json("run", "job.toml", timeout=SECONDS)
    summed(regatta, got, 1, 2)


def test_the_example_runs_as_it_is(regatta):
    work = regatta.cwd / "example"
    shutil.copytree(EXAMPLE, work)
    got = regatta.json("run", work / "job.toml", timeout=SECONDS)
    summed(regatta, got, 4, 2)


@BOTH
def test_what_ranks_print_is_in_the_log_of_their_node(regatta, mpi):
    """Open MPI's by itself, MPICH's through the program that it is asked to start.  It counts once."""
    (regatta.cwd / "rank.sh").write_text(
        'rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\necho "loss=$rank.5"\n>&2 echo "trouble $rank"\n'
        'test -t 1 && echo terminal $rank\n'
        'if [ $rank = 2 ]; then head -c 500000 /dev/urandom | tee bytes; fi\nexit 0\n')
    tee = "" if mpi is OPENMPI else ', "sh", "-c", \'exec "$REGATTA_TEE" "$@"\', "tee"'
    regatta.job(f'strategy = "mpi"\ncount = 3\nmetrics.loss = "loss=([0-9.]+)"\n'
                f'command = ["{mpi[1][0]}", "-n", "3"{tee}, "sh", "rank.sh"]\n')
    got = regatta.json("run", "job.toml", timeout=SECONDS)
    assert got["verdict"] == "succeeded", got
    run = got["id"]
    terminal = b"terminal %d\n" if mpi is OPENMPI else b""
    first, last = (b"loss=%d.5\n" % i + (terminal % i if terminal else b"") for i in (1, 2))
    assert regatta.log(run, "worker-1") == first
    assert regatta.log(run, "worker-2") == last + (regatta.cwd / "bytes").read_bytes()
    assert [regatta.log(run, f"worker-{i}", err=True) for i in (1, 2)] == [b"trouble 1\n", b"trouble 2\n"]
    assert sorted(re.findall(rb"^trouble \d$", regatta.log(run, "worker-0", err=True), re.M)) == [b"trouble %d" % i for i in range(3)]
    assert len(regatta.log(run, "worker-0")) == 500000 + len(first + first + last)
    assert regatta.json("metrics", run)["metrics"]["loss"]["all"]["count"] == 3
    assert regatta("logs", run, "--grep", "trouble").out.count("trouble") == 3
    assert regatta("logs", run, "worker-2", "--stderr").out == "trouble 2\n"


def test_the_terminal_of_a_job_is_the_launchers(regatta):
    """The other nodes keep both outputs of their ranks."""
    regatta.job('strategy = "mpi"\ncount = 2\npty = true\n'
                'command = ["mpirun.openmpi", "-n", "2", "sh", "-c", "echo out; echo trouble >&2"]\n')
    run = regatta.json("run", "job.toml", timeout=SECONDS)["id"]
    assert (regatta.log(run, "worker-1"), regatta.log(run, "worker-1", err=True)) == (b"out\n", b"trouble\n")
    said = regatta.log(run, "worker-0").split()  # mpirun may add words of its own
    assert (said.count(b"out"), said.count(b"trouble")) == (2, 2)


def test_a_launcher_of_its_own_and_two_slots_on_each_worker(regatta):
    compiled(regatta, OPENMPI, EXAMPLE / "allreduce.c", "allreduce")
    regatta.job('strategy = "mpi"\n[roles.launcher]\ncommand = ["sh", "-c", "mpirun.openmpi -n 4 ./allreduce"]\n'
                '[roles.worker]\ncount = 2\nprocesses_per_node = 2\n')
    said = regatta("run", "-f", "job.toml", timeout=SECONDS).out
    found = re.findall(r"^(\S+) \| rank \d of 4 on (\S+): sum 5.0$", said, re.M)
    assert sorted(found) == [("launcher-0", "worker-0")] * 2 + [("launcher-0", "worker-1")] * 2


@BOTH
def test_sixteen_nodes(regatta, mpi):
    compiled(regatta, mpi, EXAMPLE / "allreduce.c", "allreduce")
    regatta.job('strategy = "mpi"\ncount = 16\nenv = { OMPI_MCA_mpi_yield_when_idle = "1" }\n'
                f'command = ["{mpi[1][0]}", "-n", "16", "./allreduce"]\n')
    summed(regatta, regatta.json("run", "job.toml", timeout=SECONDS), 16)


def test_a_dead_rank_is_named_with_node_and_signal(regatta):
    patient(regatta, OPENMPI, "kill")
    got = regatta.json("run", "job.toml", code=1, timeout=SECONDS)
    assert got["cause"] == "worker-0: exit code 137: rank 1 on worker-1: killed by SIGKILL"
    assert not pids(regatta, b"patient") and not pids(regatta, b"orted")


def test_a_dead_rank_of_mpich_is_named_as_far_as_hydra_does(regatta):
    """It says the node and no rank; that the number is a signal it says only where no daemon was in its way."""
    patient(regatta, MPICH, "kill")
    got = regatta.json("run", "job.toml", code=1, timeout=SECONDS)
    assert re.fullmatch(r"worker-0: exit code \d+: worker-1: (ended badly, exit code 9|killed by SIGKILL)", got["cause"]), got["cause"]
    assert not pids(regatta, b"patient") and not pids(regatta, b"hydra")


@pytest.mark.parametrize("mpi,what,cause", [
    (OPENMPI, "abort", "worker-0: exit code 5: rank 1: called MPI_Abort, exit code 5"),
    (MPICH, "abort", "worker-0: exit code 5: rank 1: called MPI_Abort, exit code 5"),
    (OPENMPI, "leave", "worker-0: exit code 1: rank 1 on worker-1: ended without MPI_Finalize"),
], ids=["openmpi-abort", "mpich-abort", "openmpi-leave"])
def test_an_abort_and_an_early_end_are_the_cause(regatta, mpi, what, cause):
    patient(regatta, mpi, what)
    got = regatta.json("run", "job.toml", code=1, timeout=SECONDS)
    assert got["cause"] == cause
    assert not regatta.left(got["id"])


@BOTH
def test_a_killed_launcher_leaves_nothing(regatta, mpi):
    patient(regatta, mpi, "wait")
    run = regatta.submit("job.toml")
    ranks_are_here(regatta, run)
    launcher = [pid for pid, cmd in regatta.ours().items() if cmd.startswith(mpi[1][0].encode() + b"\0")]
    os.kill(launcher[0], signal.SIGKILL)
    got = regatta.wait(run)
    assert got["cause"] == "worker-0: killed by SIGKILL"
    assert not pids(regatta, b"patient")


def test_a_frozen_node_is_lost(regatta):
    """Its agent and all of its processes are stopped: nobody answers, and the lease ends the run."""
    patient(regatta, OPENMPI, "wait", timeouts='{ lease = "10s", grace = "2s" }')
    run = regatta.submit("job.toml")
    ranks_are_here(regatta, run)
    place = f"{run}/worker-2.node".encode()
    frozen = [pid for pid, (cmd, env) in processes().items() if place in cmd or place in env]
    assert len(frozen) > 2
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    got = regatta.wait(run, SECONDS)
    assert got["verdict"] == "failed" and "worker-2" in got["cause"]
    assert not pids(regatta, b"patient")


@BOTH
def test_the_watchdog_names_a_node_whose_rank_is_frozen(regatta, mpi):
    """Its agent lives: nobody is lost, and the others wait for ever."""
    patient(regatta, mpi, "wait", stall='"4s"', stall_action='"kill"')
    run = regatta.submit("job.toml")
    ranks_are_here(regatta, run)
    mark = b"REGATTA_NODE=worker-2\0"
    frozen = [pid for pid, (cmd, env) in processes().items() if mark in env and cmd.startswith(b"./patient")]
    assert len(frozen) == 1
    os.kill(frozen[0], signal.SIGSTOP)
    got = regatta.wait(run, SECONDS)
    assert got["cause"].startswith("no output for 4.0 s (stall); worker-2 differs: T stopped"), got["cause"]
    bundle = regatta.home / "runs" / run / "stall"
    assert [bundle / f"worker-{i}.txt" for i in range(3)] == sorted(bundle.iterdir())
    assert (bundle / "worker-2.txt").read_text().startswith("T stopped")
    assert not pids(regatta, b"patient")


@pytest.fixture(scope="module")  # it is there until the master of a test has ended
def short_home():
    """Whose paths leave room for sockets below a node's own TMPDIR."""
    with tempfile.TemporaryDirectory(prefix="rgt-", dir="/tmp") as path:
        yield pathlib.Path(path)


def test_what_a_killed_daemon_leaves_goes_with_its_node(short_home, regatta):
    regatta.home = short_home
    regatta.env["REGATTA_HOME"] = str(short_home)
    patient(regatta, OPENMPI, "wait")
    run = regatta.submit("job.toml")
    ranks_are_here(regatta, run)
    nodes = short_home / "runs" / run
    assert sorted(p.parents[1].name for p in nodes.glob("*.node/tmp/ompi.*")) == [f"worker-{i}.node" for i in range(3)]
    mark = b"REGATTA_NODE=worker-1\0"
    for pid in [p for p, (cmd, env) in processes().items() if mark in env and str(nodes).encode() in env and b"orted" in cmd]:
        os.kill(pid, signal.SIGKILL)
    got = regatta.wait(run, SECONDS)
    assert got["verdict"] == "failed" and "worker-1" in got["cause"], got["cause"]
    assert not list(nodes.glob("*.node"))


@BOTH
def test_nodes_without_the_launchers_daemon_are_one_line(regatta, mpi):
    """Open MPI 4 that starts one daemon after the other waits for ever when the first does not start."""
    daemon = "orted" if mpi is OPENMPI else "hydra_pmi_proxy"
    path = pathlib.Path(regatta.env["PATH"])
    (path / daemon).unlink()
    launcher = path / "the-launcher"  # Hydra looks for its daemon where its own program is
    shutil.copy(shutil.which(mpi[1][0], path=str(path)), launcher)
    regatta.job('strategy = "mpi"\ncount = 3\ncommand = ["the-launcher", "-n", "3", "hostname"]\n')
    got = regatta.json("run", "job.toml", code=3, timeout=SECONDS)
    assert re.fullmatch(rf"worker-[012]: the launcher's {daemon} did not start: exit code 127: .*{daemon}: not found", got["cause"])
    assert not pids(regatta, b"the-launcher") and not pids(regatta, daemon.encode())


def test_a_node_without_mpirun_is_one_line(regatta):
    regatta.job('strategy = "mpi"\ncount = 2\ncommand = ["mpirun.nowhere", "./x"]\n')
    got = regatta.json("run", "job.toml", code=3)
    assert re.fullmatch(r"worker-[01]: command 'mpirun.nowhere' not found in PATH", got["cause"])
    assert not regatta.left(got["id"])
