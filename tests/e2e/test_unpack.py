"""data[].unpack: archives of every kind come out as files, and nothing else does."""
import hashlib
import io
import subprocess
import tarfile
import zipfile

import pytest

JOB = '''
name = "u"
command = ["sh", "-c", "find . -type f | sort | xargs head -n 9"]
[[data]]
src = "%s"
unpack = true
%s
'''


def tar(path, mode="w", files=(("a", b"1\n"), ("sub/b", b"2\n")), link=None):
    with tarfile.open(path, mode) as t:
        for name, text in files:
            info = tarfile.TarInfo(name)
            info.size = len(text)
            t.addfile(info, io.BytesIO(text))
        if link:
            info = tarfile.TarInfo("link")
            info.type, info.linkname = tarfile.SYMTYPE, link
            t.addfile(info)


def make(kind, path):
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as z:
            z.writestr("a", "1\n")
            z.writestr("sub/b", "2\n")
    elif kind == "tar.zst":
        tar(path.with_suffix(""))
        subprocess.run(["zstd", "-q", "-f", path.with_suffix(""), "-o", path], check=True)
    else:
        tar(path, "w:" + kind.partition(".")[2])


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "tar.xz", "tar.bz2", "tar.zst", "zip"])
def test_every_kind_of_archive_is_unpacked(regatta, kind):
    make(kind, regatta.cwd / f"set.{kind}")
    regatta.job(JOB % (f"set.{kind}", ""))
    run = regatta.submit("job.toml")
    assert regatta.wait(run)["verdict"] == "succeeded"
    assert regatta.log(run, "worker-0") == b"==> ./set/a <==\n1\n\n==> ./set/sub/b <==\n2\n"


def test_the_digest_is_that_of_the_archive(regatta):
    make("tar.gz", regatta.cwd / "set.tgz")
    digest = hashlib.sha256((regatta.cwd / "set.tgz").read_bytes()).hexdigest()
    regatta.job(JOB % ("set.tgz", f'sha256 = "{digest}"\npath = "in/here"'))
    run = regatta.submit("job.toml")
    assert regatta.wait(run)["verdict"] == "succeeded"
    assert b"./in/here/sub/b" in regatta.log(run, "worker-0")
    regatta.job(JOB % ("set.tgz", f'sha256 = "{"0" * 64}"'))
    assert "wrong content" in regatta.wait(regatta.submit("job.toml"))["cause"]
    regatta.job(JOB % ("set.tgz", f'md5 = "{"0" * 32}"'))
    assert "wrong content" in regatta.wait(regatta.submit("job.toml"))["cause"]


@pytest.mark.parametrize("files, link", [([("../out", b"x")], None), ([("/tmp/out", b"x")], None), ([], "/etc/passwd"),
                                         ([], "../../out")])
def test_an_archive_that_leaves_its_directory_is_refused(regatta, files, link):
    tar(regatta.cwd / "bad.tar.gz", "w:gz", files, link)
    regatta.job(JOB % ("bad.tar.gz", ""))
    status = regatta.wait(regatta.submit("job.toml"))
    assert status["verdict"] == "failed" and "data 'bad'" in status["cause"]
    assert not list(regatta.home.rglob("out"))


def test_a_damaged_archive_is_named(regatta):
    tar(regatta.cwd / "whole.tar.gz", "w:gz", [("big", bytes(range(256)) * 4000)])
    data = (regatta.cwd / "whole.tar.gz").read_bytes()
    (regatta.cwd / "bad.tar.gz").write_bytes(data[:-9] + b"123456789")
    regatta.job(JOB % ("bad.tar.gz", ""))
    assert "damaged" in regatta.wait(regatta.submit("job.toml"))["cause"]


def test_what_is_no_archive_is_refused(regatta):
    (regatta.cwd / "set.tar").write_text("plain text" * 100)
    regatta.job(JOB % ("set.tar", ""))
    assert regatta.wait(regatta.submit("job.toml"))["verdict"] == "failed"


def test_packages_are_not_installed_on_ones_own_machine(regatta):
    regatta.job('name = "p"\ncommand = ["true"]\npackages = ["no-such-package"]')
    done = regatta("run", "job.toml")
    assert "packages are not installed here: engine local uses machines as they are" in done.err
