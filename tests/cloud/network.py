"""The network of the cloud: a switch in a namespace of its own, a namespace for each machine, a firewall in each.

Everything lies on one wire.  A machine has its private address and, if it has one, its public address; the endpoint is
10.x.0.1 in the switch's namespace, the caller 10.x.0.2 in this one, public addresses are 10.x.128.0 and on.  Nothing of
this machine's network is changed but one link, which goes with the switch.
"""
import contextlib
import ctypes
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

from namespaces import NAMED, pids_in

from .api import listen

PREFIX = "rgc"
RECORDS = pathlib.Path("/run/regatta-cloud")
METADATA = "169.254.169.254"
CLONE_NEWNET = 0x40000000
SECOND_NUMBERS = range(84, 100)
REMOVE_SECONDS = 20
LIBC = ctypes.CDLL(None, use_errno=True)
numbers = itertools.count()


def run(*argv, check=True, **kw):
    done = subprocess.run(argv, capture_output=True, text=True, check=False, **kw)
    assert done.returncode == 0 or not check, f"{' '.join(argv)}: {done.stderr}"
    return done


def ip(*args, check=True):
    return run("ip", *args, check=check)


def ip_batch(namespace, lines):
    """Many at once: a process for each would cost more than all the rest."""
    run("ip", "-n", namespace, "-batch", "-", input="\n".join(lines) + "\n")


def missing():
    """Why there can be no machines here; '' if there can."""
    if os.geteuid() != 0:
        return "instances that boot need root"
    absent = [tool for tool in ("ip", "nft", "nsenter", "unshare", "setpriv", "debootstrap") if not shutil.which(tool)]
    if absent:
        return f"{', '.join(absent)} is not installed (tools/setup test)"
    made = subprocess.run(["unshare", "--net", "--pid", "--fork", "--mount", "true"], capture_output=True, text=True, check=False)
    return f"no namespaces here: {made.stderr.strip()}" if made.returncode else ""


def started(pid):
    """When a process began, which tells it from another with its number."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    return None


def remove(namespace):
    """A namespace of ours with everybody in it."""
    deadline = time.monotonic() + REMOVE_SECONDS
    while time.monotonic() < deadline:
        pids = [pid for pid in pids_in(namespace) if pid != os.getpid()]
        if not pids:
            break
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    ip("netns", "del", namespace, check=False)


def sweep():
    """What clouds left whose process is dead: only what carries the tag of a record of theirs."""
    for record in RECORDS.glob(f"{PREFIX}*") if RECORDS.exists() else []:
        with contextlib.suppress(OSError, ValueError):
            said = json.loads(record.read_text())
            if started(said["pid"]) == said["started"]:
                continue
            for name in os.listdir(NAMED) if NAMED.exists() else []:
                if name.startswith(said["tag"] + "-"):
                    remove(name)
            shutil.rmtree(said["directory"], ignore_errors=True)
            record.unlink()


def in_namespace(namespace, function):
    """Run by a thread that has moved there; its result."""
    done = {}

    def go():
        fd = os.open(NAMED / namespace, os.O_RDONLY)
        try:
            if LIBC.setns(fd, CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            done["value"] = function()
        except BaseException as e:
            done["error"] = e
        finally:
            os.close(fd)

    thread = threading.Thread(target=go)
    thread.start()
    thread.join()
    if "error" in done:
        raise done["error"]
    return done["value"]


def mac_of(address):
    """By address, so that whoever gets it next is found at once, whatever others remember."""
    return "02:54:" + ":".join(f"{int(part):02x}" for part in address.split("."))


class Network:
    def __init__(self, directory, second=None):
        self.tag = f"{PREFIX}{os.getpid()}-{next(numbers)}"
        self.directory, self.second, self.ports, self.public_numbers = directory, second, itertools.count(), itertools.count(1)
        self.attached, self.places, self.lock = {}, {}, threading.RLock()
        sweep()
        RECORDS.mkdir(parents=True, exist_ok=True)
        self.record = RECORDS / self.tag
        self.record.write_text(json.dumps({"tag": self.tag, "pid": os.getpid(), "started": started(os.getpid()), "directory": str(directory)}))
        self.switch = f"{self.tag}-switch"
        try:
            self.make_switch()
        except BaseException:
            self.close()
            raise

    def make_switch(self):
        ip("netns", "add", self.switch)
        self.connect_caller()
        ip_batch(self.switch, ["link set lo up", f"link add br0 address {mac_of(self.endpoint)} type bridge", "link set br0 up", f"addr add {self.endpoint}/16 dev br0", f"addr add {METADATA}/32 dev br0",
                               "link set caller master br0 up", "route add default dev br0"])

    def connect_caller(self):
        """The one link in this namespace; its name is the lock on its addresses."""
        taken = ip("-4", "route").stdout
        for second in [self.second] if self.second else SECOND_NUMBERS:
            if not self.second and f"10.{second}." in taken:
                continue
            self.link = f"{PREFIX}{second}"
            if ip("link", "add", self.link, "type", "veth", "peer", "caller", "netns", self.switch, check=False).returncode == 0:
                self.second = second
                ip("addr", "add", f"{self.caller}/16", "dev", self.link)
                ip("link", "set", self.link, "up")
                return
        raise RuntimeError("no free network 10.x.0.0/16 for the test cloud")

    @property
    def endpoint(self):
        return f"10.{self.second}.0.1"

    @property
    def caller(self):
        return f"10.{self.second}.0.2"

    def public_address(self):
        number = next(self.public_numbers)
        return f"10.{self.second}.{128 + number // 250}.{number % 250 + 1}"

    def listen(self, port=0):
        return in_namespace(self.switch, lambda: listen(self.endpoint, port))

    # ---- machines ----

    def plug(self, namespace, addresses):
        """A new namespace on the wire.  Outside the VPC it is known by the last of its addresses, as behind EC2's NAT."""
        port = f"p{next(self.ports)}"
        ip("netns", "add", namespace)
        ip("link", "add", port, "netns", self.switch, "type", "veth", "peer", "eth0", "address", mac_of(addresses[0]), "netns", namespace)
        ip("-n", self.switch, "link", "set", port, "master", "br0", "up")
        ip_batch(namespace, ["link set lo up", *[f"addr add {a}/32 dev eth0" for a in addresses],
                             "link set eth0 up", f"route add default dev eth0 src {addresses[0]}",
                             f"route add 10.{self.second}.0.0/16 dev eth0 src {addresses[-1]}"])

    def attach(self, instance):
        namespace = f"{self.tag}-{instance.id}"
        self.plug(namespace, [a for a in (instance.private_ip_address, instance.public_ip_address) if a])
        with self.lock:
            self.attached[instance.id] = (namespace, instance)
            self.refresh()
        return namespace

    def detach(self, instance):
        with self.lock:
            namespace, _ = self.attached.pop(instance.id, (None, None))
            if namespace:
                remove(namespace)
                self.refresh()

    def place(self, name):
        """Somewhere else for a caller to be, with an address of its own: the namespace."""
        namespace = f"{self.tag}-at-{name}"
        address = f"10.{self.second}.0.{10 + len(self.places)}"
        self.plug(namespace, [address])
        self.places[name] = (namespace, address)
        return namespace, address

    def listen_for_metadata(self):
        return in_namespace(self.switch, lambda: listen(METADATA, 80))

    def who_has(self, address):
        """The instance with a private or public address."""
        with self.lock:
            return next((number for number, (_, i) in self.attached.items() if address in (i.private_ip_address, i.public_ip_address)), None)

    # ---- the firewall ----

    def refresh(self):
        """Every machine's rules, as its groups are now."""
        with self.lock:
            here = list(self.attached.values())
            for namespace, instance in here:
                run("nsenter", f"--net={NAMED / namespace}", "nft", "-f", "-", input=ruleset(instance, [other for _, other in here]))

    def close(self):
        for name in os.listdir(NAMED) if NAMED.exists() else []:
            if name.startswith(self.tag + "-"):
                remove(name)
        shutil.rmtree(self.directory, ignore_errors=True)
        self.record.unlink(missing_ok=True)


