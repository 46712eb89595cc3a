"""Jobs that name a team's master: it makes the nodes, from a source in git, with a set-up, and ends a run that has cost enough."""
import subprocess

import pytest

from . import network
from .conftest import wait_for
from .test_ec2_run import STAYS, User
from .test_silent_machines import agents  # noqa: F401  pylint: disable=unused-import

HEAD = """name = "costly"
engine = "aws.ec2"
master = "context:lab"
instance_type = "p4d.24xlarge"
"""
FROM_GIT = HEAD + """source = "git+file://{repository}@v1"
setup = "echo set-up >>greeting"
command = ["cat", "greeting"]
"""
ENDLESS = HEAD + """max_cost = 0.05
command = ["sh", "-c", "while :; do sleep 0.1; done"]
"""


@pytest.fixture
def lab(agents, tmp_path):  # noqa: F811
    """A master that the instances reach, and what it says of itself."""
    (tmp_path / "lab").mkdir()
    there = User(tmp_path / "lab", agents)
    yield there, there.listen(agents.network.caller)
    there.close()


def repository(directory):
    """v1 has the greeting; the newest commit has another."""
    def git(*args):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "init.defaultBranch=main", *args], cwd=directory, check=True,
                       capture_output=True)

    directory.mkdir()
    git("init")
    for number in (1, 2):
        (directory / "greeting").write_text(f"greeting {number}\n")
        git("add", "greeting")
        git("commit", "-m", str(number))
        git("tag", f"v{number}")
    return directory


@pytest.mark.skipif(bool(network.missing()), reason=network.missing() or "-")
def test_the_master_that_a_job_names_runs_it_and_stops_what_has_cost_the_limit(agents, lab, tmp_path):  # noqa: F811
    there, said = lab
    user = User(tmp_path, agents)
    user("context", "add", "lab", said["url"], "--pin", said["pin"], "--token", said["token"])
    runs = [user.submit(ENDLESS), user.submit(FROM_GIT.format(repository=repository(tmp_path / "repository")))]
    stopped, done = [wait_for(lambda run=run: (s := there.status(run))["exit_code"] is not None and s, 120, f"the end of {run}") for run in runs]
    assert stopped["verdict"] == "failed" and "max_cost of 0.05 USD is reached: the run is stopped" in stopped["cause"]
    assert done["verdict"] == "succeeded", done
    assert user("logs", runs[1], "--master", "lab").stdout.splitlines()[-2:] == ["greeting 1", "set-up"]
    made = [facts["tags"]["regatta:run"] for facts in agents.launched().values()]
    assert sorted(made) == sorted(runs)  # one instance each, and none for a master
    assert not agents.left(*STAYS)
    assert not set(runs) & set(user("ps", "-a", "--master", "local").stdout.split())
