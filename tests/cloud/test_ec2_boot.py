"""Runs of the engine aws.ec2 whose instances boot: Debian, its cloud-init, the user data, the agent, the job."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from . import Cloud, network, servers
from .conftest import client, wait_for
from .test_ec2_run import ROOT, STAYS, User

pytestmark = pytest.mark.skipif(bool(network.missing()), reason=network.missing() or "-")
EXAMPLES = pathlib.Path(os.environ.get("REGATTA_EXAMPLES", ROOT / "build" / "examples"))
QUICKSTART = """name = "quickstart"
engine = "aws.ec2"
master = "here"
strategy = "pserver"
max_runtime = "10m"
instance_type = "c5.large"
source = "programs"

[roles.pserver]
count = 1
command = ["./pserver"]
port = 5436

[roles.trainer]
count = 2
command = ["sh", "-c", "./trainer; echo done > model-$REGATTA_RANK"]

[output]
keep = "model-*"

[metrics.loss]
pattern = 'step (?<step>\\d+)/(?<total>\\d+) loss=(?<value>[-+.0-9eE]+)'
better = "lower"
"""


@pytest.fixture(scope="module")
def real():
    with Cloud(boot="real") as cloud:
        cloud.add_decoys()
        yield cloud
        cloud.check_decoys()
        assert not cloud.broken, "\n".join(cloud.broken)


@pytest.fixture
def user(real, tmp_path):
    made = User(tmp_path, real)
    made.listen(real.network.caller)
    yield made
    made.close()


def consoles(real):
    return "\n".join(f"---- {number}\n{real.console(number)[-3000:]}" for number in real.launched())


def look_of(ec2, run, instances):
    """As boto3 sees the instances and groups of a run."""
    seen = [i for r in ec2.describe_instances(InstanceIds=list(instances))["Reservations"] for i in r["Instances"]]
    for one in seen:
        tags = {tag["Key"]: tag["Value"] for tag in one["Tags"]}
        assert tags["regatta:run"] == run and {"regatta:install", "regatta:role", "regatta:attempt", "regatta:expires"} <= set(tags)
        assert one["MetadataOptions"]["HttpTokens"] == "required" and one["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
        behaviour = ec2.describe_instance_attribute(InstanceId=one["InstanceId"], Attribute="instanceInitiatedShutdownBehavior")
        assert behaviour["InstanceInitiatedShutdownBehavior"]["Value"] == "terminate"
    groups = {group["GroupId"] for one in seen for group in one["SecurityGroups"]}
    for group in ec2.describe_security_groups(GroupIds=list(groups))["SecurityGroups"]:
        assert "0.0.0.0/0" not in json.dumps(group["IpPermissions"])


def add_programs(directory):
    (directory / "programs").mkdir()
    for name in ("pserver", "trainer"):
        shutil.copy(EXAMPLES / name, directory / "programs" / name)


def test_the_quickstart_runs_on_instances_and_nothing_is_left(real, user, tmp_path):
    add_programs(tmp_path)
    before = set(real.launched())
    run = user.submit(QUICKSTART)
    made = wait_for(lambda: len(found := set(real.launched()) - before) == 3 and found, what="three instances")
    look_of(client(real, "ec2"), run, made)
    ended = user.ends(run, 180)
    assert ended["verdict"] == "succeeded", f"{ended['cause']}\n{consoles(real)}"
    loss = json.loads(user("metrics", run, "loss", "--output", "json").stdout)["metrics"]["loss"]["all"]
    assert loss["last"] < loss["first"] / 10 and loss["count"] == 162
    assert "step 8000/8000" in user("logs", run, "trainer-0").stdout
    assert sorted(path.name for path in (tmp_path / "home/runs" / run / "outputs").glob("**/model-*")) == ["model-0", "model-1"]
    assert not real.left(*STAYS)


# ---- packages of a mirror, and a source of a git server ----

NEEDY = """name = "needy"
engine = "aws.ec2"
master = "here"
max_runtime = "10m"
instance_type = "{type}"
packages = {packages}
source = "git+{git}/code.git@{revision}"
command = ["sh", "-c", "greeter; cat revision data.txt"]
[[data]]
src = "{files}/data.txt"
"""
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


@pytest.fixture
def code(real, tmp_path):
    """A job with these packages, whose source is a revision of a repository on a server of HTTPS, with data of another; their CA."""
    (tmp_path / "git").mkdir()
    (tmp_path / "git/data.txt").write_text("data by HTTPS\n")
    tls, ca = servers.certificate(tmp_path, real.network.caller)

    def git(*args):
        subprocess.run(["git", "-C", tmp_path / "git/code.git", "-c", "user.name=a", "-c", "user.email=a@b", *args], check=True, capture_output=True)

    subprocess.run(["git", "init", "-q", tmp_path / "git/code.git"], check=True)
    for revision in ("v1", "v2"):
        (tmp_path / "git/code.git/revision").write_text(f"the code of {revision}\n")
        git("add", ".")
        git("commit", "-q", "-m", revision)
        git("tag", revision)
    with servers.https(tmp_path / "git", real.network.caller, tls) as (files, url):
        yield lambda packages, revision="v1", kind="c5.large": NEEDY.format(type=kind, packages=json.dumps(packages), files=files, git=url,
                                                                            revision=revision), ca


def test_a_machine_has_packages_from_a_mirror_source_from_a_git_server_and_data_by_https(real, user, tmp_path, code):
    """And what is wrong with them is one line: a package or a revision that does not exist, a mirror that does not answer."""
    code, ca = code
    user.env.update(GIT_SSL_CAINFO=str(ca), SSL_CERT_FILE=str(ca))
    (tmp_path / "mirror").mkdir()
    servers.add_package(tmp_path / "mirror", "greeter", "#!/bin/sh\necho installed and greeting\n")
    with servers.mirror(tmp_path / "mirror", real.network.caller) as line:
        nobody = f"deb [trusted=yes] http://{real.network.caller}:9/ ./"
        real.image_files = lambda instance: {CERTIFICATES: ca.read_text(), "/etc/apt/sources.list": nobody if instance.instance_type == "c5.xlarge" else line}
        good, absent, silent = (user.submit(job) for job in (code(["greeter"]), code(["greeter", "no-such-package"]), code(["greeter"], kind="c5.xlarge")))
        ended = user.ends(good, 180)
        assert ended["verdict"] == "succeeded", f"{ended['cause']}\n{consoles(real)}"
        assert user("logs", good, "worker-0").stdout.endswith("installed and greeting\nthe code of v1\ndata by HTTPS\n")
        ends = [user.ends(run, 180)["cause"] for run in (absent, silent)]
    assert "setup 'install greeter no-such-package' failed with exit code 100: E: Unable to locate package no-such-package" in ends[0], ends
    assert "setup 'install greeter' failed with exit code 100: apt-get update could not fetch the lists of packages" in ends[1], ends
    (tmp_path / "job.toml").write_text(code(["greeter"], "v9"))
    said = user("run", "-d", "job.toml", code=3).stderr
    assert said.count("\n") == 1 and "git fetch: fatal: couldn't find remote ref v9" in said, said
    del user.env["GIT_SSL_CAINFO"]
    (tmp_path / "job.toml").write_text(code(["greeter"]))
    said = user("run", "-d", "job.toml", code=3).stderr
    assert said.count("\n") == 1 and "certificate" in said, said
    assert not real.left(*STAYS)
