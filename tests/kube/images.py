"""Debian packages unpacked, and container images made of them: tar files in the layout of OCI, made without a daemon.

All images are of a registry that does not exist: whoever names another tag gets ErrImagePull.
"""
import hashlib
import io
import json
import os
import pathlib
import platform
import shutil
import subprocess
import tarfile

from . import store

REGISTRY = "bench.test"
PAUSE, BUSYBOX, PYTHON, MPI = (f"{REGISTRY}/{name}:1" for name in ("pause", "busybox", "python", "mpi"))
# What a node and the control plane run that is not of Kubernetes.
MACHINE = """containerd runc containernetworking-plugins iptables nftables libnftables1 libnftnl11 libip6tc2 conntrack
libnetfilter-conntrack3 libnfnetlink0 socat ethtool ebtables etcd-server busybox-static""".split()
# Python with its standard library, and what its extensions are linked with.
PYTHON_PACKAGES = """libc6 libgcc-s1 libcrypt1 zlib1g libexpat1 libssl3 libffi8 libbz2-1.0 liblzma5 libsqlite3-0 libuuid1 python3-minimal
python3.11-minimal libpython3.11-minimal libpython3.11-stdlib busybox-static""".split()
# mpirun, and the ssh with which it starts its processes on other nodes.
MPI_PACKAGES = """libc6 libgcc-s1 libstdc++6 zlib1g libevent-core-2.1-7 libevent-pthreads-2.1-7 libhwloc15 libudev1 libpmix2 libmunge2 libopenmpi3
openmpi-bin openmpi-common openssh-client openssh-server libcrypt1 libssl3 libgssapi-krb5-2 libkrb5-3 libk5crypto3 libkrb5support0 libcom-err2
libkeyutils1 libselinux1 libpcre2-8-0 libaudit1 libcap-ng0 libpam0g libsystemd0 libwrap0 libnsl2 libtirpc3 libedit2 libfido2-1 libcbor0.8
libnl-3-200 libnl-route-3-200 libtinfo6 libmd0 libbsd0 liblzma5 libzstd1 liblz4-1 libcap2 libgcrypt20 libgpg-error0 busybox-static""".split()
SSHD_CONFIG = "PermitRootLogin yes\nStrictModes no\nUsePAM no\n"
SSH_CONFIG = "Host *\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n LogLevel ERROR\n"
VERSION = 2  # to be raised when a directory is made in another way
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def make_merged(root):
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")


def unpack(run, packages, root):
    """The files of Debian packages, installed nowhere; /bin and its like are links into /usr."""
    fetched = root.parent / f"{root.name}.packages"
    fetched.mkdir(parents=True)
    try:
        run("apt-get", "download", "-q", *packages, cwd=fetched)
    except RuntimeError:
        run("apt-get", "update", "-q")  # lists that are not there, or too old
        run("apt-get", "download", "-q", *packages, cwd=fetched)
    make_merged(root)
    for package in sorted(fetched.glob("*.deb")):  # dpkg-deb -x would put directories in place of the links
        run("sh", "-c", 'dpkg-deb --fsys-tarfile "$1" | tar -x --keep-directory-symlink -C "$2"', "sh", package, root)
    shutil.rmtree(fetched)


def machine():
    """A directory whose usr/ lies over this machine's own in every node."""
    return store.make("machine", (MACHINE, VERSION), lambda path, run: unpack(run, MACHINE, path / "root")) / "root"


def blob(data):
    return hashlib.sha256(data).hexdigest(), data


