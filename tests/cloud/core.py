"""The cloud as a test sees it: starts, scripts, asks for the truth, cleans up."""
import contextlib
import heapq
import itertools
import json
import os
import threading
import time

from moto.ec2.models import ec2_backends
from moto.iam.models import iam_backends
from moto.s3.models import s3_backends
from moto.sts.models import sts_backends

from . import control, decoys, ec2, faults, identity, machine, meter, metadata, network, rootfs, truth
from .api import Api, Server, listen

ACCOUNT, OTHER_ACCOUNT = "123456789012", "210987654321"
REGION = "us-east-1"
FIREWALL_CALLS = ("AuthorizeSecurityGroupIngress", "AuthorizeSecurityGroupEgress", "RevokeSecurityGroupIngress", "RevokeSecurityGroupEgress",
                  "ModifyInstanceAttribute", "ModifyNetworkInterfaceAttribute")
numbers = itertools.count()


class Timer:
    """Calls that are due later, in one thread."""

    def __init__(self):
        self.condition, self.heap, self.count, self.is_closed = threading.Condition(), [], itertools.count(), False
        self.thread = threading.Thread(target=self.loop, daemon=True)
        self.thread.start()

    def after(self, seconds, function, *args):
        with self.condition:
            heapq.heappush(self.heap, (time.monotonic() + seconds, next(self.count), function, args))
            self.condition.notify()

    def loop(self):
        while True:
            with self.condition:
                while not self.is_closed and (not self.heap or self.heap[0][0] > time.monotonic()):
                    self.condition.wait(self.heap[0][0] - time.monotonic() if self.heap else None)
                if self.is_closed:
                    return
                _, _, function, args = heapq.heappop(self.heap)
            function(*args)

    def close(self):
        with self.condition:
            self.is_closed = True
            self.condition.notify()
        self.thread.join(5)


