"""A cluster: a control plane and nodes, each a machine of namespaces, on a switch in the control plane's namespace.

Nothing of this machine's network is changed but one link and one route, which go with the switch.  All machines are gone
when the process is gone that started them, however it ends; what they leave (control groups, a directory) is swept
by the next start.  Machines are started by the main thread only: the kernel ends them with the thread that made them.
"""
import contextlib
import fcntl
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time

from . import cgroups, images, pki, programs, settings, store

LINK = "rgk"
NETWORKS = pathlib.Path("/sys/class/net")
SECOND_NUMBERS = range(100, 124)
START_SECONDS = 180
STOP_SECONDS = 20
LOG_LINES = 15
TOOLS = ("ip", "nsenter", "unshare", "setpriv", "openssl", "pivot_root", "apt-get", "dpkg-deb")


def missing():
    """Why there can be no cluster here; '' if there can."""
    if os.geteuid() != 0:
        return "a cluster needs root"
    absent = [tool for tool in TOOLS if not shutil.which(tool)]
    if absent:
        return f"{', '.join(absent)} is not installed (tools/setup test)"
    if not cgroups.hierarchies():
        return "no control groups that can be written"
    made = subprocess.run(["unshare", "--net", "--pid", "--fork", "--mount", "true"], capture_output=True, text=True, check=False)
    return f"no namespaces here: {made.stderr.strip()}" if made.returncode else ""


def clusters():
    return store.directory() / "clusters"


def run(*argv, check=True, **kw):
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=False, **kw)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(map(str, argv))}: {done.stderr}")
    return done


