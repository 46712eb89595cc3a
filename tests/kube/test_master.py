"""Engine kubernetes with a master in the cluster: the client may leave, and comes back for the results."""
import base64
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import ssl
import urllib.error
import urllib.request

import pytest

from cloud import Cloud
from cloud.conftest import client

from . import cgroups
from .cluster import wait_for
from .conftest import User
from .pki import Authority
from .test_agentless import plain
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

    def lets_it_end():  # running is said here once the run is handed over
        there = [p["metadata"]["name"] for p in namespace.pods(f"regatta/run={run},regatta/role=worker")]
        return there and namespace.kubectl("exec", there[0], "--", "sh", "-c", "touch /tmp/go && echo done", check=False) == "done\n"
    wait_for(lets_it_end, "its container", 90)
    wait_for(lambda: has_ended_there(namespace, run), "the end of the job without a client", 90)
    ended = user.ends(run)
    assert ended["verdict"] == "succeeded", ended["cause"]
    namespace.nothing_left()
    home = user.directory / "home/runs" / run
    wait_for(lambda: (home / "results.json").exists(), "the results")
    assert (home / "logs/worker-0.log").read_bytes() == b"hello\n"
    assert [path.read_text() for path in (home / "outputs").glob("**/kept.txt")] == ["kept\n"]
    wait_for(lambda: not (home / ".fetched").exists(), "the end of what was fetched")


def without_credentials(path):
    """Its context, with a token that nobody takes."""
    lines = path.read_text().splitlines()
    text = "\n".join(line for line in lines if "client-key-data" not in line)
    path.write_text(re.sub("client-certificate-data: .*", "token: expired", text))


def look_at_page(user, run):
    """As a browser does: the link once, the page, and the run through the API server."""
    served = user.start("ui", "--print", run)
    try:
        link = served.stdout.readline().strip()
        base = link[:link.index("/login")]
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        assert browser.open(link, timeout=30).url == f"{base}/run/{run}"
        with browser.open(f"{base}/api/v1/runs/{run}", timeout=30) as answer:
            assert json.load(answer)["state"] == "running"
        with browser.open(f"{base}/api/v1/events?after=0", timeout=30) as events:
            assert wait_for(lambda: events.readline().startswith(b"data: "), "an event")
        with browser.open(f"{base}/api/v1/runs/{run}/logs/worker-0", timeout=30) as log:
            assert log.read() == b"hello\n"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{base}/api/v1/runs", timeout=30)
    finally:
        served.send_signal(signal.SIGINT)
        assert served.wait(30) == 0


@pytest.mark.long
def test_another_home_finds_the_master_and_ends_the_run(user, namespace, tmp_path):
    run = user.submit(user.job(apart(["sh", "-c", "echo hello; sleep 1000"], count=1)))
    (tmp_path / "away").mkdir()
    away = User(tmp_path / "away", namespace)
    try:
        wait_for(lambda: user("logs", run, "worker-0", code=None).stdout == "hello\n", "the log", 120)
        assert f"no run '{run}'" in away("status", run, code=3).stderr
        found, = json.loads(away("context", "kubernetes", "--output", "json").stdout)
        assert (found["run"], found["state"], found["why"]) == (run, "Running", None)
        assert found["url"].startswith(f"kube://{namespace.name}/{run}-regatta:")
        assert away.status(run)["counts"]["running"] == 1
        assert away("logs", run, "worker-0").stdout == "hello\n"
        assert away("exec", run, "worker-0", "--", "echo", "inside").stdout == "inside\n"
        look_at_page(away, run)
        good = away.kubeconfig.read_text()
        without_credentials(away.kubeconfig)
        assert "your credentials have expired" in away("status", run, code=4).stderr
        assert "your credentials have expired" in away("kill", run, code=4).stderr
        away.kubeconfig.write_text(good)
        assert "is being cancelled" in away("kill", run).stdout
        assert user.ends(run)["verdict"] == "cancelled"
        namespace.nothing_left()
        assert "no master runs" in away("context", "kubernetes").stderr
        assert not list((away.directory / "home/contexts").glob("*.json"))
    finally:
        away("master", "--stop", code=None)


@pytest.mark.long
def test_the_own_master_puts_results_where_output_s3_says(user, namespace):
    with Cloud() as cloud:
        user.env.update(cloud.env())
        client(cloud, "s3", signature_version="s3v4").create_bucket(Bucket="results-of-pods")
        run = user.submit(user.job(plain(["echo", "hello"], count=1) + "[output]\ns3 = \"s3://results-of-pods/runs\"\n"))
        ended = user.ends(run)
        assert ended["verdict"] == "succeeded", ended["cause"]
        s3 = client(cloud, "s3", signature_version="s3v4")
        wait_for(lambda: s3.list_objects_v2(Bucket="results-of-pods", Prefix=f"runs/{run}/index.json").get("Contents"), "the copy")
        assert s3.get_object(Bucket="results-of-pods", Key=f"runs/{run}/logs/worker-0.log")["Body"].read() == b"hello\n"
        namespace.nothing_left()


def until_copied(s3, run):
    wait_for(lambda: s3.list_objects_v2(Bucket="results-of-pods", Prefix=f"runs/{run}/index.json").get("Contents"), "the copy", 120)
    return s3.get_object(Bucket="results-of-pods", Key=f"runs/{run}/logs/worker-0.log")["Body"].read()


STORED = """[output]
s3 = "s3://results-of-pods/runs"
keep = "kept.txt"
[[data]]
src = "s3://results-of-pods/inputs/in.txt"
path = "in.txt"
"""


