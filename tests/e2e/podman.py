"""Debian's podman with a storage of its own, and images that are made here of files, without a registry."""
import contextlib
import io
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile

import pytest

BUSYBOX = "/bin/busybox"


class Podman:
    def __init__(self, place):
        self.dir = pathlib.Path(place)
        self.bin = self.dir / "bin"
        self.bin.mkdir()
        # Limits that an unprivileged sandbox cannot raise stay as they are; locks of this storage only.
        (self.dir / "containers.conf").write_text(
            f'[containers]\ndefault_ulimits = []\n[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\n'
            f'lock_type = "file"\ntmp_dir = "{self.dir}/tmp"\n')
        program = self.bin / "podman"
        program.write_text(f'#!/bin/sh\nCONTAINERS_CONF={self.dir}/containers.conf exec /usr/bin/podman --root {self.dir}/s '
                           f'--runroot {self.dir}/r --storage-driver vfs --runtime runc "$@"\n')
        program.chmod(0o755)

    def __call__(self, *args, check=True):
        return subprocess.run([self.bin / "podman", *args], check=check, capture_output=True, text=True, timeout=60)

    def names(self):
        return self("ps", "--all", "--format", "{{.Names}}").stdout.split()

    def make_image(self, name, fill, changes):
        """fill puts the files into a tar file; changes are those of `podman import`."""
        archive = self.dir / "image.tar"
        with tarfile.open(archive, "w") as tar:
            fill(tar)
        self("import", *[word for change in changes for word in ("--change", change)], str(archive), name)
        archive.unlink()


def directory(name):
    made = tarfile.TarInfo(name)
    made.type, made.mode = tarfile.DIRTYPE, 0o755
    return made


def link(name, to):
    made = tarfile.TarInfo(name)
    made.type, made.linkname = tarfile.SYMTYPE, to
    return made


def text(name, content):
    made = tarfile.TarInfo(name)
    made.size = len(content.encode())
    return made, io.BytesIO(content.encode())


@contextlib.contextmanager
def podman_storage(images):
    """A Podman that has these images: {name: (fill, changes)}; skips where it cannot run containers."""
    if os.geteuid() != 0:
        pytest.skip("podman without root needs more than a test may take for granted")
    for program in ("/usr/bin/podman", "/usr/sbin/runc", BUSYBOX):
        if not os.path.exists(program):
            pytest.skip(f"no {program}: tools/setup test installs it")
    place = tempfile.mkdtemp(prefix="rgpod")
    podman = Podman(place)
    try:
        for name, (fill, changes) in images.items():
            podman.make_image(name, fill, changes)
        tried = podman("run", "--rm", "--network", "host", next(iter(images)), "true", check=False)
        if tried.returncode != 0:
            pytest.skip(f"podman cannot run a container here: {tried.stderr.strip()}")
        yield podman
    finally:
        podman("rm", "--all", "--force", check=False)
        subprocess.run(["umount", f"{place}/s/vfs"], capture_output=True)
        shutil.rmtree(place, ignore_errors=True)


@contextlib.contextmanager
def on_path(podman, regatta):
    """Before anything else, and without a docker; at the end no container is left."""
    plain = [d for d in regatta.env.get("PATH", os.environ["PATH"]).split(":") if not os.path.exists(f"{d}/docker")]
    regatta.env["PATH"] = ":".join([str(podman.bin), *plain])
    yield
    regatta("master", "--stop", "--cancel", code=None, timeout=30)
    assert podman.names() == []
