"""`make image`: an archive that containers are made of without anything else."""
import hashlib
import json
import os
import subprocess
import tarfile

import pytest

from conftest import BINARY, ROOT
from podman import BUSYBOX, directory, link, podman_storage


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return make_image(tmp_path_factory.mktemp("image") / "image.tar")


def make_image(path):
    subprocess.run([ROOT / "tools/image", BINARY, path], check=True, capture_output=True, timeout=60)
    return path


def busybox(archive):
    archive.addfile(directory("bin"))
    archive.add(BUSYBOX, "bin/busybox")
    archive.addfile(link("bin/true", "busybox"))


def test_every_blob_has_the_digest_that_names_it(archive):
    with tarfile.open(archive) as tar:
        blobs = {os.path.basename(member.name): tar.extractfile(member).read() for member in tar if member.name.startswith("blobs") and member.isfile()}
        index = json.load(tar.extractfile("index.json"))
    assert all(hashlib.sha256(data).hexdigest() == name for name, data in blobs.items())
    known = index["manifests"][0]
    manifest = json.loads(blobs[known["digest"].removeprefix("sha256:")])
    for one in (known, manifest["config"], *manifest["layers"]):
        assert len(blobs[one["digest"].removeprefix("sha256:")]) == one["size"]


def test_the_same_program_gives_the_same_bytes(archive, tmp_path):
    old = os.umask(0o077)
    try:
        again = make_image(tmp_path / "again.tar")
    finally:
        os.umask(old)
    assert again.read_bytes() == archive.read_bytes()


def test_a_container_of_it_is_the_program(archive):
    with podman_storage({"localhost/busybox:1": (busybox, ["ENV=PATH=/bin"])}) as podman:
        image = podman("pull", "--quiet", f"oci-archive:{archive}").stdout.strip()
        said = podman("run", "--rm", "--network", "host", image, "version").stdout
        assert said == subprocess.run([BINARY, "version"], check=True, capture_output=True, text=True).stdout


def test_a_program_that_is_not_there_makes_no_archive(tmp_path):
    done = subprocess.run([ROOT / "tools/image", tmp_path / "none", tmp_path / "image.tar"], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "none" in done.stderr and not (tmp_path / "image.tar").exists()
