"""The document of Paddle's AWS benchmark tool, followed with `regatta paddle` on instances that boot."""
import contextlib
import json
import re
import ssl
import urllib.error
import urllib.request

import pytest

from . import network
from .conftest import client, wait_for
from .test_ec2_run import User
from .test_handover import STAYS, ends_here, is_taken_in, kill_own_master, real, said, user  # noqa: F401  pylint: disable=unused-import

pytestmark = pytest.mark.skipif(bool(network.missing()), reason=network.missing() or "-")
INITIALISED = re.compile(r"master server finished init process, visit (https://([\d.]+):(\d+))/status to check master log\n")
IMAGE = "myreponame/paddle_benchmark"
OLD_NAMES = {"TASK_NAME", "TRAINING_ROLE", "PSERVER_HOSTS", "PSERVERS", "TRAINERS", "TRAINER_COUNT", "TRAINER_INDEX", "MASTER_ENDPOINT"}


@pytest.fixture(scope="module")
def group(real):  # noqa: F811
    """The prerequisites of the document: a key pair, and a security group.  They stay as they are."""
    ec2, before = client(real, "ec2"), set(real.truth())
    ec2.create_key_pair(KeyName="mykey")
    made = ec2.create_security_group(GroupName="paddle", Description="x", VpcId=ec2.describe_vpcs()["Vpcs"][0]["VpcId"])["GroupId"]
    ec2.authorize_security_group_ingress(GroupId=made, IpPermissions=[{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22,
                                                                        "IpRanges": [{"CidrIp": "198.51.100.7/32"}]}])
    real.decoy_facts.update({key: facts for key, facts in real.truth().items() if key not in before})
    return made


def create(user, *flags):  # noqa: F811
    """The run, and URL, address and port of its master."""
    done = user("paddle", "--action", "create", *flags)
    line = INITIALISED.fullmatch(done.stdout)
    assert line, f"{done.stdout}\n{done.stderr}"
    run, = json.loads(user("ps", "--master", "local", "--output", "json").stdout)
    return run["id"], *line.groups()


def look_of(ec2, run):
    """Tags of the run's instances by role, as boto3 sees them; both spellings agree."""
    seen = ec2.describe_instances(Filters=[{"Name": "tag:regatta:run", "Values": [run]}, {"Name": "instance-state-name", "Values": ["pending", "running"]}])
    found = [({t["Key"]: t["Value"] for t in i["Tags"]}, i) for r in seen["Reservations"] for i in r["Instances"]]
    assert all(tags["ROLE"] == tags["Role"] and tags["TASK_NAME"] == tags["Task_name"] for tags, _ in found)
    return sorted((tags["ROLE"], tags["TASK_NAME"], one["InstanceType"]) for tags, one in found), [one for _, one in found]


def first_line(text):
    """What the container saw."""
    return json.loads(text.splitlines()[0])


def check_container(seen, role, index, pservers, trainers=2):
    env, docker = seen["env"], json.loads(seen["env"]["DOCKER_ARGV"])
    assert not env["MASTER_ENDPOINT"].startswith("127.")
    assert OLD_NAMES <= set(env) and env["TRAINING_ROLE"] == role and env["TRAINER_INDEX"] == str(index)
    assert env["PSERVER_HOSTS"] == env["PSERVERS"] == pservers and env["TRAINERS"] == env["TRAINER_COUNT"] == str(trainers)
    assert ("SERVER_ENDPOINT" in env, "PADDLE_INIT_TRAINER_ID" in env) == (role == "PSERVER", role == "TRAINER")
    assert docker[0] == "run" and docker[docker.index("--network") + 1] == "host" and IMAGE in docker
    assert not {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} & set(env)


def log(user, run, node):  # noqa: F811
    return user("logs", run, node).stdout


