"""The control groups of one cluster: one of its name in every hierarchy, with one for each node below.

Every process of a cluster is in one of them, so what is left of a cluster whose starter was killed can be found.
"""
import contextlib
import os
import pathlib
import signal
import time

PREFIX = "rgk-"
REMOVE_SECONDS = 120
# Where processes are that belong to no pod: with version 2 a group with groups below has no processes of its own.
MACHINES = "machines"


def hierarchies():
    """Mount points, as far as we may write there."""
    found = []
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if after.split()[0] in ("cgroup", "cgroup2"):
            found.append(pathlib.Path(before.split()[4]))
    return [path for path in found if os.access(path, os.W_OK)]


def make(name):
    """name: TAG or TAG/node."""
    for hierarchy in hierarchies():
        path = hierarchy / f"{PREFIX}{name}"
        path.mkdir(exist_ok=True)
        for key in ("cpuset.cpus", "cpuset.mems"):  # a new group of version 1 has none
            with contextlib.suppress(OSError):
                if not (path / key).read_text().strip():
                    (path / key).write_text((path.parent / key).read_text())


def make_for_machines(tag):
    """The group that machines enter: its directory in one hierarchy, which is enough to find them."""
    make(tag)
    make(f"{tag}/{MACHINES}")
    known = hierarchies()
    return next((h for h in known if h.name == "pids"), known[0]) / f"{PREFIX}{tag}" / MACHINES


def below(tag):
    """All groups of a cluster, the innermost first."""
    return [pathlib.Path(path) for hierarchy in hierarchies() for path, _, _ in os.walk(hierarchy / f"{PREFIX}{tag}", topdown=False)]


def processes(tag):
    found = set()
    for path in below(tag):
        with contextlib.suppress(OSError):
            found.update(int(pid) for pid in (path / "cgroup.procs").read_text().split())
    return found - {0}


def processes_of_pod(tag, uid):
    """Of all its containers."""
    found = set()
    for path in below(tag):
        if f"pod{uid}" in path.parts:
            with contextlib.suppress(OSError):
                found.update(int(pid) for pid in (path / "cgroup.procs").read_text().split())
    return found - {0}


def remove(tag):
    """Kill who is left, and take the groups away."""
    deadline = time.monotonic() + REMOVE_SECONDS
    while below(tag) and time.monotonic() < deadline:
        for pid in processes(tag):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for path in below(tag):
            with contextlib.suppress(OSError):
                path.rmdir()
        time.sleep(0.02)
    assert not below(tag), f"control groups that cannot be removed: {below(tag)}"