def matches(rule, machines, here, field):
    """The nft statements of a rule: one for each kind of peer."""
    ports = {"tcp": "tcp", "udp": "udp"}.get(rule.ip_protocol)
    what = ""
    if ports and rule.from_port is not None and (rule.from_port, rule.to_port) != (0, 65535):
        what = f"{ports} dport {rule.from_port}-{rule.to_port}"
    elif ports:
        what = f"meta l4proto {ports}"
    elif rule.ip_protocol == "icmp":
        what = "meta l4proto icmp"
    cidr, group = rule.ip_range.get("CidrIp"), rule.source_group.get("GroupId")
    if cidr == "0.0.0.0/0":
        return [f"{what} accept"]
    if cidr:
        return [f"ip {field} {cidr} {what} accept"]
    if group:
        # A group stands for the private addresses of its members, reached at a private address.
        peers = sorted({m.private_ip_address for m in machines if group in [g.id for g in m.security_groups]})
        mine = f"ip daddr {here} " if field == "saddr" else ""
        return [f"{mine}ip {field} {{ {', '.join(peers)} }} {what} accept"] if peers else []
    return []


def ruleset(instance, machines):
    def chain(name, field, rules, interface):
        # Groups are outside of the machine: what goes between it and its own containers is none of theirs.
        lines = [f"type filter hook {name} priority 0; policy drop;", "ct state established,related accept", f'{interface} != "eth0" accept']
        if name == "output":
            lines.append(f"ip daddr {METADATA} accept")
        for rule in rules:
            lines += matches(rule, machines, instance.private_ip_address, field)
        return f"chain {name} {{\n" + "\n".join(lines) + "\n}\n"

    ingress = [rule for group in instance.security_groups for rule in group.ingress_rules]
    egress = [rule for group in instance.security_groups for rule in group.egress_rules]
    return ("table inet groups { }\ndelete table inet groups\ntable inet groups {\n" + chain("input", "saddr", ingress, "iifname")
            + chain("output", "daddr", egress, "oifname") + "}\n")