class Cloud:
    """boot: "none" (instances are only rows), "real" (guests boot), machine.stand_in(...) (a command instead of a boot), or
    any callable (cloud, instance) -> something with start(), stop() and console(), or None.

    Machines need root; with address "loopback" there is no network for them.  Otherwise address is the second number of
    10.x.0.0/16, chosen when None; without machines the endpoint is at `host` of this machine, with `tls` (ssl.SSLContext) over HTTPS.
    """

    def __init__(self, boot="none", address=None, region=REGION, port=0, host="127.0.0.1", tls=None):
        self.boot, self.region, self.address, self.host, self.tls = boot, region, address, host, tls
        self.lock = threading.RLock()
        self.local = threading.local()
        self.script, self.callers = faults.Script(), identity.Callers()
        self.prices = meter.read_prices()
        self.calls, self.call_objects, self.broken = [], [], []
        self.machines, self.history, self.instances = {}, {}, {}
        self.decoy_facts, self.baseline, self.pages, self.hooks, self.services = {}, set(), {}, [], {}
        # The knobs of a test.
        self.lag = {}  # kind -> seconds until others see a new one: instance, security-group, volume, network-interface, instance-profile
        self.capacity = {}  # (type or *, zone or *, on-demand | spot | any) -> how many there can be
        self.unsupported = set()  # (type, zone) that are not offered
        self.vcpu_quota = {}  # (family, on-demand | spot) -> vCPUs
        self.reservations = {}  # capacity reservations: id -> {type, zone, count}
        self.pending_seconds, self.shutdown_seconds, self.clock_skew = 0.05, 0.1, 0.0
        self.tags_vanish = False  # from terminated instances, as EC2 may do it at any time
        self.page_size = None  # the most that a Describe answers at once
        self.credential_seconds = 6 * 3600  # of an instance's role
        self.role_seconds = 0  # until the metadata service of an instance shows its role
        self.image_files = lambda instance: {}  # path -> text of what a guest has beside, or in place of, the files of Debian
        self.machines_wanted = True
        self.network, self.machine_room, self.port, self.consoles, self.servers, self.timer = None, None, port, {}, [], None

    # ---- beginning and end ----

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()

    def start(self):
        if ec2.Rules.now:
            raise RuntimeError("there is a cloud in this process already; close it first")
        reset_moto()
        ec2.install()
        self.rules = ec2.Rules.now = ec2.Rules(self)
        self.timer = Timer()
        self.root = self.callers.make(ACCOUNT)
        self.other_account = self.callers.make(OTHER_ACCOUNT)
        self.somebody = self.callers.make(ACCOUNT, "root", is_stage=True)
        self.api = Api(self)
        self.pages = {"/imds/": self.metadata_page, "/checkip": self.address_page, "/cloud/": control.Page(self)}
        try:
            self.open_endpoint()
            ec2_backends[ACCOUNT][self.region].describe_vpcs()
            self.baseline = set(self.truth())
        except BaseException:
            self.close()
            raise
        return self

    def open_endpoint(self):
        if self.boot != "none" and self.address != "loopback":
            self.open_network()
            return
        self.public = (f"127.84.{i // 250}.{i % 250 + 1}" for i in itertools.count())
        server = Server(listen(self.host, self.port), self.api, self.tls)
        self.servers.append(server)
        self.endpoint = f"{'https' if self.tls else 'http'}://{self.host}:{server.port}"

    def open_network(self):
        why = network.missing()
        if why:
            raise RuntimeError(why)
        directory = rootfs.STORE / "run" / f"{os.getpid()}-{next(numbers)}"
        directory.mkdir(parents=True)
        self.network = network.Network(directory, int(self.address) if self.address else None)
        self.machine_room = machine.Machines(self, directory)
        if self.boot == "real":
            self.machine_room.make_root()
            self.boot = machine.guest
        self.public = (self.network.public_address() for _ in itertools.count())
        server = Server(self.network.listen(self.port), self.api)
        self.servers.append(server)
        self.endpoint = f"http://{self.network.endpoint}:{server.port}"
        self.servers.append(Server(self.network.listen_for_metadata(), self.metadata_of_caller))

    def close(self):
        """Everything that this cloud has made is gone afterwards."""
        self.is_closing = True
        for server in self.servers:
            server.close()
        self.servers = []
        stops = [threading.Thread(target=one.stop) for one in list(self.machines.values()) if one]
        for stop in stops:
            stop.start()
        for stop in stops:
            stop.join(30)
        self.machines.clear()
        if self.timer:
            self.timer.close()
        if self.machine_room:
            self.machine_room.close()
        if self.network:
            self.network.close()
        ec2.Rules.now = None

    # ---- for clients ----

    def client_options(self, caller=None):
        """Arguments for boto3.client()."""
        caller = caller or self.root
        return {"endpoint_url": self.endpoint, "region_name": self.region, "aws_access_key_id": caller.key,
                "aws_secret_access_key": caller.secret, "aws_session_token": caller.token}

    def env(self, caller=None):
        """The variables that a program reads."""
        return {"AWS_ENDPOINT_URL": self.endpoint, "AWS_REGION": self.region, "AWS_DEFAULT_REGION": self.region,
                **(caller or self.root).env()}

    def user(self, name, policy):
        """A user with one policy (a document as dict or text); a Caller."""
        backend = iam_backends[ACCOUNT]["aws"]
        if name not in backend.users:
            backend.create_user(self.region, name)
        backend.users[name].policies["given"] = policy if isinstance(policy, str) else json.dumps(policy)
        self.baseline.add(("user", name))
        return self.callers.make(ACCOUNT, "user", name)

    def remove_default_vpc(self):
        """An account without one."""
        backend = ec2_backends[ACCOUNT][self.region]
        with self.lock:
            for vpc in backend.vpcs.values():
                vpc.is_default = False
            for subnets in backend.subnets.values():
                for subnet in subnets.values():
                    subnet.default_for_az = False

    def expire(self, caller):
        """A session ends now."""
        caller.expires = 1.0

    def clock(self):
        return time.time() + self.clock_skew

    # ---- the script ----

    def fault(self, action, **options):
        return self.script.add(action, **options)

    def is_client_call(self):
        return getattr(self.local, "depth", 0) > 0

    def enter_client_call(self):
        self.local.depth = getattr(self.local, "depth", 0) + 1

    def leave_client_call(self):
        self.local.depth -= 1

    def note_call(self, call):
        if not (call.caller and call.caller.is_stage):
            self.calls.append(call.record())

    def after_call(self, call):
        if self.network and call.service == "ec2" and call.action in FIREWALL_CALLS:
            self.network.refresh()
        for hook in self.hooks:
            hook(call)

    def named(self, action):
        """The logged calls of an action."""
        return [call for call in self.calls if call["action"] == action]

    # ---- instances ----

    @contextlib.contextmanager
    def without_machines(self):
        self.machines_wanted, before = False, self.machines_wanted
        try:
            yield
        finally:
            self.machines_wanted = before

    def make_machine(self, instance):
        return self.boot(self, instance) if callable(self.boot) and self.machines_wanted else None

    def launch(self, instance):
        """A new instance: pending now, running soon."""
        self.instances[instance.id] = instance
        self.machines[instance.id] = one = self.make_machine(instance)
        self.timer.after(self.pending_seconds, self.run, instance, one)

    def run(self, instance, one):
        with self.lock:
            if instance.state != "pending":
                return
            self.rules.set_state(instance, "running")
        if one:
            one.start()

    def end(self, instance, code, text):
        """Shutting down now, terminated when the machine is gone."""
        with self.lock:
            if instance.state in ("shutting-down", "terminated"):
                return
            self.rules.set_state(instance, "shutting-down")
            one = self.machines.pop(instance.id, None)
        if one:
            threading.Thread(target=self.stop_machine, args=(instance, one, code, text), daemon=True).start()
        else:
            self.timer.after(self.shutdown_seconds, self.finish, instance, code, text)

    def stop_machine(self, instance, one, code, text):
        one.stop()
        self.timer.after(self.shutdown_seconds, self.finish, instance, code, text)

    def finish(self, instance, code, text):
        with self.lock:
            ec2.finish_termination(instance, code, text)

    def halt(self, instance):
        """Stopped, not terminated."""
        with self.lock:
            self.rules.set_state(instance, "stopped")
            one = self.machines.pop(instance.id, None)
        if one:
            threading.Thread(target=one.stop, args=(True,), daemon=True).start()

    def switched_off(self, instance_id):
        """The guest has shut itself down: what its shutdown behaviour says."""
        instance = self.instances[instance_id]
        if instance.instance_initiated_shutdown_behavior == "terminate":
            self.end(instance, "Client.InstanceInitiatedShutdown", "Instance initiated shutdown")
        else:
            self.halt(instance)

    def interrupt_spot(self, instance_id, seconds=120):
        """The two-minute notice, and then the end."""
        instance = self.instances[instance_id]
        instance.spot_notice = self.clock() + seconds
        self.timer.after(seconds, self.end, instance, "Server.SpotInstanceTermination", "Instance terminated because of spot interruption")

    def console(self, instance_id):
        one = self.machines.get(instance_id)
        return one.console() if one else self.consoles.get(instance_id, "")

    def note_console(self, instance_id, text):
        self.consoles[instance_id] = text or self.consoles.get(instance_id, "")

    def metadata_page(self, environ, start_response):
        """For a stand-in without a namespace: AWS_EC2_METADATA_SERVICE_ENDPOINT=<endpoint>/imds/<instance>."""
        return self.metadata_of(environ["PATH_INFO"].split("/")[2], environ, start_response)

    def metadata_of_caller(self, environ, start_response):
        """At 169.254.169.254: who asks is told about itself."""
        return self.metadata_of(self.network.who_has(environ["REMOTE_ADDR"]), environ, start_response)

    def metadata_of(self, number, environ, start_response):
        if number not in self.instances:
            start_response("404 Not Found", [("Content-Length", "0")])
            return [b""]
        return self.service(number)(environ, start_response)

    def service(self, number):
        """The metadata service of an instance."""
        if number not in self.services:
            self.services[number] = metadata.Metadata(self, self.instances[number])
        return self.services[number]

    @staticmethod
    def address_page(environ, start_response):
        """What AWS' public address check says."""
        body = environ["REMOTE_ADDR"].encode() + b"\n"
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
        return [body]

    def next_public_address(self):
        return next(self.public)

    def note_state(self, instance, state):
        self.history.setdefault(instance.id, []).append((time.time(), state))

    def settle(self, seconds=60):
        """Until no instance is on its way from one state to another."""
        deadline = time.monotonic() + seconds
        while any(i.state in ("pending", "shutting-down") for i in list(self.instances.values())):
            assert time.monotonic() < deadline, {i.id: i.state for i in self.instances.values()}
            time.sleep(0.01)

    # ---- the truth ----

    def truth(self, ended=False):
        """{(kind, id): facts} of everything in all accounts and regions."""
        with self.lock:
            return truth.read(self.rules, ended)

    def left(self, *but):
        """What is there and was not when the cloud began, without decoys and the kinds that are named.

        The default VPC of a region appears in moto when somebody first asks that region: it is AWS' own."""
        return {key: facts for key, facts in self.truth().items()
                if key not in self.baseline and key not in self.decoy_facts and key[0] not in but and not facts.get("is_default")}

    def launched(self):
        """Every instance that ever was, without decoys: {id: facts}."""
        return {key[1]: facts for key, facts in self.truth(ended=True).items() if key[0] == "instance" and key not in self.decoy_facts}

    def add_decoys(self):
        self.decoy_facts.update(decoys.place(self))

    def add_decoy_objects(self, bucket, names=("regatta/somebody/results.txt", "somebody/model.bin")):
        self.decoy_facts.update(decoys.place_objects(self, bucket, names))

    def check_decoys(self):
        """Untouched, all of them."""
        now = self.truth()
        changed = {key: (facts, now.get(key)) for key, facts in self.decoy_facts.items() if now.get(key) != facts}
        assert not changed, f"somebody else's: {changed}"

    def bill(self, now=None):
        """What everything but the decoys has cost, by the meter."""
        mine = {number: {"type": i.instance_type, "spot": i.lifecycle == "spot", "history": self.history[number],
                         "tags": dict(i.ec2_backend.tags.get(number, {}))}
                for number, i in self.instances.items() if ("instance", number) not in self.decoy_facts}
        return meter.bill(mine, now or time.time(), self.prices)

    def spot_price(self, instance_type):
        return self.prices[instance_type] * meter.SPOT_SHARE


def reset_moto():
    from moto.core.base_backend import BackendDict
    for known in list(BackendDict._instances) + [ec2_backends, iam_backends, s3_backends, sts_backends]:
        for backend in list(known.values()):
            backend.reset()
        known.clear()
