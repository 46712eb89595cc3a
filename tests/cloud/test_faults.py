"""The fault script, the call log, the decoys and the meter."""
import json
import time
import urllib.request

import pytest
from botocore.exceptions import ConnectionClosedError, ResponseStreamingError
from botocore.parsers import ResponseParserError

from . import images, meter
from .conftest import client, refused
from .errors import Answer
from .test_launch import ids, launch


def test_an_answer_is_lost_after_the_call_was_applied_or_before(cloud, ec2):
    cloud.fault("RunInstances", lost="after")
    with pytest.raises(ConnectionClosedError):
        launch(ec2, ClientToken="t")
    assert len(cloud.launched()) == 1
    assert ids(launch(ec2, ClientToken="t")) == list(cloud.launched())
    cloud.fault("CreateSecurityGroup", lost="before")
    with pytest.raises(ConnectionClosedError):
        ec2.create_security_group(GroupName="g", Description="d")
    assert not [key for key in cloud.left() if key[0] == "security-group"]


@pytest.mark.parametrize("options, code", [
    ({"throttle": True}, "RequestLimitExceeded"), ({"server_error": True}, "InternalError"), ({"denied": True}, "UnauthorizedOperation"),
    ({"error": "InsufficientInstanceCapacity", "status": 500}, "InsufficientInstanceCapacity")])
def test_a_call_is_refused(cloud, ec2, options, code):
    cloud.fault("ec2:RunInstances", **options)
    assert refused(launch, ec2) == code and not cloud.left()
    launch(ec2)


def test_an_error_may_come_after_the_call_was_applied(cloud, ec2):
    cloud.fault("RunInstances", server_error=True, when="after")
    assert refused(launch, ec2) == "InternalError"
    assert len(cloud.launched()) == 1


def test_a_page_of_a_captive_proxy(cloud, ec2):
    cloud.fault("DescribeVpcs", html=True)
    with pytest.raises(ResponseParserError):
        ec2.describe_vpcs()


def test_the_nth_call_for_so_many_times(cloud, ec2):
    fault = cloud.fault("DescribeVpcs", nth=2, times=2, throttle=True)
    ec2.describe_vpcs()
    ec2.describe_subnets()
    assert refused(ec2.describe_vpcs) == refused(ec2.describe_vpcs) == "RequestLimitExceeded"
    ec2.describe_vpcs()
    assert fault.hits == 2


def test_a_delay_holds_nobody_else(cloud, ec2):
    cloud.fault("DescribeVpcs", delay=0.3)
    started = time.monotonic()
    ec2.describe_vpcs()
    assert time.monotonic() - started >= 0.3


def test_a_hook_is_a_crash_point(cloud, ec2):
    seen = []
    cloud.fault("RunInstances", hook=lambda call: seen.append((call.params["ClientToken"], len(cloud.launched()))), when="after")
    cloud.fault("RunInstances", hook=lambda call: seen.append((call.params["ClientToken"], len(cloud.launched()))))
    launch(ec2, ClientToken="t")
    assert seen == [("t", 0), ("t", 1)]


def test_the_log_says_who_called_what(cloud, ec2):
    launch(ec2, ClientToken="t", MaxCount=2)
    cloud.fault("RunInstances", throttle=True)
    refused(launch, ec2)
    first, second = cloud.named("RunInstances")
    assert (first["service"], first["status"], first["applied"], first["params"]["MaxCount"]) == ("ec2", 200, True, "2")
    assert first["caller"] == cloud.root.arn and first["source"] == "127.0.0.1"
    assert (second["code"], second["applied"]) == ("RequestLimitExceeded", False)


def test_decoys_are_not_ours_and_a_touch_is_seen(cloud, ec2, s3):
    s3.create_bucket(Bucket="bucket")
    cloud.add_decoys()
    cloud.add_decoy_objects("bucket")
    assert list(cloud.left()) == [("bucket", "bucket")] and not cloud.launched()
    assert not [call for call in cloud.calls if call["action"] != "CreateBucket"]
    cloud.check_decoys()
    s3.delete_object(Bucket="bucket", Key="somebody/model.bin")
    with pytest.raises(AssertionError, match="model.bin"):
        cloud.check_decoys()


def test_the_meter_counts_seconds_of_running(cloud, ec2):
    assert meter.billed_seconds([(0, "pending"), (10, "running"), (100, "shutting-down"), (110, "terminated")], 500) == 90
    assert meter.billed_seconds([(0, "running"), (5, "stopped"), (10, "running")], 110) == 160
    made = launch(ec2, MaxCount=2)
    cloud.settle()
    bill = cloud.bill(now=time.time() + 3600)
    assert bill["total"] == pytest.approx(2 * cloud.prices["c5.xlarge"], rel=0.001) and set(bill["instances"]) == set(ids(made))
    assert images.DEFAULT == made[0]["ImageId"]


def test_a_new_cloud_is_empty(cloud):
    assert not cloud.left() and not cloud.calls


def test_a_bucket_of_calls_runs_empty_and_fills_again(cloud, ec2):
    bucket = cloud.fault("DescribeVpcs", times=None, rate=(2, 0))
    ec2.describe_vpcs()
    ec2.describe_vpcs()
    assert refused(ec2.describe_vpcs) == "RequestLimitExceeded"
    bucket.rate = (2, 1000)
    ec2.describe_vpcs()


def test_an_answer_is_cut_off_or_changed(cloud, ec2):
    cloud.fault("DescribeVpcs", cut=50)
    with pytest.raises((ConnectionClosedError, ResponseStreamingError)):
        ec2.describe_vpcs()
    cloud.fault("DescribeVpcs", change=lambda done: Answer(done.status, done.headers, done.body[:-30]))
    with pytest.raises(ResponseParserError):
        ec2.describe_vpcs()


def test_metrics_are_taken(cloud):
    client(cloud, "cloudwatch").put_metric_data(Namespace="n", MetricData=[{"MetricName": "loss", "Value": 1.0}])
    assert [call["status"] for call in cloud.named("PutMetricData")] == [200]


def test_the_cloud_can_be_asked_and_scripted_over_http(cloud, ec2):
    post = urllib.request.Request(f"{cloud.endpoint}/cloud/fault", json.dumps({"action": "DescribeVpcs", "throttle": True}).encode())
    urllib.request.urlopen(post)
    assert refused(ec2.describe_vpcs) == "RequestLimitExceeded"
    launch(ec2)
    kinds = [thing["kind"] for thing in json.load(urllib.request.urlopen(f"{cloud.endpoint}/cloud/left"))]
    assert sorted(kinds) == ["instance", "network-interface", "volume"]
    assert json.load(urllib.request.urlopen(f"{cloud.endpoint}/cloud/calls"))[0]["action"] == "DescribeVpcs"
