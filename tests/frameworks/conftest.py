"""Everything of the end-to-end tests (tests/e2e/conftest.py), with Debian's programs first on the path.

The frameworks are Debian's packages: tools/setup test installs them.  Their Python is /usr/bin/python3.
"""
import importlib.util
import os
import pathlib
import sys

import pytest

E2E = pathlib.Path(__file__).resolve().parents[1] / "e2e"
sys.path.append(str(E2E))
spec = importlib.util.spec_from_file_location("e2e_conftest", E2E / "conftest.py")
e2e = importlib.util.module_from_spec(spec)
spec.loader.exec_module(e2e)
globals().update({name: value for name, value in vars(e2e).items() if not name.startswith("__")})


@pytest.fixture(autouse=True)
def debian_first(monkeypatch):
    monkeypatch.setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin:" + os.environ["PATH"])
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
