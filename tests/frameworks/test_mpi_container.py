"""Strategy mpi in containers of Debian's podman: mpirun, its daemons and all ranks are in them, without ssh.

The image is made of this machine's Open MPI and MPICH; the programs that the ranks run are in the image only.
"""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import wait_for
from podman import BUSYBOX, directory, link, on_path, podman_storage
from test_mpi import EXAMPLE, MPICH, OPENMPI, PATIENT, SECONDS

IMAGE = "localhost/regatta-mpi:1"
PROGRAMS = ("mpirun.openmpi", "orted", "mpiexec.hydra", "hydra_pmi_proxy")
PLUGINS = ("openmpi", "pmix2")


def words(*command):
    return subprocess.run([*map(str, command)], check=True, capture_output=True, text=True, timeout=60).stdout


def needed_by(files):
    """The loader, and the libraries that it finds for these files and for each other.  (ldd would start each of them.)"""
    cache = {}
    for name, path in re.findall(r"^\t(\S+) \(.*\) => (\S+)$", words("ldconfig", "-p"), re.M):
        cache.setdefault(name, path)  # the first is that of this machine's own kind
    loader = re.search(r"interpreter: (\S+)\]", words("readelf", "-lW", files[0]))[1]
    found, new = {loader}, set(map(str, files))
    while new:
        asked = re.findall(r"\(NEEDED\).*\[(\S+)\]", words("readelf", "-dW", *sorted(new)))
        new = {cache[name] for name in asked if name in cache} - found
        found |= new
    return found


def mpi_image(place):
    programs = [shutil.which(name) for name in PROGRAMS]
    libraries = pathlib.Path(os.path.realpath(next(p for p in needed_by(programs) if "libc.so" in p))).parent
    places = [libraries / name for name in PLUGINS] + [pathlib.Path("/usr/share/openmpi"), pathlib.Path("/etc/openmpi")]
    own = []
    (place / "patient.c").write_text(PATIENT)
    for compiler, name in ((OPENMPI[0], "openmpi"), (MPICH[0], "mpich")):
        for source in (EXAMPLE / "allreduce.c", place / "patient.c"):
            own.append(place / f"{source.stem}-{name}")
            subprocess.run([compiler, "-o", own[-1], source], check=True, capture_output=True, timeout=60)
    modules = [file for plugins in places for file in plugins.rglob("*.so*")]

    def fill(archive):
        for name in ("usr/bin", "tmp", "etc", "opt"):
            archive.addfile(directory(name))
        for name in ("bin", "lib", "lib64", "sbin"):
            archive.addfile(link(name, f"usr/{name}"))
        archive.add(BUSYBOX, "usr/bin/busybox")
        for name in ("sh", "sleep", "true", "env"):
            archive.addfile(link(f"usr/bin/{name}", "busybox"))
        for file in sorted(needed_by([*programs, *modules, *own])):
            where = file if file.startswith("/usr") else f"/usr{file}"
            archive.add(os.path.realpath(file), where)
        for file in programs:
            archive.add(os.path.realpath(file), f"usr/bin/{os.path.basename(file)}")
        for file in places:
            archive.add(file, str(file))
        for file in own:
            archive.add(file, f"opt/{file.name}")
    return fill, ["ENV=PATH=/usr/bin:/opt"]


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    with podman_storage({IMAGE: mpi_image(tmp_path_factory.mktemp("mpi"))}) as podman:
        yield podman


@pytest.fixture
def podman(storage, regatta):
    with on_path(storage, regatta):
        yield storage


def job(regatta, mpi, program, *words, top=""):
    name = "openmpi" if mpi is OPENMPI else "mpich"
    command = ", ".join(f'"{w}"' for w in [*mpi[1], "-n", "6", f"{program}-{name}", *words])
    regatta.job(f'strategy = "mpi"\nimage = "{IMAGE}"\ncount = 3\nprocesses_per_node = 2\ncommand = [{command}]\n{top}')


def check_sums(log):
    found = re.findall(r"rank (\d+) of 6 on (\S+): sum (\S+)", log)
    assert sorted(rank for rank, _, _ in found) == [str(i) for i in range(6)]
    assert sorted(node for _, node, _ in found) == [f"worker-{i // 2}" for i in range(6)]
    assert {float(total) for _, _, total in found} == {10.5}


def test_all_reduce_in_containers(regatta, podman):
    job(regatta, OPENMPI, "allreduce")
    got = regatta.json("run", "job.toml", timeout=SECONDS)
    assert got["verdict"] == "succeeded", got
    check_sums(regatta.log(got["id"], "worker-0").decode())
    for i in (1, 2):
        assert sorted(re.findall(r"rank (\d) of", regatta.log(got["id"], f"worker-{i}").decode())) == [str(2 * i), str(2 * i + 1)]
    assert [node["exit_code"] for node in got["nodes"]] == [0] * len(got["nodes"]), got["nodes"]


def test_all_reduce_of_mpich_in_containers(regatta, podman):
    """MPICH 4.0.2 over TCP hangs in MPI_Finalize in many runs, also without Regatta (docs/frameworks.md): the sums are
    awaited, and then the run is ended."""
    job(regatta, MPICH, "allreduce")
    run = regatta.submit("job.toml")
    log = regatta.home / "runs" / run / "logs" / "worker-0.log"
    wait_for(lambda: log.exists() and log.read_bytes().count(b": sum ") == 6, SECONDS, "all sums")
    check_sums(log.read_text())
    regatta("kill", run, code=None)  # or it has ended
    regatta.wait(run, SECONDS)
    assert podman.names() == []


def test_what_mpich_starts_in_containers_ends(regatta, podman):
    regatta.job(f'''
        strategy = "mpi"
        image = "{IMAGE}"
        count = 3
        processes_per_node = 2
        command = ["{MPICH[1][0]}", "-n", "6", "sh", "-c", "echo rank $PMI_RANK of $PMI_SIZE on $REGATTA_NODE"]
    ''')
    got = regatta.json("run", "job.toml", timeout=SECONDS)
    assert got["verdict"] == "succeeded", got
    found = re.findall(r"^rank (\d) of 6 on (\S+)$", regatta.log(got["id"], "worker-0").decode(), re.M)
    assert sorted(found) == [(str(i), f"worker-{i // 2}") for i in range(6)]
    assert [node["exit_code"] for node in got["nodes"]] == [0] * len(got["nodes"]), got["nodes"]


def test_a_dead_rank_in_a_container_is_named(regatta, podman):
    job(regatta, OPENMPI, "patient", "kill")
    got = regatta.json("run", "job.toml", code=1, timeout=SECONDS)
    assert re.fullmatch(r"worker-0: exit code 137: rank 1 on worker-0: killed by SIGKILL", got["cause"]), got["cause"]
    assert podman.names() == []


def test_a_cancelled_run_leaves_nothing_in_containers(regatta, podman):
    job(regatta, MPICH, "patient", "wait")
    run = regatta.submit("job.toml")
    log = regatta.home / "runs" / run / "logs" / "worker-0.log"
    wait_for(lambda: log.exists() and log.read_bytes().count(b"is here") == 6, SECONDS, "all ranks")
    assert len(podman.names()) == 3
    regatta("kill", run)
    assert regatta.wait(run, SECONDS)["verdict"] == "cancelled"
    assert not [pid for pid, cmd in regatta.ours().items() if b"patient" in cmd]
