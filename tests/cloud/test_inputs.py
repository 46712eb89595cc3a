"""Source and data in a bucket: every node gets the bytes that were there when the job was submitted, its own part of them, or a clear
line that says why not."""
import gzip
import hashlib
import io
import tarfile

import pytest

from .conftest import wait_for
from .test_ec2_run import User, user  # noqa: F401  (a fixture)
from .test_policy import document

LOOK = "find . -type f -print0 | sort -z | xargs -0 sha256sum"
BUCKET = "my-inputs"


@pytest.fixture
def objects(s3):
    s3.create_bucket(Bucket=BUCKET)

    def put(**named):
        for key, body in named.items():
            s3.put_object(Bucket=BUCKET, Key=key, Body=body)

    return lambda named: put(**named)


def archive(**files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, body in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            tar.addfile(entry, io.BytesIO(body))
    return gzip.compress(out.getvalue())


def job(more, command=LOOK, count=1):
    return f'name = "reads"\ncommand = ["sh", "-c", "{command}"]\ncount = {count}\n{more}'


def data(src, more=""):
    return f'[[data]]\nsrc = "s3://{BUCKET}/{src}"\n{more}'


def seen(user, run, node="worker-0"):
    """What the node printed: {file: digest}."""
    lines = user("logs", run, node).stdout.splitlines()
    return {line[66:].removeprefix("./"): line[:64] for line in lines}


def digests(**files):
    return {name: hashlib.sha256(body).hexdigest() for name, body in files.items()}


def cause(user, run):
    ended = user.ends(run)
    assert ended["verdict"] == "failed", ended
    return ended["cause"]


def test_an_object_a_prefix_and_an_archive_come_to_the_nodes(cloud, user, objects):
    objects({"one.bin": b"1" * 300_000, "days/a/1.csv": b"a", "days/a/2 +%é.csv": b"b", "days/": b"", "code/x.tar.gz": archive(**{"main.py": b"hello"})})
    run = user.submit(job(data("one.bin", f'sha256 = "{hashlib.sha256(b"1" * 300_000).hexdigest()}"\n') + data("days", 'path = "d"\n')
                          + data("code/x.tar.gz", "unpack = true\n"), count=2))
    assert user.ends(run)["verdict"] == "succeeded"
    for node in ("worker-0", "worker-1"):
        assert user("logs", run, node).stdout.count("\n") == 4
        got = seen(user, run, node)
        assert got["one.bin"] == digests(x=b"1" * 300_000)["x"] and got["x/main.py"] == digests(x=b"hello")["x"]
        assert "d/a/1.csv" in got
    # Nodes get URLs, and no key of the caller.
    secret = cloud.env()["AWS_SECRET_ACCESS_KEY"]
    assert not any(secret in p.read_text(errors="ignore") for p in (user.directory / "home" / "runs" / run).rglob("*.json") if p.name != "secrets.json")


def test_each_node_gets_its_part_of_the_objects(user, objects):
    objects({f"parts/p{i}": bytes([i]) for i in range(5)})
    run = user.submit(job(data("parts/", "shard = true\n"), count=2))
    assert user.ends(run)["verdict"] == "succeeded"
    assert set(seen(user, run, "worker-0")) == {"parts/p0", "parts/p2", "parts/p4"}
    assert set(seen(user, run, "worker-1")) == {"parts/p1", "parts/p3"}


@pytest.mark.parametrize("source, files", [("src/", {"main.py", "lib/x"}), ("src.tgz", {"in/it"}), ("src/main.py", {"main.py"})])
def test_the_source_may_be_in_a_bucket(user, objects, source, files):
    objects({"src/main.py": b"1", "src/lib/x": b"2", "src.tgz": archive(**{"in/it": b"3"})})
    run = user.submit(f'source = "s3://{BUCKET}/{source}"\n' + job(""))
    assert user.ends(run)["verdict"] == "succeeded"
    assert set(seen(user, run)) == files


def is_download(call):
    return call.method == "GET"


def test_what_is_changed_after_the_submission_is_refused(cloud, user, objects):
    objects({"x": b"first"})
    cloud.fault("GetObject", where=is_download, hook=lambda call: objects({"x": b"other"}))
    run = user.submit(job(data("x")))
    assert f"data 'x': s3://{BUCKET}/x: " in cause(user, run) and "changed since the job was submitted" in cause(user, run)


def test_in_a_bucket_with_versions_it_is_that_of_the_submission(cloud, user, s3):
    s3.create_bucket(Bucket="kept")
    s3.put_bucket_versioning(Bucket="kept", VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket="kept", Key="x", Body=b"first")
    cloud.fault("GetObject", where=is_download, hook=lambda call: s3.put_object(Bucket="kept", Key="x", Body=b"other"))
    run = user.submit(job('[[data]]\nsrc = "s3://kept/x"\n'))
    assert user.ends(run)["verdict"] == "succeeded"
    assert seen(user, run) == digests(x=b"first")


@pytest.fixture
def kept(s3):
    """A bucket that keeps versions, in which `days/gone` was deleted; sets what is below days/ to this."""
    s3.create_bucket(Bucket="kept")
    s3.put_object(Bucket="kept", Key="days/old", Body=b"from before versions")
    s3.put_bucket_versioning(Bucket="kept", VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket="kept", Key="days/gone", Body=b"x")
    s3.delete_object(Bucket="kept", Key="days/gone")

    def put(text):
        for i in range(3):
            s3.put_object(Bucket="kept", Key=f"days/{i}", Body=text + b"%d" % i)

    put(b"zeroth")
    put(b"first")
    return put


PREFIX = '[[data]]\nsrc = "s3://kept/days/"\npath = "d"\n'
FIRST = digests(**{"d/0": b"first0", "d/1": b"first1", "d/2": b"first2", "d/old": b"from before versions"})


def test_below_a_prefix_each_object_is_the_version_of_the_submission(cloud, user, s3, kept):
    def change(_):
        kept(b"other")
        s3.delete_object(Bucket="kept", Key="days/2")
        s3.put_object(Bucket="kept", Key="days/new", Body=b"new")

    cloud.fault("GetObject", where=is_download, hook=change)
    run = user.submit(job(PREFIX))
    assert user.ends(run)["verdict"] == "succeeded"
    assert seen(user, run) == FIRST


@pytest.mark.parametrize("actions", [["s3:GetObject", "s3:ListBucket"], ["s3:GetObject", "s3:ListBucket", "s3:ListBucketVersions"]])
def test_who_may_not_read_versions_below_a_prefix_reads_the_newest(cloud, tmp_path, kept, actions):
    user = User(tmp_path, cloud, cloud.user("limited", document({"Action": actions})))
    try:
        run = user.submit(job(PREFIX))
        assert user.ends(run)["verdict"] == "succeeded"
        assert seen(user, run) == FIRST
        cloud.fault("GetObject", where=is_download, hook=lambda call: kept(b"other"))
        run = user.submit(job(PREFIX))
        assert "changed since the job was submitted" in cause(user, run)
    finally:
        user.close()


def test_who_may_not_read_versions_reads_the_newest(cloud, tmp_path, s3):
    s3.create_bucket(Bucket="kept")
    s3.put_bucket_versioning(Bucket="kept", VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket="kept", Key="x", Body=b"first")
    user = User(tmp_path, cloud, cloud.user("limited", document({"Action": ["s3:GetObject", "s3:ListBucket"]})))
    try:
        run = user.submit(job('[[data]]\nsrc = "s3://kept/x"\n'))
        assert user.ends(run)["verdict"] == "succeeded"
        assert seen(user, run) == digests(x=b"first")
        assert [call["code"] for call in cloud.named("HeadObject")] == [None, "403"] and cloud.named("GetObject")[0]["code"] is None
    finally:
        user.close()


def test_a_download_goes_on_after_a_cut_and_a_url_that_is_refused_is_signed_again(cloud, user, objects):
    body = bytes(range(256)) * 8192
    objects({"big": body})
    cloud.fault("GetObject", where=is_download, cut=1_000_000, when="after")
    cloud.fault("GetObject", where=is_download, nth=2, error="AccessDenied", status=403, message="Request has expired")
    run = user.submit(job(data("big")))
    assert user.ends(run)["verdict"] == "succeeded"
    assert seen(user, run) == digests(big=body)
    assert [call["code"] for call in cloud.named("GetObject")] == [None, "AccessDenied", None]


def test_an_object_that_is_denied_ends_the_run_with_its_name(cloud, user, objects):
    objects({"x": b"1"})
    cloud.fault("GetObject", where=is_download, denied=True, times=None)
    run = user.submit(job(data("x")))
    said = cause(user, run)
    assert f"s3://{BUCKET}/x: 403 AccessDenied" in said and user.status(run)["exit_code"] == 4


def test_a_wrong_digest_is_refused(user, objects):
    objects({"x": b"bytes"})
    for key, digits in (("sha256", 64), ("md5", 32)):
        run = user.submit(job(data("x", f'{key} = "{"0" * digits}"\n')))
        assert "wrong content" in cause(user, run) and "data 'x'" in cause(user, run)


@pytest.mark.parametrize("src, code, says", [
    ("s3://my-inputs/none", 3, "there is no such object"),
    ("s3://nobody-has-this/x", 3, "NoSuchBucket"),
])
def test_what_is_not_there_is_said_before_anything_starts(user, objects, src, code, says):
    (user.directory / "job.toml").write_text(job(f'[[data]]\nsrc = "{src}"\n'))
    said = user("run", "-d", "job.toml", code=code)
    assert len(said.stderr.strip().splitlines()) == 1 and src in said.stderr and says in said.stderr
