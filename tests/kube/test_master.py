"""Engine kubernetes with a master in the cluster: the client may leave, and comes back for the results."""
import contextlib
import json
import os
import pathlib
import shutil
import signal

from . import cgroups
from .cluster import wait_for
from .test_quickstart import EXAMPLES, QUICKSTART, small

AUTO = QUICKSTART.replace('master = "here"\n', "")


def apart(command, **more):
    return small(command, **more).replace('master = "here"\n', "")


def put_programs(user):
    (user.directory / "programs").mkdir()
    for name in ("pserver", "trainer"):
        shutil.copy(EXAMPLES / name, user.directory / "programs" / name)


def test_the_quickstart_runs_with_a_master_in_the_cluster(user, namespace, decoys):
    put_programs(user)
    run = user.submit(user.job(AUTO))
    wait_for(lambda: len(namespace.pods(f"regatta/run={run}")) == 4, "the master's pod and three others", 90)
    ended = user.ends(run)
    assert ended["verdict"] == "succeeded", ended["cause"]
    namespace.nothing_left()
    home = user.directory / "home/runs" / run
    wait_for(lambda: (home / "results.json").exists(), "the results")
    loss = json.loads(user("metrics", run, "loss", "--output", "json").stdout)["metrics"]["loss"]["all"]
    assert loss["last"] < loss["first"] / 10 and loss["count"] == 162
    assert "step 8000/8000" in user("logs", run, "trainer-0").stdout
    assert sorted(path.name for path in (home / "outputs").glob("**/model-*")) == ["model-0", "model-1"]
    assert not list(pathlib.Path(user.directory / "home/contexts").glob("*.json"))


def kill_master(user):
    """As a laptop that is closed: no master of this home is there, until a command starts one."""
    os.kill(int((user.directory / "home/lock").read_text()), signal.SIGKILL)


def kill_master_there(namespace, run):
    """SIGKILL of the master in the pod, from outside; how many there were."""
    killed, pods = 0, namespace.pods(f"regatta/run={run},regatta/role=regatta")
    for pid in set().union(*(cgroups.processes_of_pod(namespace.cluster.tag, pod["metadata"]["uid"]) for pod in pods)):
        with contextlib.suppress(OSError):
            if b"\0master\0" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
                killed += 1
    return killed


def has_ended_there(namespace, run):
    """The job has run, and the master has removed what it made for it: it waits with the results."""
    roles = {pod["metadata"]["labels"]["regatta/role"] for pod in namespace.pods(f"regatta/run={run}")}
    jobs = {job["metadata"]["labels"]["regatta/role"] for job in namespace.json("get", "jobs")["items"]}
    return roles == jobs == {"regatta"} and not namespace.json("get", "services", "--selector=regatta/role=")["items"]


def test_a_client_that_is_killed_comes_back_for_the_results(user, namespace):
    script = "while [ ! -e /tmp/go ]; do sleep 0.1; done; echo hello; echo kept > kept.txt"
    user.job(apart(["sh", "-c", script], count=1, more="[output]\nkeep = \"kept.txt\""))
    run = user("run", "-d", "job.toml").stdout.split()[-1]
    kill_master(user)  # the run is stored, and perhaps nothing is made yet
    wait_for(lambda: user.status(run)["state"] == "running", "the hand-over", 90)
    assert json.loads((user.directory / "home/contexts" / f"{run}.json").read_text())["url"].startswith(f"kube://{namespace.name}/")
    kill_master(user)
    assert kill_master_there(namespace, run)  # it is started again in its pod, and goes on
    namespace.kubectl("exec", next(p["metadata"]["name"] for p in namespace.pods(f"regatta/run={run},regatta/role=worker")), "--",
                      "touch", "/tmp/go")
    wait_for(lambda: has_ended_there(namespace, run), "the end of the job without a client", 90)
    ended = user.ends(run)
    assert ended["verdict"] == "succeeded", ended["cause"]
    namespace.nothing_left()
    home = user.directory / "home/runs" / run
    wait_for(lambda: (home / "results.json").exists(), "the results")
    assert (home / "logs/worker-0.log").read_bytes() == b"hello\n"
    assert [path.read_text() for path in (home / "outputs").glob("**/kept.txt")] == ["kept\n"]
    assert not (home / ".fetched").exists()