def write(archive, name, root, entrypoint=None):
    """An image of one layer: the files below root, as root's."""
    def owned_by_root(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.add(root, ".", filter=owned_by_root)
    layer_digest, layer_data = blob(layer.getvalue())
    config_digest, config = blob(json.dumps({
        "architecture": ARCHITECTURE, "os": "linux", "config": {"Entrypoint": entrypoint, "Env": [PATH]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]}}).encode())
    media = "application/vnd.oci.image"
    manifest_digest, manifest = blob(json.dumps({
        "schemaVersion": 2, "mediaType": f"{media}.manifest.v1+json",
        "config": {"mediaType": f"{media}.config.v1+json", "digest": f"sha256:{config_digest}", "size": len(config)},
        "layers": [{"mediaType": f"{media}.layer.v1.tar", "digest": f"sha256:{layer_digest}", "size": len(layer_data)}]}).encode())
    index = json.dumps({"schemaVersion": 2, "manifests": [{
        "mediaType": f"{media}.manifest.v1+json", "digest": f"sha256:{manifest_digest}", "size": len(manifest),
        "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]},
        "platform": {"architecture": ARCHITECTURE, "os": "linux"}}]}).encode()
    with tarfile.open(archive, "w") as tar:
        for member, data in [("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'), ("index.json", index),
                             (f"blobs/sha256/{manifest_digest}", manifest), (f"blobs/sha256/{config_digest}", config),
                             (f"blobs/sha256/{layer_digest}", layer_data)]:
            entry = tarfile.TarInfo(member)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def write_program(archive, name, program, files=()):
    """An image with nothing but a static program, which it starts, and files: (path, text)."""
    program = pathlib.Path(program)
    root = pathlib.Path(archive).with_suffix(".root")
    root.mkdir()
    shutil.copy(program, root / program.name)
    (root / "tmp").mkdir(mode=0o777)
    for path, text in files:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    write(archive, name, root, [f"/{program.name}"])
    shutil.rmtree(root)


def add_userland(root, busybox):
    """sh and its like, users, and a place for temporary files."""
    places = root / "usr/bin"
    if busybox != places / "busybox":
        shutil.copy(busybox, places / "busybox")
    for applet in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
        if not os.path.lexists(places / applet):
            (places / applet).symlink_to("busybox")
    for name in ("etc", "proc", "root", "sys", "dev"):
        (root / name).mkdir(exist_ok=True)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    (root / "tmp").mkdir()
    os.chmod(root / "tmp", 0o1777)


def mpi():
    """The archive of an image whose containers run mpirun, and sshd for it."""
    def build(path, run):
        root = path / "mpi"
        unpack(run, MPI_PACKAGES, root)
        for useless in ("usr/share/doc", "usr/share/man", "usr/share/locale"):
            shutil.rmtree(root / useless, ignore_errors=True)
        add_userland(root, root / "usr/bin/busybox")
        with open(root / "etc/passwd", "a", encoding="utf-8") as users:
            users.write("sshd:x:100:65534::/run/sshd:/bin/false\n")
        (root / "run/sshd").mkdir(parents=True)
        (root / "etc/ssh/sshd_config").write_text(SSHD_CONFIG)
        (root / "etc/ssh/ssh_config").write_text(SSH_CONFIG)
        (root / "dev/null").touch()
        run("chroot", root, "/usr/bin/ssh-keygen", "-A")
        (root / "dev/null").unlink()
        (root / "usr/bin/mpirun").symlink_to("mpirun.openmpi")
        write(path / "mpi.tar", MPI, root)
        shutil.rmtree(root)
    return store.make("mpi", (MPI_PACKAGES, SSHD_CONFIG, SSH_CONFIG, VERSION), build) / "mpi.tar"


def basic():
    """A directory with the images that every node has: pause, busybox and python."""
    def build(path, run):
        root = path / "busybox"
        make_merged(root)
        add_userland(root, machine() / "usr/bin/busybox")
        write(path / "busybox.tar", BUSYBOX, root)
        write(path / "pause.tar", PAUSE, root, ["/bin/busybox", "sleep", "2147483647"])
        shutil.rmtree(root)
        root = path / "python"
        unpack(run, PYTHON_PACKAGES, root)
        for useless in ("usr/share/doc", "usr/share/man", "usr/share/locale"):
            shutil.rmtree(root / useless, ignore_errors=True)
        add_userland(root, root / "usr/bin/busybox")
        write(path / "python.tar", PYTHON, root)
        shutil.rmtree(root)
    return store.make("images", (MACHINE, PYTHON_PACKAGES, VERSION), build)
