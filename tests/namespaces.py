"""Network namespaces that have a name, for the lab of hosts and the small cloud."""
import contextlib
import os
import pathlib

NAMED = pathlib.Path("/var/run/netns")


def pids_in(namespace):
    """Every process of a namespace."""
    try:
        inode = os.stat(NAMED / namespace).st_ino
    except FileNotFoundError:
        return []
    found = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdigit() and os.stat(f"/proc/{entry}/ns/net").st_ino == inode:
                found.append(int(entry))
    return found
