"""Results of runs in a bucket: what is there, when it counts as complete, what outages, restarts and refusals do to it."""
import hashlib
import json

import pytest

from .conftest import client, wait_for
from .test_ec2_run import User, launched
from .test_ec2_run import user  # noqa: F401  (a fixture)

JOB = 'name = "kept"\ncommand = ["sh", "-c", "echo hello; echo loss=0.5; echo m > $REGATTA_OUTPUT/model"]\ncount = 2\nmetrics.loss = "loss=([0-9.]+)"\n'


@pytest.fixture
def bucket(s3):
    s3.create_bucket(Bucket="my-results")
    return "my-results"


def objects(s3, bucket):
    return {o["Key"]: s3.get_object(Bucket=bucket, Key=o["Key"])["Body"].read()
            for o in s3.list_objects_v2(Bucket=bucket).get("Contents", [])}


def is_there(s3, bucket, run, prefix="runs/"):
    return wait_for(lambda: f"{prefix}{run}/index.json" in objects(s3, bucket), 60, f"the results of {run}")


def said_of_results(user, run):
    return [e["text"] for e in map(json.loads, user("events", "--output", "json", run).stdout.splitlines()) if e["kind"] == "results"]


def test_a_local_run_puts_its_directory_where_output_s3_says(cloud, user, s3, bucket):
    run = user.submit(JOB, f'output.s3 = "s3://{bucket}/results"\n')
    user.ends(run)
    is_there(s3, bucket, run, "results/")
    there = objects(s3, bucket)
    names = {key.removeprefix(f"results/{run}/") for key in there}
    assert {"job.toml", "plan.json", "summary.json", "events.jsonl", "report.html", "metrics.csv", "record.db", "index.json",
            "logs/worker-0.log", "outputs/worker-1/model"} <= names, names
    assert "secrets.json" not in names and not any(".node/" in n for n in names)
    index = json.loads(there[f"results/{run}/index.json"])
    assert {f["path"] for f in index["files"]} == names - {"index.json"}
    secret = cloud.env()["AWS_SECRET_ACCESS_KEY"].encode()
    assert not any(secret in body for body in there.values())
    wait_for(lambda: said_of_results(user, run), what="the event")
    home = user.directory / "home" / "runs" / run
    assert json.loads((home / "results.json").read_text())["url"] == f"s3://{bucket}/results/{run}/"
    assert not (home / "secrets.json").exists()
    assert not cloud.named("PutBucketLifecycleConfiguration") and not cloud.named("PutLifecycleConfiguration")
    assert all("x-amz-tagging" not in call.get("headers", {}) for call in cloud.named("PutObject"))


def test_an_outage_and_a_restart_only_delay_the_copy(cloud, user, s3, bucket):
    cloud.fault("PutObject", throttle=True, times=None)
    run = user.submit(JOB, f'output.s3 = "s3://{bucket}/"\n')
    user.ends(run)
    wait_for(lambda: cloud.named("PutObject"), what="the first try")
    user("master", "--stop")
    assert (user.directory / "home" / "runs" / run / "secrets.json").exists()
    cloud.script.faults.clear()
    user("ps")
    is_there(s3, bucket, run, "")
    assert not (user.directory / "home" / "runs" / run / "secrets.json").exists()


def test_a_large_output_goes_up_in_parts_and_on_after_a_restart(cloud, user, s3, bucket):
    """More than two parts (16 MiB each); the one that was sent before the restart is not sent again."""
    cloud.fault("UploadPart", nth=2, throttle=True, times=None)
    run = user.submit('name = "large"\ncommand = ["sh", "-c", "head -c 40000000 /dev/urandom >$REGATTA_OUTPUT/model; sha256sum $REGATTA_OUTPUT/model"]\n',
                      f'output.s3 = "s3://{bucket}/"\n')
    user.ends(run)
    wait_for(lambda: len(cloud.named("UploadPart")) >= 2, 60, "the second part")
    user("master", "--stop")
    cloud.script.faults.clear()
    user("ps")
    is_there(s3, bucket, run, "")
    body = s3.get_object(Bucket=bucket, Key=f"{run}/outputs/worker-0/model")["Body"].read()
    assert hashlib.sha256(body).hexdigest() in user("logs", run).stdout and len(body) == 40_000_000
    assert len([call for call in cloud.named("UploadPart") if call["applied"]]) == 3
    assert len(cloud.named("CreateMultipartUpload")) == 1


