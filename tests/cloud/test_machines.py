"""Instances that boot: Debian's cloud-init, the metadata service, the firewall, the ways in which a machine ends."""
import contextlib
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from . import Cloud, network
from .conftest import client, wait_for
from .test_launch import group_of, ids, launch
from .test_policy import TRUST, document

pytestmark = pytest.mark.skipif(bool(network.missing()), reason=network.missing() or "-")
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Home:
    """Whom guests call: what they post, by the first word of the path."""

    def __init__(self, address):
        home = self
        self.posts = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                home.posts.append((self.path, self.client_address[0], self.rfile.read(int(self.headers["Content-Length"])).decode()))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self.url = f"http://{address}:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def of(self, path):
        return [post for post in self.posts if post[0] == path]


def answers(address, port, seconds=1.0):
    with contextlib.suppress(OSError), socket.create_connection((address, port), seconds):
        return True
    return False


@pytest.fixture(scope="module")
def real():
    with Cloud(boot="real") as cloud:
        yield cloud
        assert not cloud.broken, "\n".join(cloud.broken)
    assert not [name for name in os.listdir(network.NAMED) if name.startswith(cloud.network.tag)]
    assert not cloud.network.directory.exists() and cloud.network.tag not in subprocess.run(["mount"], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def home(real):
    made = Home(real.network.caller)
    yield made
    made.close()


@pytest.fixture
def api(real):
    """The client; instances do not outlive a test."""
    ec2 = client(real, "ec2")
    yield ec2
    mine = [number for number, facts in real.launched().items() if facts["state"] != "terminated"]
    if mine:
        ec2.terminate_instances(InstanceIds=mine)
    real.settle()


SAY = """#!/bin/sh
token=$(curl -sS -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' http://169.254.169.254/latest/api/token)
get() { curl -sS -H "X-aws-ec2-metadata-token: $token" http://169.254.169.254/latest/$1; }
plain=$(curl -s -o /dev/null -w '%{http_code}' http://169.254.169.254/latest/meta-data/instance-id)
curl -sS -X POST --data-binary "$(get meta-data/instance-id) $(get meta-data/ami-launch-index) $plain $(hostname) $(id -u) $$" HOME/said
"""


def test_instances_boot_and_run_their_user_data_once_each(real, api, home):
    made = launch(api, MinCount=2, MaxCount=2, UserData=SAY.replace("HOME", home.url), InstanceInitiatedShutdownBehavior="terminate",
                  MetadataOptions={"HttpTokens": "required", "HttpPutResponseHopLimit": 1})
    wait_for(lambda: len(home.of("/said")) == 2, what="both to phone home")
    said = {body.split()[0]: (source, *body.split()[1:5]) for _, source, body in home.of("/said")}
    for index, one in enumerate(made):
        address = one["PrivateIpAddress"]
        assert address.startswith("172.31.")
        assert said[one["InstanceId"]] == (one["PublicIpAddress"], str(index), "401", "ip-" + address.replace(".", "-"), "0")
    wait_for(lambda: all("booted" in real.machines[number].seconds for number in ids(made)), what="cloud-init to end")
    console = api.get_console_output(InstanceId=made[0]["InstanceId"])["Output"]
    assert "Cloud-init" in console and "DataSourceEc2" in console


def test_the_firewall_is_the_groups(real, api, home):
    caller = {"IpProtocol": "tcp", "FromPort": 7000, "ToPort": 7000, "IpRanges": [{"CidrIp": f"{real.network.caller}/32"}]}
    group = group_of(api, f"fw-{time.monotonic()}")
    script = "#!/bin/sh\nfor p in 7000 7001; do setsid python3 -m http.server $p >/dev/null 2>&1 & done\nsleep 1\ncurl -sS -X POST --data up HOME/up\n"
    one, two = launch(api, MinCount=2, MaxCount=2, SecurityGroupIds=[group], UserData=script.replace("HOME", home.url))
    wait_for(lambda: len(home.of("/up")) == 2, what="both servers")
    one, two = (api.describe_instances(InstanceIds=[i["InstanceId"]])["Reservations"][0]["Instances"][0] for i in (one, two))

    def between(address, port):
        return real.machines[one["InstanceId"]].exec("curl", "-s", "-o", "/dev/null", "--max-time", "1", f"http://{address}:{port}/").returncode == 0

    assert not answers(one["PublicIpAddress"], 7000) and not between(two["PrivateIpAddress"], 7000)
    api.authorize_security_group_ingress(GroupId=group, IpPermissions=[caller])
    wait_for(lambda: answers(one["PublicIpAddress"], 7000), what="the port")
    assert not answers(one["PublicIpAddress"], 7001)
    assert not between(two["PrivateIpAddress"], 7000)
    itself = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    api.authorize_security_group_ingress(GroupId=group, IpPermissions=[itself])
    wait_for(lambda: between(two["PrivateIpAddress"], 7001), what="the port between them")
    assert not between(two["PublicIpAddress"], 7001)
    namespace, _ = real.network.place(f"else{len(real.network.places)}")
    elsewhere = subprocess.run(["nsenter", f"--net=/var/run/netns/{namespace}", "curl", "-s", "--max-time", "1", f"http://{one['PublicIpAddress']}:7000/"],
                               capture_output=True, check=False)
    assert elsewhere.returncode != 0
    api.revoke_security_group_egress(GroupId=group, IpPermissions=[{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}])
    assert not between(two["PrivateIpAddress"], 7001)
    wait_for(lambda: answers(one["PublicIpAddress"], 7000), what="the port, which egress does not concern")


@pytest.mark.parametrize("how", ["poweroff", "shutdown -h now", "python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'"])
def test_a_guest_that_switches_itself_off_is_terminated(real, api, how):
    number = ids(launch(api, UserData=f"#!/bin/sh\n{how}\n", InstanceInitiatedShutdownBehavior="terminate"))[0]
    wait_for(lambda: real.launched()[number]["state"] == "terminated", what="the end")
    seen = api.describe_instances(InstanceIds=[number])["Reservations"][0]["Instances"][0]
    assert seen["StateReason"]["Code"] == "Client.InstanceInitiatedShutdown"
    assert not [key for key in real.left() if key[0] != "security-group"]


def test_without_the_behaviour_it_is_only_stopped_and_starts_again(real, api, home):
    number = ids(launch(api, UserData=f"#!/bin/sh\ncurl -sS -X POST --data x {home.url}/first; poweroff\n"))[0]
    wait_for(lambda: real.launched()[number]["state"] == "stopped", what="the stop")
    api.start_instances(InstanceIds=[number])
    wait_for(lambda: number in real.machines and "booted" in real.machines[number].seconds, what="the second boot")
    assert len(home.of("/first")) == 1 and real.launched()[number]["state"] == "running"


def test_terminate_ends_a_guest_that_is_still_booting(real, api):
    made = ids(launch(api, MinCount=3, MaxCount=3, UserData="#!/bin/sh\nsleep 1000\n"))
    wait_for(lambda: any(real.machines[number].process for number in made), what="a boot to begin")
    started = time.monotonic()
    api.terminate_instances(InstanceIds=made)
    wait_for(lambda: all(real.launched()[number]["state"] == "terminated" for number in made), what="the end")
    assert time.monotonic() - started < 60


def test_a_role_reaches_the_guest_as_credentials_and_a_notice_as_a_page(real, api, home):
    iam = client(real, "iam")
    iam.create_role(RoleName="node", AssumeRolePolicyDocument=TRUST)
    iam.put_role_policy(RoleName="node", PolicyName="p", PolicyDocument=json.dumps(document({"Action": "ec2:DescribeVpcs"})))
    iam.create_instance_profile(InstanceProfileName="node")
    iam.add_role_to_instance_profile(InstanceProfileName="node", RoleName="node")
    script = SAY.partition("plain=")[0] + (f"curl -sS -X POST --data-binary \"$(get meta-data/iam/security-credentials/node)\" {home.url}/keys\n"
                                           "until get meta-data/spot/instance-action | grep terminate >/tmp/n; do sleep 0.2; done\n"
                                           f"curl -sS -X POST --data-binary @/tmp/n {home.url}/notice\n")
    number = ids(launch(api, UserData=script, IamInstanceProfile={"Name": "node"}, InstanceMarketOptions={"MarketType": "spot"}))[0]
    keys = json.loads(wait_for(lambda: home.of("/keys"), what="the keys")[0][2])
    caller = real.callers.find(keys["AccessKeyId"])
    assert (caller.secret, caller.token) == (keys["SecretAccessKey"], keys["Token"]) and caller.session == number
    assert client(real, "ec2", caller).describe_vpcs()["Vpcs"]
    real.interrupt_spot(number, seconds=120)
    assert json.loads(wait_for(lambda: home.of("/notice"), what="the notice")[0][2])["action"] == "terminate"


def test_a_reboot_keeps_the_disk_and_runs_user_data_no_more(real, api, home):
    script = f"#!/bin/sh\necho x >>/var/lib/boots\ncurl -sS -X POST --data x {home.url}/up\n"
    number = ids(launch(api, UserData=script))[0]
    wait_for(lambda: home.of("/up") and "booted" in real.machines[number].seconds, what="the boot")
    one = real.machines[number]
    before = one.first_process()
    one.exec("reboot")
    wait_for(lambda: one.first_process() not in (None, before) and "finished" in one.console().rpartition("going down")[2], what="the second boot")
    assert one.file("/var/lib/boots").read_text() == "x\n" and real.launched()[number]["state"] == "running"


def test_a_machine_that_died_is_said_to_run(real, api):
    number = ids(launch(api))[0]
    one = wait_for(lambda: "booted" in real.machines[number].seconds and real.machines[number], what="the boot")
    one.kill()
    assert api.describe_instances(InstanceIds=[number])["Reservations"][0]["Instances"][0]["State"]["Name"] == "running"
    api.terminate_instances(InstanceIds=[number])
    wait_for(lambda: real.launched()[number]["state"] == "terminated", what="the end")


# ---- what is left of a cloud ----

@contextlib.contextmanager
def other_process(*options):
    child = subprocess.Popen([sys.executable, "-m", "cloud", "up", "--output", "json", *options], cwd=TESTS, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
    try:
        yield child, json.loads(child.stdout.readline())
    finally:
        child.kill()
        child.wait()


def traces(pid):
    names = [name for name in os.listdir(network.NAMED) if name.startswith(f"{network.PREFIX}{pid}-")]
    records = [record for record in network.RECORDS.glob(f"{network.PREFIX}{pid}-*")]
    return names + records


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_a_cloud_that_was_stopped_or_killed(number):
    import boto3
    with other_process() as (child, said):
        env = said["env"]
        ec2 = boto3.client("ec2", endpoint_url=said["endpoint"], region_name=env["AWS_REGION"], aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
                           aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"])
        launch(ec2, UserData="#!/bin/sh\nsleep 1000\n")
        names = wait_for(lambda: [n for n in traces(child.pid) if "-i-" in str(n)], what="a machine")
        guests = wait_for(lambda: network.pids_in(names[0]), what="its processes")
        child.send_signal(number)
        child.wait(90)
        wait_for(lambda: not [pid for pid in guests if os.path.exists(f"/proc/{pid}/ns/net") and pid in network.pids_in(names[0])], 60, "the guests' end")
        if number == signal.SIGKILL:
            assert traces(child.pid)
            network.sweep()
        assert not traces(child.pid)
