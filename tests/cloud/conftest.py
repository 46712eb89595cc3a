"""A cloud for a test, and a look around afterwards."""
import time

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from cloud import Cloud
from time_limit import pytest_runtest_call  # noqa: F401

CONFIG = Config(retries={"max_attempts": 0, "mode": "standard"}, signature_version=None, connect_timeout=30, read_timeout=120)


def wait_for(condition, seconds=180, what="the condition"):
    """Poll until condition() is true; its value is returned.  A boot takes four seconds, on a busy machine many more."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.02)


def client(cloud, service, caller=None, **config):
    return boto3.client(service, config=CONFIG.merge(Config(**config)), **cloud.client_options(caller))


def refused(function, *args, **kw):
    """The code with which a call is refused."""
    with pytest.raises(ClientError) as caught:
        function(*args, **kw)
    return caught.value.response["Error"]["Code"]


@pytest.fixture
def cloud():
    with Cloud() as made:
        yield made
        assert not made.broken, "\n".join(made.broken)


@pytest.fixture
def ec2(cloud):
    return client(cloud, "ec2")


@pytest.fixture
def s3(cloud):
    return client(cloud, "s3", signature_version="s3v4")
