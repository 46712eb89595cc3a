"""`registry = "ecr"`: the password for the pull comes from AWS, through the master, to the node that pulls, and nowhere else."""
import base64
import json
import shutil

import pytest

from .conftest import client
from .test_ec2_run import User
from .test_iam_policy import printed, without

IMAGE = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/train:1"
DOCKER = """#!/bin/sh
while [ "$1" = --config ]; do cat $2/config.json >> {log}; shift 2; done
case "$1" in
version) exit 0 ;;
image) exit 1 ;;
pull) echo "pull $3" >> {log}; echo "manifest unknown" >&2; exit 1 ;;
esac
"""


def user_of(tmp_path, cloud, caller=None):
    """Somebody whose docker writes down with which login it was asked to pull, and then has no image."""
    user = User(tmp_path, cloud, caller)
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "true", "cat"):
        (tools / name).symlink_to(shutil.which(name))
    (tools / "docker").write_text(DOCKER.format(log=tmp_path / "docker.log"))
    (tools / "docker").chmod(0o755)
    user.env["PATH"] = str(tools)
    return user


def run(user, image=IMAGE):
    (user.directory / "job.toml").write_text(f'name = "c"\nimage = "{image}"\nregistry = "ecr"\ncommand = ["true"]\n')
    return user.ends(user("run", "-d", "job.toml").stdout.split()[-1])


@pytest.mark.parametrize("limited", [False, True], ids=["anybody", "with the printed policy"])
def test_the_node_pulls_with_a_password_of_the_moment(cloud, tmp_path, limited):
    user = user_of(tmp_path, cloud, cloud.user("limited", printed()) if limited else None)
    try:
        status = run(user)
        assert status["verdict"] == "failed" and "image" in status["cause"]
        words = client(cloud, "ecr").get_authorization_token()["authorizationData"][0]["authorizationToken"]
        said = (tmp_path / "docker.log").read_text()
        assert f"pull {IMAGE}" in said
        logins = json.loads(said[:said.index("pull ")].split("}}}")[0] + "}}}")["auths"]
        assert set(logins) == {IMAGE.split("/")[0]}
        name, password = base64.b64decode(logins[IMAGE.split("/")[0]]["auth"]).decode().split(":", 1)
        assert (name, password) == tuple(base64.b64decode(words).decode().split(":", 1))
        asked = cloud.named("GetAuthorizationToken")
        assert asked and asked[0]["region"] == "eu-west-1"
        for file in (f for f in (tmp_path / "home").rglob("*") if f.is_file()):
            data = file.read_bytes()
            assert password.encode() not in data and logins[IMAGE.split("/")[0]]["auth"].encode() not in data, file
    finally:
        user.close()


def test_a_permission_that_is_missing_is_the_cause(cloud, tmp_path):
    user = user_of(tmp_path, cloud, cloud.user("limited", without("ecr:GetAuthorizationToken")))
    try:
        assert "ecr:GetAuthorizationToken" in run(user)["cause"]
    finally:
        user.close()


def test_an_image_of_another_registry_is_refused(cloud, tmp_path):
    user = user_of(tmp_path, cloud)
    try:
        assert "is not of a registry of ECR" in run(user, "docker.io/library/busybox")["cause"]
    finally:
        user.close()