def test_a_bucket_that_does_not_exist_is_told_before_anything_starts(cloud, user):
    (user.directory / "job.toml").write_text(JOB + 'output.s3 = "s3://nobody-has-this/"\n')
    said = user("run", "-d", "job.toml", code=3)
    assert len(said.stderr.strip().splitlines()) == 1
    assert "output.s3: bucket 'nobody-has-this' of account 123456789012: NotFound" in said.stderr
    assert user("ps", "--output", "json").stdout.count('"id"') == 0


def test_the_bucket_of_a_suite_is_looked_at_once(cloud, user, bucket):
    (user.directory / "job.toml").write_text(f'command = ["true"]\noutput.s3 = "s3://{bucket}/"\n')
    experiments = "".join(f'[[experiments]]\nname = "{name}"\nset = {{ "params.n" = "{name}" }}\n' for name in "abc")
    (user.directory / "suite.toml").write_text('name = "many"\nsuite.job = "job.toml"\n' + experiments)
    user("suite", "run", "-d", "suite.toml")
    assert len(cloud.named("HeadBucket")) == 1


def test_a_bucket_that_is_deleted_meanwhile_is_told_in_the_events(cloud, user, s3, bucket):
    run = user.submit(JOB.replace("echo hello", "sleep 2; echo hello"), f'output.s3 = "s3://{bucket}/"\n')
    s3.delete_bucket(Bucket=bucket)
    assert user.ends(run)["verdict"] == "succeeded"
    said = wait_for(lambda: said_of_results(user, run), what="the event")
    assert "NoSuchBucket" in said[0] and "request id" in said[0]


def test_without_credentials_nothing_is_started(cloud, user):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        user.env.pop(name, None)
    (user.directory / "job.toml").write_text(JOB + 'output.s3 = "s3://b-1/"\n')
    said = user("run", "-d", "job.toml", code=4)
    assert len(said.stderr.strip().splitlines()) == 1 and "output.s3" in said.stderr and "credentials" in said.stderr


@pytest.mark.parametrize("wrong, code", [({"AWS_SECRET_ACCESS_KEY": "wrong"}, "SignatureDoesNotMatch"),
                                         ({"AWS_SESSION_TOKEN": "wrong"}, "InvalidClientTokenId")])
def test_credentials_that_nobody_takes_are_told_before_anything_starts(user, bucket, wrong, code):
    user.env.update(wrong)
    (user.directory / "job.toml").write_text(JOB + f'output.s3 = "s3://{bucket}/"\n')
    said = user("run", "-d", "job.toml", code=4)
    assert len(said.stderr.strip().splitlines()) == 1 and said.stderr.startswith(f"regatta: output.s3: {code}"), said.stderr
    assert user("ps", "--output", "json").stdout.count('"id"') == 0


def test_a_run_on_ec2_leaves_its_results_in_the_bucket_of_the_install(cloud, user, s3):
    run = user.submit(more='[output]\nretention = "3d"\n')
    launched(cloud)
    user("kill", run)
    user.ends(run)
    bucket = s3.list_buckets()["Buckets"][0]["Name"]
    is_there(s3, bucket, run)
    tags = s3.get_object_tagging(Bucket=bucket, Key=f"runs/{run}/summary.json")["TagSet"]
    assert tags == [{"Key": "regatta:retention", "Value": "3d"}]
    rules = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    rule = next(r for r in rules if r["ID"] == "expire-3d")
    assert rule["Filter"] == {"Tag": {"Key": "regatta:retention", "Value": "3d"}} and rule["Expiration"]["Days"] == 3
    run = user.submit()
    launched(cloud, 6)
    user("kill", run)
    user.ends(run)
    is_there(s3, bucket, run)
    assert {"expire-3d", "expire-30d"} <= {r["ID"] for r in s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]}