def test_the_document_is_followed_until_the_logs_are_retrieved(real, user, group):  # noqa: F811
    """As it stands there, with the names of the document: create, wait for the line, and all goes by itself."""
    ec2 = client(real, "ec2")
    flags = ("--key_name", "mykey", "--security_group_id", group, "--pserver_image_id", IMAGE, "--trainer_image_id", IMAGE,
             "--pserver_count", "1", "--trainer_count", "2", "--task_name", "VGG 8")
    # Its machines of the time are gone from EC2.
    assert "does not offer the type 'p2.8xlarge': choose another instance type; nothing was made" in user("paddle", "--action", "create", *flags, code=2).stderr
    run, _, address, port = create(user, *flags, "--trainer_instance_type", "g4dn.xlarge")
    assert port == "5436"
    wanted = [("MASTER", "VGG 8_master", "t3.micro"), ("PSERVER", "VGG 8", "c5.2xlarge"), *2 * [("TRAINER", "VGG 8", "g4dn.xlarge")]]
    assert wait_for(lambda: len((seen := look_of(ec2, run)[0])) == 4 and seen, 60, "four instances") == wanted, said(user, real)
    for one in look_of(ec2, run)[1]:
        assert one["KeyName"] == "mykey" and group in [g["GroupId"] for g in one["SecurityGroups"]]
        assert (one["PublicIpAddress"] == address) == ({"Key": "ROLE", "Value": "MASTER"} in one["Tags"])
    ended = ends_here(user, real, run)
    assert ended["verdict"] == "succeeded", said(user, real)
    wait_for(lambda: is_taken_in(user, run), 60, "the results")
    server = first_line(log(user, run, "pserver-0"))
    assert server["env"]["SERVER_ENDPOINT"].endswith(":5436") and server["argv"] == ["--device", "CPU"]
    check_container(server, "PSERVER", 0, server["env"]["SERVER_ENDPOINT"])
    for index in (0, 1):
        text = log(user, run, f"trainer-{index}")
        seen = first_line(text)
        check_container(seen, "TRAINER", index, server["env"]["SERVER_ENDPOINT"])
        assert seen["env"]["TASK_NAME"] == "VGG 8" and seen["argv"] == ["--device", "GPU"]
        assert f"{server['env']['SERVER_ENDPOINT']} weights" in text
    assert json.loads(user("metrics", run, "loss", "--output", "json").stdout)["metrics"]["loss"]["all"]["count"] == 2


class Master:
    """The HTTP service of a master instance, with the token of the run's context."""

    def __init__(self, user, run, url):  # noqa: F811
        kept = json.loads((user.directory / "home/contexts" / f"{run}.json").read_text())
        self.url, self.token, self.tls = url, kept["token"], ssl.create_default_context()
        self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE

    def __call__(self, path, method="GET", token=True):
        asked = urllib.request.Request(self.url + path, method=method, headers={"Authorization": f"Bearer {self.token}"} if token else {})
        with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(asked, timeout=30, context=self.tls) as answer:
            return answer.read().decode()
        return None


@pytest.fixture
def away(real, tmp_path):  # noqa: F811
    (tmp_path / "away").mkdir()
    made = User(tmp_path / "away", real)
    yield made
    made.close()


def test_status_and_cleanup_by_address_and_port_and_the_four_paths(real, user, away):  # noqa: F811
    """After the line the laptop is turned off, and another one, which has never heard of the run, goes on."""
    run, url, address, port = create(user, "--docker_image", IMAGE, "--trainer_command", "hold:", "--trainer_instance_type", "c5.large",
                                     "--master_server_port", "8000")
    assert port == "8000"
    master, at = Master(user, run, url), ("--master_server_public_ip", address, "--master_server_port", port)
    kill_own_master(user)
    assert f"run {run}: provisioning" in away("paddle", "--action", "status", *at).stdout
    name, server = f"{run}/trainer-0.log", f"{run}/pserver-0.log"
    wait_for(lambda: {name, server} <= set(master("/list_logs").splitlines()) and "metrics_data" in master(f"/log/{name}"), 90, "the trainer")
    endpoint = first_line(master(f"/log/{server}"))["env"]["SERVER_ENDPOINT"]
    check_container(first_line(master(f"/log/{name}")), "TRAINER", 0, endpoint, trainers=1)
    assert f'run="{run}"' in master("/metrics") and master("/metrics", token=False) is None  # for Prometheus
    assert f"run {run}: running" in master("/status") and master("/log/../../x") is None
    assert master("/status", token=False) is None and master("/cleanup", "POST", token=False) is None
    assert "cleanup in progress" in away("paddle", "--action", "cleanup", *at).stdout
    wait_for(lambda: not real.left(*STAYS), 120, "that everything is gone")
    assert "metrics_data" in log(away, run, "trainer-0")
    assert json.loads(away("status", run, "--output", "json").stdout)["verdict"] == "cancelled"
