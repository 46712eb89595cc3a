"""The root file system that every guest lies over: Debian with cloud-init, made once and kept in build/cloud.

    lower()    makes what is not there; what an overlay names as its lower directories
"""
import contextlib
import fcntl
import glob
import hashlib
import os
import pathlib
import re
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
STORE = HERE.parents[1] / "build" / "cloud"
PACKAGES = "iproute2,procps,ca-certificates,curl,python3"
VERSION = 1  # to be raised when make() does something else
MAKE_SECONDS = 900
# Where the guest finds our files.
PLACES = {"init": "usr/sbin/init", "shutdown": "usr/sbin/shutdown", "boot": "usr/lib/guest-boot", "dmidecode": "usr/sbin/dmidecode",
          "docker": "usr/bin/docker", "image": "usr/lib/guest-image",
          "cloud.cfg": "etc/cloud/cloud.cfg.d/90_guest.cfg"}


def codename():
    with open("/etc/os-release", encoding="utf-8") as f:
        return re.search(r"^VERSION_CODENAME=(\S+)", f.read(), re.M)[1]


def mirror(suite):
    """From which this machine has its packages; of a file of sources in either form."""
    for name in ["/etc/apt/sources.list", *sorted(glob.glob("/etc/apt/sources.list.d/*"))]:
        with contextlib.suppress(OSError), open(name, encoding="utf-8") as f:
            text = f.read()
            for line in re.findall(rf"^deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+{suite}\s", text, re.M):
                return line
            for stanza in re.split(r"\n\s*\n", text):
                suites, uris = (re.search(rf"^{key}:\s*(.*)$", stanza, re.M) for key in ("Suites", "URIs"))
                if suites and uris and suite in suites[1].split():
                    return uris[1].split()[0]
    raise RuntimeError(f"no source of Debian packages for {suite} in /etc/apt")


def run(*argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          timeout=MAKE_SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stdout[-3000:]}")


def recipe():
    """Changes when what is made would be another thing."""
    return hashlib.sha256(repr((VERSION, PACKAGES, codename())).encode()).hexdigest()[:12]


def make(path):
    suite = codename()
    run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, str(path), mirror(suite))
    shutil.copy("/etc/resolv.conf", path / "etc/resolv.conf")
    # debootstrap does not follow all that cloud-init needs (a virtual package); apt does.
    inside = "DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends cloud-init && apt-get clean"
    run("unshare", "--mount", "sh", "-c", f"mount -t proc proc '{path}/proc' && chroot '{path}' sh -c '{inside}'")
    for useless in ("usr/share/doc", "usr/share/locale", "usr/share/man", "var/lib/apt/lists"):
        shutil.rmtree(path / useless, ignore_errors=True)
        (path / useless).mkdir()


def make_layer(path):
    """Our own files, over Debian's; /sbin is a link there."""
    for name, place in PLACES.items():
        (path / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "guest" / name, path / place)
    for name in ("poweroff", "halt", "reboot"):
        (path / "usr/sbin" / name).symlink_to("shutdown")
    # Nobody listens there: a name is refused at once, where no answer would cost half a minute.
    (path / "etc/resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")


def lower(layer):
    """layer: a directory that is not there yet, for our own files."""
    STORE.mkdir(parents=True, exist_ok=True)
    with open(STORE / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = STORE / f"root-{recipe()}"
        if not path.exists():
            for old in STORE.glob("root-*"):
                shutil.rmtree(old)
            make(STORE / "root-new")
            os.rename(STORE / "root-new", path)
    make_layer(layer)
    return f"{layer}:{path}"
