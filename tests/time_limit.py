"""A test that hangs fails alone, with the line where it stood, instead of taking its whole stage along.

Imported by each conftest.py; REGATTA_TEST_SECONDS sets the limit, 0 means none (long sweeps have one test for all)."""
import os
import signal

import pytest

SECONDS = int(os.environ.get("REGATTA_TEST_SECONDS", "420"))


def hangs(_number, _frame):
    raise TimeoutError(f"the test took longer than {SECONDS} s")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    previous = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)
