"""The Debian package: installed into an empty root, where nothing else is."""
import os
import subprocess

import pytest

from conftest import BINARY, ROOT


@pytest.mark.skipif(os.geteuid() != 0, reason="dpkg installs as root only")
def test_the_package_needs_nothing_and_has_everything(tmp_path):
    made = subprocess.run([ROOT / "tools/deb", BINARY, tmp_path], check=True, capture_output=True, text=True).stdout.strip()
    assert subprocess.run(["sha256sum", "-c", f"{os.path.basename(made)}.sha256"], cwd=tmp_path, capture_output=True).returncode == 0
    root = tmp_path / "root"
    (root / "var/lib/dpkg/info").mkdir(parents=True)
    for name in ("status", "available"):
        (root / "var/lib/dpkg" / name).touch()
    subprocess.run(["dpkg", f"--root={root}", "--log=/dev/null", "-i", made], check=True, capture_output=True)
    # Not one file but its own is in that root.
    done = subprocess.run(["chroot", root, "/usr/bin/regatta", "version"], check=True, capture_output=True, text=True)
    assert done.stdout == subprocess.run([BINARY, "version"], capture_output=True, text=True).stdout
    for name in ("man/man1/regatta.1.gz", "bash-completion/completions/regatta", "zsh/vendor-completions/_regatta",
                 "fish/vendor_completions.d/regatta.fish", "doc/regatta/copyright"):
        assert (root / "usr/share" / name).stat().st_size > 0
    for unit, command in (("user/regatta-master", ["master"]), ("system/regatta-agent", ["agent", "--join"])):
        text = (root / f"usr/lib/systemd/{unit}.service").read_text()
        start = next(line for line in text.splitlines() if line.startswith("ExecStart="))
        assert start.split()[0] == "ExecStart=/usr/bin/regatta" and start.split()[1:1 + len(command)] == command
    subprocess.run(["dpkg", f"--root={root}", "--log=/dev/null", "-r", "regatta"], check=True, capture_output=True)
    assert not (root / "usr/bin/regatta").exists()