def test_results_go_to_a_bucket_over_https_from_an_image_without_certificates(user, namespace, tmp_path, monkeypatch):
    ca = Authority(tmp_path / "ca", None)
    ca.sign("s3", "/CN=s3", f"IP:{namespace.cluster.at.here}")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(ca.path("s3.crt"), ca.path("s3.key"))
    monkeypatch.setenv("AWS_CA_BUNDLE", str(ca.path("ca.crt")))
    with Cloud(host=namespace.cluster.at.here, tls=tls) as cloud:
        user.env.update(cloud.env(), AWS_CA_BUNDLE=str(ca.path("ca.crt")))
        job = user.job(apart(["echo", "hello"], count=1) + "[output]\ns3 = \"s3://results-of-pods/runs\"\n")
        assert "output.s3: bucket 'results-of-pods'" in user("run", "-d", job, code=3).stderr
        namespace.nothing_left()
        s3 = client(cloud, "s3", signature_version="s3v4")
        s3.create_bucket(Bucket="results-of-pods")
        run = user.submit(job)
        assert user.ends(run)["verdict"] == "succeeded"
        assert until_copied(s3, run) == b"hello\n"
        namespace.nothing_left()
        assert "not copied" not in user("events", run).stdout
        user("wait", run)  # until the results are here, too
        assert user("logs", run).stdout == "hello\n"


def credentials_are_nowhere(secret, user, namespace, run):
    """But with the masters: in no object, log, plan or answer, and in nothing that the pod of the node has."""
    for thing in ("secrets", "configmaps", "jobs", "pods", "events"):
        text = namespace.kubectl("get", thing, "-o", "json")
        values = [base64.b64decode(v).decode(errors="replace") for item in json.loads(text)["items"] if thing == "secrets"
                  for v in (item.get("data") or {}).values()]
        assert secret not in text and not any(secret in value for value in values), thing
    for pod in namespace.pods(f"regatta/run={run}"):
        assert secret not in namespace.kubectl("logs", pod["metadata"]["name"])
    pattern = f"[{secret[0]}]{secret[1:]}"  # which does not find itself
    inside = f"find /tmp /run /var /etc /root -type f -exec grep -l '{pattern}' {{}} +; grep -l '{pattern}' /proc/[0-9]*/environ /proc/[0-9]*/cmdline"
    assert user("exec", run, "worker-0", "--", "sh", "-c", inside, code=None).stdout == ""
    for command in (("status", "--output", "json", run), ("events", "--output", "json", run), ("logs", run), ("plan", "--output", "json", "job.toml")):
        assert secret not in user(*command).stdout, command
    home = user.directory / "home"
    holding = [path for path in home.rglob("*") if path.is_file() and not path.is_symlink() and secret.encode() in path.read_bytes()]
    assert [path.name for path in holding] == ["secrets.json"] and holding[0].stat().st_mode & 0o777 == 0o600, holding


@pytest.mark.long
def test_a_master_in_the_cluster_reads_inputs_from_s3_and_puts_results_there_without_a_client(user, namespace):
    with Cloud(host=namespace.cluster.at.here) as cloud:
        user.env.update(cloud.env())
        s3 = client(cloud, "s3", signature_version="s3v4")
        s3.create_bucket(Bucket="results-of-pods")
        s3.put_object(Bucket="results-of-pods", Key="inputs/in.txt", Body=b"from the bucket\n")
        script = "cat in.txt; while [ ! -e /tmp/go ]; do sleep 0.1; done; cp in.txt kept.txt; env | grep -c AWS_; true"
        run = user.submit(user.job(apart(["sh", "-c", script], count=1, more=STORED)))
        wait_for(lambda: user("logs", run, "worker-0", code=None).stdout == "from the bucket\n", "the log", 120)
        credentials_are_nowhere(cloud.root.secret, user, namespace, run)
        kill_master(user)
        namespace.kubectl("exec", next(p["metadata"]["name"] for p in namespace.pods(f"regatta/run={run},regatta/role=worker")), "--",
                          "touch", "/tmp/go")
        assert until_copied(s3, run) == b"from the bucket\n0\n"
        namespace.nothing_left()  # its master has removed everything of the run, itself at last
        ended = user.ends(run)
        assert ended["verdict"] == "succeeded", ended["cause"]
        home = user.directory / "home/runs" / run
        wait_for(lambda: (home / "results.json").exists(), "the results")
        assert [path.read_text() for path in (home / "outputs").glob("**/kept.txt")] == ["from the bucket\n"]


@pytest.mark.long
def test_results_that_a_master_in_the_cluster_may_not_copy_are_fetched_from_it(user, namespace):
    with Cloud(host=namespace.cluster.at.here) as cloud:
        reader = cloud.user("reader", {"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Action": ["s3:GetBucketLocation", "s3:ListBucket", "s3:GetObject"], "Resource": "*"}]})
        user.env.update(cloud.env(reader))
        client(cloud, "s3", signature_version="s3v4").create_bucket(Bucket="results-of-pods")
        run = user.submit(user.job(apart(["echo", "hello"], count=1) + "[output]\ns3 = \"s3://results-of-pods/runs\"\n"))
        ended = user.ends(run)
        assert ended["verdict"] == "succeeded", ended["cause"]
        namespace.nothing_left()
        home = user.directory / "home/runs" / run
        wait_for(lambda: (home / "results.json").exists(), "the results")
        assert (home / "logs/worker-0.log").read_bytes() == b"hello\n"
        assert "not copied, and fetched from its master" in user("events", run).stdout