@pytest.fixture
def away(tmp_path, cloud):
    """The same person at other machines: the same account, and no run."""
    homes = []

    def another(name="elsewhere", caller=None):
        (tmp_path / name).mkdir()
        homes.append(User(tmp_path / name, cloud, caller))
        return homes[-1]
    yield another
    for home in homes:
        home.close()


@pytest.fixture
def kept(cloud, user, s3):
    """A run that has ended and left its results in the bucket of the install."""
    bucket = f"regatta-{cloud.root.account}-{cloud.region}"
    s3.create_bucket(Bucket=bucket)
    run = user.submit(JOB, f'output.s3 = "s3://{bucket}/runs/"\n')
    user.ends(run)
    is_there(s3, bucket, run)
    return run, f"s3://{bucket}/runs/"


def test_results_are_read_from_another_home_without_being_told(cloud, user, away, kept):
    run, url = kept
    away = away()
    shown = away("status", run, "--output", "json")
    assert shown.stderr.strip() == f"regatta: {run}: taken from {url}{run}/"
    mine = json.loads(user("status", run, "--output", "json").stdout)
    theirs = json.loads(shown.stdout)
    assert {k: theirs[k] for k in ("id", "verdict", "exit_code")} == {k: mine[k] for k in ("id", "verdict", "exit_code")}
    assert away("logs", run).stdout == user("logs", run).stdout
    assert away("logs", run).stderr == ""
    assert "loss" in away("metrics", run).stdout
    away("report", run)
    home = away.directory / "home" / "runs" / run
    assert (home / "outputs" / "worker-1" / "model").read_text() == "m\n"
    assert not (home / "secrets.json").exists()
    # The copy is not sent back.
    before = len(cloud.named("PutObject"))
    away("master", "--stop")
    away("ps")
    assert len(cloud.named("PutObject")) == before


def test_a_run_is_found_by_the_beginning_of_its_id_and_compared(user, s3, away, kept):
    run, url = kept
    again = user.submit(JOB, f'output.s3 = "{url}"\n')
    user.ends(again)
    is_there(s3, url.split("/")[2], again)
    there = away()
    said = there("status", "kept-", code=3).stderr
    assert f"2 runs in {url} begin with 'kept-'" in said
    there("compare", run, again)
    assert run in there("ps", "-a").stdout and again in there("ps", "-a").stdout
    assert away("third")("status", run[:-1]).stderr.startswith(f"regatta: {run}: taken from")


def test_a_run_that_is_nowhere_is_said_with_where_it_was_looked_for(cloud, user):
    said = user("status", "never-was", code=3).stderr.strip()
    assert said == ("regatta: no run 'never-was': 'regatta ps --all' lists them; it is not in "
                    f"s3://regatta-{cloud.root.account}-{cloud.region}/runs/ either")


def test_without_a_region_only_the_own_master_is_asked(cloud, user):
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        user.env.pop(name, None)
    before = len(cloud.calls)
    assert user("status", "never-was", code=3).stderr.strip() == "regatta: no run 'never-was': 'regatta ps --all' lists them"
    assert len(cloud.calls) == before


def test_a_copy_that_was_changed_is_refused(s3, away, kept):
    run, url = kept
    s3.put_object(Bucket=url.split("/")[2], Key=f"runs/{run}/job.toml", Body=b"something else")
    there = away()
    said = there("status", run, code=2).stderr.strip()
    assert len(said.splitlines()) == 1 and "'job.toml' is not what index.json says" in said
    assert there("ps", "-a").stdout.strip() == ""
