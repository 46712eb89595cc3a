"""Machines of instances: guests that boot Debian with cloud-init, and stand-ins that start one command at once.

Both have namespaces of their own (network, processes, mounts, host name), and are gone when this process is gone, however
it ends.
"""
import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

from . import rootfs

GUEST = pathlib.Path(__file__).resolve().parent / "guest"
REBOOT_CODES = (42, -signal.SIGHUP)
BOOTS_AT_ONCE = 2
BOOT_SECONDS = 120
STOP_SECONDS = 5
CONSOLE_BYTES = 65536


class Machines:
    """What the machines of one cloud share."""

    def __init__(self, cloud, directory):
        self.cloud, self.directory, self.lower, self.lock = cloud, directory, None, threading.Lock()
        self.turns = threading.Semaphore(BOOTS_AT_ONCE)
        # The kernel ends a child when the thread that made it ends: one thread makes them all, and lives as long as we do.
        self.spawner = concurrent.futures.ThreadPoolExecutor(1, "spawner")
        shutil.copytree(GUEST, directory / "guest")

    def make_root(self):
        with self.lock:
            if not self.lower:
                self.lower = rootfs.lower(self.directory / "layer")
            return self.lower

    def spawn(self, argv, **kw):
        return self.spawner.submit(subprocess.Popen, argv, stdin=subprocess.DEVNULL, **kw).result()

    def close(self):
        self.spawner.shutdown()


class Machine:
    """command: what its first process starts; base: the lower directories of its root, "-" for this machine's files."""

    def __init__(self, machines, instance, base, command, env=None):
        self.machines, self.instance, self.base, self.command, self.env = machines, instance, base, command, env
        self.cloud, self.directory = machines.cloud, machines.directory / instance.id
        self.process = self.namespace = None
        self.is_stopping, self.has_turn, self.lock = False, False, threading.RLock()
        self.mark = self.directory / "upper/var/lib/guest-booted"
        self.seconds = {}  # phase -> when it was reached, since the start

    @property
    def is_booting(self):
        return self.base != "-"

    # ---- beginning ----

    def start(self):
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        began = time.monotonic()
        if self.is_booting:
            while not self.machines.turns.acquire(timeout=0.1):
                if self.is_stopping:
                    return
            self.has_turn = True
        try:
            with self.lock:
                if self.is_stopping:
                    return
                self.prepare()
                self.boot()
            self.seconds["started"] = time.monotonic() - began
            if self.is_booting:
                self.await_boot(began)
        finally:
            self.give_turn()
        self.watch()

    def give_turn(self):
        if self.has_turn:
            self.has_turn = False
            self.machines.turns.release()

    def prepare(self):
        for name in ("upper/etc", "upper/var/lib", "work", "root"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        self.mark.unlink(missing_ok=True)
        if not (self.directory / "guest").exists():
            (self.directory / "guest").symlink_to(self.machines.directory / "guest")
        self.name = self.instance.private_dns_name.partition(".")[0]
        (self.directory / "upper/etc/hostname").write_text(self.name + "\n")
        (self.directory / "upper/etc/hosts").write_text(f"127.0.0.1 localhost\n{self.instance.private_ip_address} {self.instance.private_dns_name} {self.name}\n")
        for path, text in self.cloud.image_files(self.instance).items():
            self.file(path).parent.mkdir(parents=True, exist_ok=True)
            self.file(path).write_text(text)
        self.namespace = self.cloud.network.attach(self.instance)

    def boot(self):
        argv = ["setpriv", "--pdeathsig", "KILL", "nsenter", f"--net=/var/run/netns/{self.namespace}", "unshare", "--mount", "--uts", "--ipc",
                "--pid", "--fork", "--kill-child", "sh", str(GUEST / "enter"), str(self.directory), self.base, self.name, *self.command]
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", **(self.env or {})}
        with open(self.directory / "console", "ab") as console:
            self.process = self.machines.spawn(argv, stdout=console, stderr=subprocess.STDOUT, env=env, cwd="/", start_new_session=True)

    def await_boot(self, began):
        """Its turn ends with the boot."""
        while time.monotonic() < began + BOOT_SECONDS and self.process.poll() is None:
            if self.mark.exists():
                self.seconds["booted"] = time.monotonic() - began
                return
            time.sleep(0.05)

    def watch(self):
        """Until the guest has ended by itself; a reboot is a new start."""
        while True:
            code = self.process.wait()
            with self.lock:
                if self.is_stopping:
                    return
                if code not in REBOOT_CODES:
                    break
                self.boot()
        self.remove(keep_disk=self.instance.instance_initiated_shutdown_behavior != "terminate")
        self.cloud.switched_off(self.instance.id)

    # ---- the end ----

    def first_process(self):
        """pid of the guest's init, as seen from here."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int(pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()[0])
        return None

    def stop(self, keep_disk=False):
        """As EC2 does it: the power button, and after a while the plug."""
        with self.lock:
            self.is_stopping = True
        if self.process:
            init = self.first_process()
            if init:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(init, signal.SIGPWR)
            try:
                self.process.wait(STOP_SECONDS if init and self.is_up() else 0.01)
            except subprocess.TimeoutExpired:
                self.pull_plug()
        self.remove(keep_disk)

    def is_up(self):
        return not self.is_booting or "booted" in self.seconds

    def pull_plug(self):
        init = self.first_process()
        for pid in (init, self.process.pid):
            with contextlib.suppress(ProcessLookupError, TypeError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(STOP_SECONDS)

    def remove(self, keep_disk=False):
        self.cloud.note_console(self.instance.id, self.console())
        if self.namespace:
            self.cloud.network.detach(self.instance)
        if not keep_disk:
            shutil.rmtree(self.directory, ignore_errors=True)

    # ---- for tests ----

    def console(self):
        with contextlib.suppress(OSError):
            return (self.directory / "console").read_bytes()[-CONSOLE_BYTES:].decode(errors="replace")
        return ""

    def file(self, path):
        """A file that the guest wrote, from outside."""
        return self.directory / "upper" / path.lstrip("/")

    def kill(self):
        """As if its kernel had died: EC2 goes on saying that the instance runs."""
        with self.lock:
            self.is_stopping = True
        self.pull_plug()

    def exec(self, *argv, timeout=30):
        """A command in the machine."""
        init = self.first_process()
        return subprocess.run(["nsenter", "--target", str(init), "--all", *argv], capture_output=True, text=True, timeout=timeout, check=False)


def guest(cloud, instance):
    """boot="real": Debian with cloud-init.  A callable of a test may return it for some instances, and a stand-in for others."""
    return Machine(cloud.machine_room, instance, cloud.machine_room.make_root(), ["/usr/lib/guest-boot"])


def stand_in(command, env=None):
    """For Cloud(boot=...): a machine that starts command(instance) at once, with this machine's files.

    None from command: an instance that never does anything.
    """
    def make(cloud, instance):
        argv = command(instance)
        more = env(instance) if env else {}
        return Machine(cloud.machine_room, instance, "-", [str(word) for word in argv], more) if argv else None
    return make


def run_user_data(instance):
    """A command for stand_in(): the user data at once, as cloud-init would run it; what it writes is the machine's own."""
    own = "; ".join(f"mount -t tmpfs tmpfs {place}" for place in ("/var/lib", "/run", "/sys/fs/cgroup"))
    return ["sh", "-c", f"{own}; echo {instance.user_data or str()} | base64 -d >/var/lib/user-data; sh /var/lib/user-data"]
