"""What the cluster is made of, built once and kept outside of the checkout.

    part("control-plane")    the directory of a part; builds it first if it is not there

Everything lies below $REGATTA_CACHE/kube (default ~/.cache/regatta/kube).  A part is built under another name and
renamed when it is whole; its directory carries a digest of its recipe, so a changed recipe is another part.  A lock for
each part lets two that want it build it once.
"""
import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD_SECONDS = 3600
LOG_BYTES = 3000


class Unavailable(Exception):
    """Something that this machine does not have: tests are skipped with these words."""


def directory():
    home = os.environ.get("REGATTA_CACHE") or pathlib.Path.home() / ".cache" / "regatta"
    return pathlib.Path(home).absolute() / "kube"


@contextlib.contextmanager
def locked(path):
    with open(path, "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Builder:
    """Runs the commands of a recipe; what they say goes to a log beside the part."""

    def __init__(self, name):
        self.log = directory() / f"{name}.log"
        self.log.write_text("")

    def __call__(self, *argv, **kw):
        with open(self.log, "a", encoding="utf-8") as log:
            print("$", *argv, file=log, flush=True)
            done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
                                  timeout=BUILD_SECONDS, check=False, **kw)
        if done.returncode:
            said = self.log.read_text(errors="replace")[-LOG_BYTES:]
            raise RuntimeError(f"{argv[0]}: exit code {done.returncode}; the log is {self.log}\n{said}")
        return done.stdout


def digest(recipe):
    return hashlib.sha256(repr(recipe).encode()).hexdigest()[:12]


def make(name, recipe, build):
    """recipe: whatever decides what build(path, run) makes in the empty directory path."""
    path = directory() / f"{name}-{digest(recipe)}"
    if path.exists():
        return path
    directory().mkdir(parents=True, exist_ok=True)
    with locked(directory() / f"{name}.lock"):
        if not path.exists():
            new = directory() / f"{name}.new"
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            print(f"building {name}, once; the log is {directory()}/{name}.log", file=sys.stderr, flush=True)
            build(new, Builder(name))
            os.rename(new, path)
    return path
