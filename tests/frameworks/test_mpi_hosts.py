"""Strategy mpi on machines of one's own: three network namespaces behind a switch, TLS to the master, no ssh."""
import re
import subprocess
import sys

from conftest import ROOT

sys.path.append(str(ROOT / "tests" / "e2e" / "hosts"))
from lab import lab, needs_lab  # noqa: E402,F401 (a fixture)

pytestmark = needs_lab


def test_mpirun_reaches_all_hosts(lab):
    regatta = lab.regatta
    names = ["a", "b", "c"]
    lab.join(*names)
    subprocess.run(["mpicc.openmpi", "-o", regatta.cwd / "allreduce", ROOT / "examples" / "mpi-allreduce" / "allreduce.c"],
                   check=True, capture_output=True, timeout=60)
    # The machines of the lab share a host name, /tmp and /dev/shm, by which Open MPI would mix up their shared memory:
    # that of the ranks, and the files of the daemons, one of which ended now and then when two started at once.
    regatta.job('engine = "hosts"\nstrategy = "mpi"\nsource = "allreduce"\ncount = 3\nprocesses_per_node = 2\n'
                'env = { OMPI_MCA_btl = "self,tcp", OMPI_MCA_rtc_hwloc_vmhole = "none", OMPI_MCA_plm_rsh_num_concurrent = "1" }\n'
                'command = ["mpirun.openmpi", "-n", "6", "./allreduce"]\n')
    got = regatta.json("run", "job.toml", timeout=120)
    assert got["verdict"] == "succeeded", got
    text = regatta.log(got["id"], "worker-0").decode()
    assert sorted(re.findall(r"rank \d of 6 on (\S+): sum 10.5", text)) == [f"worker-{i}" for i in range(3) for _ in "ab"]
    for i in (1, 2):
        assert sorted(re.findall(r"rank (\d) of", regatta.log(got["id"], f"worker-{i}").decode())) == [str(2 * i), str(2 * i + 1)]
