"""What a run does when AWS answers wrongly: a table of errors by classes of calls, from which the tests are made."""
import pytest

from .sweep import points
from .test_ec2_run import STAYS, launched, user, wait_for  # noqa: F401
from .test_iam_policy import CLUSTER

# Calls of a run that is killed when its instances are there, by class.
CLASSES = {
    "create": ("CreateSubnet", "CreateSecurityGroup", "AuthorizeSecurityGroupIngress", "CreatePlacementGroup", "CreateBucket", "PutObject"),
    "launch": ("RunInstances",),
    "look": ("DescribeInstances", "DescribeSecurityGroups", "DescribePlacementGroups", "HeadBucket", "HeadObject"),
    "delete": ("TerminateInstances", "RevokeSecurityGroupIngress", "DeleteSecurityGroup", "DeleteSubnet", "DeletePlacementGroup"),
}
# What follows: the run goes on as if nothing had been; it ends with this exit code and the error's name; a delete is held until
# the error is gone.
ON, HELD = "goes on", "held"
EVERYWHERE = dict.fromkeys(CLASSES, ON)


def half(answer):
    """As long as it says, but the document ends in its middle."""
    answer.body = answer.body[:len(answer.body) // 2]
    answer.headers = [(name, value) for name, value in answer.headers if name.lower() != "content-length"]
    return answer


def page_500(answer):
    """Of a proxy, after the call was applied."""
    answer.status, answer.headers, answer.body = 500, [("Content-Type", "text/html")], b"<html><body>Oops</body></html>"
    return answer


TABLE = {
    "throttled": ({"throttle": True, "times": 2}, EVERYWHERE),
    "server error": ({"server_error": True}, EVERYWHERE),
    "lost before": ({"lost": "before"}, EVERYWHERE),
    "lost after": ({"lost": "after"}, EVERYWHERE),
    "page of a proxy": ({"html": True}, EVERYWHERE),
    "500 with a page": ({"change": page_500}, EVERYWHERE),
    "half an answer": ({"change": half}, EVERYWHERE),
    "InsufficientInstanceCapacity": ({"error": "InsufficientInstanceCapacity", "status": 500}, {"launch": ON}),
    "InsufficientFreeAddressesInSubnet": ({"error": "InsufficientFreeAddressesInSubnet"}, {"launch": ON}),
    "VcpuLimitExceeded": ({"error": "VcpuLimitExceeded"}, {"launch": 5}),
    "InstanceLimitExceeded": ({"error": "InstanceLimitExceeded"}, {"launch": 5}),
    "denied": ({"denied": True, "times": None}, {"create": 4, "launch": 4, "delete": HELD}),
    "DependencyViolation": ({"error": "DependencyViolation", "times": 3}, {"delete": ON}),
}
CASES = [(error, kind, action) for error, (_, outcomes) in TABLE.items() for kind in outcomes for action in CLASSES[kind]]
# Half a minute each, and what test_an_answer_that_is_lost_makes_nothing_twice_and_leaves_nothing does: in the sweep only.
ELSEWHERE = [("lost after", "delete", "DeleteSecurityGroup"), ("lost after", "delete", "DeleteSubnet")]


@pytest.mark.parametrize("error, kind, action", points(CASES, 12, lambda case: case[1], ELSEWHERE))
def test_an_error_has_its_outcome(cloud, user, error, kind, action):  # noqa: F811
    fault, outcomes = TABLE[error]
    cloud.fault(action, **fault)
    run = user.submit(more=CLUSTER)
    if isinstance(outcomes[kind], int):
        ended = user.ends(run)
        assert (ended["verdict"], ended["exit_code"]) == ("failed", outcomes[kind])
        assert (action if error == "denied" else error) in ended["cause"]
        assert not cloud.left(*STAYS)
        return
    launched(cloud)
    user("kill", run)
    if outcomes[kind] == HELD:
        wait_for(lambda: any(action in waiting["why"] for waiting in user.status(run)["waiting"]), 60, "a delete that is held")
        cloud.script.clear()
    assert user.ends(run, 150)["verdict"] == "cancelled"
    assert not cloud.left(*STAYS) and len(cloud.launched()) == 3
