"""Machines that start a command in place of a boot."""
import pytest

from . import Cloud, machine, network
from .conftest import client, wait_for
from .test_launch import ids, launch

pytestmark = pytest.mark.skipif(bool(network.missing()), reason=network.missing() or "-")


def test_a_stand_in_runs_a_command_at_once_and_cannot_switch_this_machine_off(tmp_path):
    def command(instance):
        return ["sh", "-c", f"curl -s http://169.254.169.254/latest/meta-data/instance-id >{tmp_path}/{instance.ami_launch_index}; poweroff"]

    with Cloud(boot=machine.stand_in(command)) as cloud:
        ec2 = client(cloud, "ec2")
        made = ids(launch(ec2, MinCount=3, MaxCount=3, InstanceInitiatedShutdownBehavior="terminate"))
        wait_for(lambda: all(facts["state"] == "terminated" for facts in cloud.launched().values()), what="their end")
        assert [(tmp_path / str(n)).read_text() for n in range(3)] == made
        assert not cloud.left()


def test_a_metadata_token_goes_no_further_than_the_hop_limit():
    """A container with a network of its own is one hop more than its machine."""
    ask = ["curl", "-s", "--max-time", "2", "-X", "PUT", "-H", "X-aws-ec2-metadata-token-ttl-seconds: 60", "http://169.254.169.254/latest/api/token"]
    with Cloud(boot=machine.stand_in(lambda instance: ["sleep", "1000"])) as cloud:
        ec2 = client(cloud, "ec2")
        for limit in (1, 2):
            number = ids(launch(ec2, MetadataOptions={"HttpPutResponseHopLimit": limit}))[0]
            outside = wait_for(lambda number=number: cloud.network.attached.get(number), what="the machine")[0]
            box = f"{cloud.network.tag}-box{limit}"
            network.ip("netns", "add", box)
            network.ip("-n", outside, "link", "add", "v0", "type", "veth", "peer", "v1", "netns", box)
            network.ip_batch(outside, ["addr add 192.168.9.1/24 dev v0", "link set v0 up"])
            network.ip_batch(box, ["addr add 192.168.9.2/24 dev v1", "link set v1 up", "route add default via 192.168.9.1"])
            inside = [["nsenter", f"--net=/var/run/netns/{name}"] for name in (outside, box)]
            network.run(*inside[0], "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
            network.run(*inside[0], "nft", "-f", "-", input="table ip nat { chain out { type nat hook postrouting priority 100; oifname eth0 masquerade; }; }\n")
            assert network.run(*inside[0], *ask).stdout
            assert bool(network.run(*inside[1], *ask, check=False).stdout) == (limit == 2)


def test_one_instance_boots_and_the_others_only_stand_in(tmp_path):
    """As a scenario with one master and many nodes wants it."""
    quick = machine.stand_in(lambda instance: ["sh", "-c", f"echo >{tmp_path}/{instance.id}; sleep 1000"])

    def choose(cloud, instance):
        return (machine.guest if instance.instance_type == "c5.xlarge" else quick)(cloud, instance)

    with Cloud(boot=choose) as cloud:
        ec2 = client(cloud, "ec2")
        one = ids(launch(ec2, UserData="#!/bin/sh\necho >/var/lib/up\n"))[0]
        two = ids(launch(ec2, InstanceType="c5.large"))[0]
        wait_for(lambda: (tmp_path / two).exists() and cloud.machines[one].file("/var/lib/up").exists(), what="both")


def test_instances_may_have_any_machine_or_none():
    started = []

    class Own:
        def __init__(self, instance):
            self.instance = instance

        def start(self):
            started.append(self.instance.id)

        def stop(self, keep_disk=False):
            started.remove(self.instance.id)

        def console(self):
            return "own"

    with Cloud(boot=lambda cloud, instance: Own(instance) if instance.ami_launch_index else None, address="loopback") as cloud:
        ec2 = client(cloud, "ec2")
        made = ids(launch(ec2, MaxCount=2))
        cloud.settle()
        wait_for(lambda: started == [made[1]], what="its start")
        assert ec2.get_console_output(InstanceId=made[1])["Output"] == "own"
        ec2.terminate_instances(InstanceIds=made)
        cloud.settle()
        assert not started and not cloud.left()