def wait_for(condition, what, seconds=START_SECONDS):
    """Poll until condition() is true; its value is returned."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s for {what}")
        time.sleep(0.05)


def sweep():
    """What clusters left whose process is dead: nobody holds the lock of their directory."""
    clusters().mkdir(parents=True, exist_ok=True)
    with store.locked(clusters() / "lock"):
        for path in clusters().iterdir():
            if not path.is_dir():
                continue
            with contextlib.suppress(BlockingIOError), open(path / "lock", "a", encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_link(path)
                cgroups.remove(path.name)
                remove_tree(path)


def link_index(link):
    with contextlib.suppress(OSError):
        return (NETWORKS / link / "ifindex").read_text().strip()
    return None


def remove_link(directory):
    """The kernel would do it two minutes after the last process, with the last connection that is half closed."""
    with contextlib.suppress(FileNotFoundError):
        link, index = (directory / "link").read_text().split()
        if link_index(link) == index:  # else the name is another cluster's now
            run("ip", "link", "del", link, check=False)


def remove_tree(path):
    """Containers that were just killed may still be removing files of their own."""
    def failed(_, name, why):
        if not issubclass(why[0], FileNotFoundError):
            raise OSError(f"{name}: {why[1]}")
    shutil.rmtree(path, onerror=failed)


class Machine:
    """role: a script of machine/ that becomes its first process."""

    def __init__(self, cluster, name, role):
        self.cluster, self.name, self.role = cluster, name, role
        self.own, self.process = cluster.directory / name, None
        (self.own / "log").mkdir(parents=True)

    def spawn(self):
        (self.own / "start").unlink(missing_ok=True)
        argv = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child",
                "sh", self.cluster.directory / "machine/enter", self.cluster.directory, self.name, store.directory(), self.cluster.packages,
                self.cluster.group, self.role]
        env = {name: value for name, value in os.environ.items() if name != "TMPDIR"}  # it has a /tmp of its own
        with open(self.own / "log/init.log", "ab") as log:
            self.process = subprocess.Popen([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                            cwd="/", env=env, start_new_session=True)
        wait_for(self.first_process, f"the first process of {self.name}")

    def first_process(self):
        """pid of its init, as seen from here."""
        with contextlib.suppress(OSError, IndexError):
            return int(pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()[0])
        return None

    def ip(self, *lines):
        """Commands of ip in its network."""
        run("nsenter", "--target", self.first_process(), "--net", "ip", "-batch", "-", input="\n".join(lines) + "\n")

    def go(self):
        (self.own / "start").touch()

    def exec(self, *argv, **kw):
        """A command in the machine."""
        return run("nsenter", "--target", self.first_process(), "--all", *argv, **kw)

    def kill(self):
        """As if its power had failed."""
        if self.process is None:
            return
        for pid in (self.first_process(), self.process.pid):
            with contextlib.suppress(ProcessLookupError, TypeError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(STOP_SECONDS)


class Cluster:
    """with Cluster() as cluster: ...; cluster.kubeconfig is the path of the administrator's."""

    def __init__(self, nodes=3, log_size="10Mi"):
        """log_size: of the log of a container, when a node begins another file and drops the fifth before it."""
        self.log_size = log_size
        self.packages, kube = images.machine(), programs.control_plane()
        programs.dns()
        sweep()
        with store.locked(clusters() / "lock"):
            self.directory = pathlib.Path(tempfile.mkdtemp(dir=clusters()))
            self.lock = open(self.directory / "lock", "w", encoding="utf-8")
            fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.tag, self.seconds, self.machines, self.kubectl_path = self.directory.name, {}, {}, kube / "kubectl"
        self.began = time.monotonic()
        try:
            self.prepare()
            self.start(nodes)
        except BaseException as e:
            if isinstance(e, (RuntimeError, TimeoutError)):
                print(self.last_words())
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- beginning ----

    def prepare(self):
        for name in ("volumes", "images"):
            (self.directory / name).mkdir()
        shutil.copytree(store.HERE / "machine", self.directory / "machine")
        for archive in images.basic().glob("*.tar"):
            (self.directory / "images" / archive.name).symlink_to(archive)
        self.group = cgroups.make_for_machines(self.tag)

    def start(self, nodes):
        self.plane = self.machines["control-plane"] = Machine(self, "control-plane", "control-plane")
        self.plane.spawn()
        self.connect()
        self.authority = pki.Authority(self.directory / "pki", self.at.server)
        self.kubeconfig = self.authority.kubeconfig("admin", "/O=system:masters/CN=admin", self.directory / "kubeconfig")
        (self.directory / "resolv.conf").write_text(f"nameserver {self.at.control_plane}\n")
        settings.control_plane(self.plane.own, self.at, self.authority, self.packages)
        self.plane.go()
        self.nodes = [f"node{number}" for number in range(1, nodes + 1)]
        for name in self.nodes:
            self.add_node(name)
        wait_for(lambda: self.answers("/readyz"), "the API server")
        (self.directory / "ready").touch()
        self.seconds["api"] = time.monotonic() - self.began
        self.api("POST", "/apis/storage.k8s.io/v1/storageclasses", {
            "metadata": {"name": "bench", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            "provisioner": "kubernetes.io/host-path"})
        wait_for(lambda: self.ready_nodes() == set(self.nodes), "the nodes")
        wait_for(lambda: self.answers("/api/v1/namespaces/default/serviceaccounts/default"), "the first service account")
        wait_for(self.dns_answers, "the name server")
        self.seconds["ready"] = time.monotonic() - self.began

    def connect(self):
        """The switch, and the one link in this namespace: its name is the lock on its addresses."""
        taken = run("ip", "-4", "route").stdout
        for second in SECOND_NUMBERS:
            link = f"{LINK}{second}"
            if f"10.{second}." in taken or run("ip", "link", "add", link, "type", "veth", "peer", "here", "netns", self.plane.first_process(),
                                               check=False).returncode:
                continue
            (self.directory / "link").write_text(f"{link} {link_index(link)}")
            self.at = settings.Addresses(second)
            self.plane.ip("link set lo up", f"link add switch address {self.at.hardware(0)} type bridge", f"addr add {self.at.control_plane}/24 dev switch",
                          "link set switch up", "link set here master switch up")
            run("ip", "-batch", "-", input=f"addr add {self.at.here}/24 dev {link}\nlink set {link} up\n"
                f"route add {self.at.whole} via {self.at.control_plane}\n")
            return
        raise RuntimeError("no free network 10.x.0.0/16 for the cluster")

    def add_node(self, name):
        number = int(name.removeprefix("node"))
        node = self.machines[name] = Machine(self, name, "node")
        group = f"{self.tag}/{name}"
        cgroups.make(group)
        settings.node(node.own, name, number, self.at, self.authority, self.packages, f"/{cgroups.PREFIX}{group}",
                      self.directory / "resolv.conf", self.log_size)
        self.plane.ip(f"route add {self.at.pods(number)} via {self.at.node(number)}")
        if number == 1:  # webhooks are services, and no kube-proxy runs in the control plane
            self.plane.ip(f"route add {self.at.services} via {self.at.node(number)}")
        self.start_node(name)

    def start_node(self, name):
        """Also of a node that was killed."""
        node, number = self.machines[name], int(name.removeprefix("node"))
        node.spawn()
        port = f"port{number}"
        run("nsenter", "--target", self.plane.first_process(), "--net", "ip", "link", "del", port, check=False)
        self.plane.ip(f"link add {port} type veth peer eth0 netns {node.first_process()}", f"link set {port} master switch up")
        others = [int(other.removeprefix("node")) for other in self.nodes if other != name]
        node.ip("link set lo up", f"link set eth0 address {self.at.hardware(number)}", f"addr add {self.at.node(number)}/24 dev eth0", "link set eth0 up",
                f"route add default via {self.at.control_plane}",
                *[f"route add {self.at.pods(other)} via {self.at.node(other)}" for other in others])
        node.go()

    def kill_node(self, name):
        self.machines[name].kill()

    # ---- asking it ----

    def api(self, method, path, body=None):
        """The document that the API server answers; RuntimeError for any code from 300 on."""
        context = ssl.create_default_context(cafile=self.authority.path("ca.crt"))
        context.load_cert_chain(self.authority.path("admin.crt"), self.authority.path("admin.key"))
        connection = http.client.HTTPSConnection(self.at.control_plane, 6443, context=context, timeout=10)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read().decode()
            if answer.status >= 300:
                raise RuntimeError(f"{method} {path}: {answer.status} {text}")
            return json.loads(text) if text.startswith("{") else text
        finally:
            connection.close()

    def answers(self, path):
        try:
            return self.api("GET", path)
        except (OSError, http.client.HTTPException, RuntimeError):
            return None

    def ready_nodes(self):
        return {node["metadata"]["name"] for node in self.api("GET", "/api/v1/nodes")["items"]
                if any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", []))}

    def dns_answers(self):
        try:
            socket.create_connection((self.at.control_plane, 53), 1).close()
            return True
        except OSError:
            return False

    def env(self):
        """What a program needs to find it."""
        return {"KUBECONFIG": str(self.kubeconfig)}

    def kubectl(self, *args, check=True, timeout=60, kubeconfig=None, **kw):
        env = dict(os.environ, KUBECONFIG=str(kubeconfig or self.kubeconfig), KUBECACHEDIR=str(self.directory / "kubectl-cache"))
        return run(self.kubectl_path, *args, check=check, timeout=timeout, env=env, **kw)

    def load_image(self, archive):
        """On every node; also on those that start later."""
        kept = self.directory / "images" / pathlib.Path(archive).name
        if not kept.exists():
            shutil.copy(archive, kept)
        for name in self.nodes:
            self.machines[name].exec("ctr", "-n", "k8s.io", "images", "import", "--digests=false", kept)

    def tag_image(self, image, name):
        """Another name for an image that is there, in full form, with registry and tag."""
        for node in self.nodes:
            self.machines[node].exec("ctr", "-n", "k8s.io", "images", "tag", "--force", image, name)

    def user(self, name, groups=()):
        """kubeconfig of somebody who may do nothing yet."""
        return self.authority.kubeconfig(name, "".join(f"/O={group}" for group in groups) + f"/CN={name}")

    def last_words(self):
        """The ends of all logs, for when it does not start."""
        said = []
        for path in sorted(self.directory.glob("*/log/*.log")):
            lines = path.read_text(errors="replace").splitlines()[-LOG_LINES:]
            said += [f"== {path.relative_to(self.directory)}", *lines]
        return "\n".join(said)

    # ---- the end ----

    def close(self):
        remove_link(self.directory)
        for machine in self.machines.values():
            machine.kill()
        cgroups.remove(self.tag)
        remove_tree(self.directory)
        self.lock.close()
