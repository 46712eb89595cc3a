"""regatta export: CSV, event files of TensorBoard, MLflow.

With REGATTA_EXPORT_PYTHON (a Python that has TensorBoard) and REGATTA_MLFLOW_URL the real programs read and take what is
exported: `make export-check`."""
import contextlib
import csv
import ctypes
import json
import os
import socket
import struct
import subprocess
import uuid

import pytest

from conftest import wait_for
from mlflow_api import FakeMlflow, Reader

REAL_URL = os.environ.get("REGATTA_MLFLOW_URL")
REAL_PYTHON = os.environ.get("REGATTA_EXPORT_PYTHON")
JOB = """
name = "exported"
count = %d
command = ["sh", "-c", '''%s''']
[params]
lr = 0.1
model = "resnet50"
[metrics]
loss = 'step=(?<step>[0-9]+) loss=(?<value>[0-9.]+)'
speed = 'speed=([0-9.]+)'
"""
THREE = "for i in 1 2 3; do echo step=${i}0 loss=0.$i; echo speed=$i.5; done"
LOSS = [(10, 0.1), (20, 0.2), (30, 0.3)]
SPEED = [(0, 1.5), (1, 2.5), (2, 3.5)]


@pytest.fixture
def fake():
    server = FakeMlflow()
    yield server
    server.close()


@pytest.fixture
def url(fake):
    return REAL_URL or fake.url


def run_job(regatta, script=THREE, count=1):
    return regatta.json("run", regatta.job(JOB % (count, script)))


def pairs(list_of):
    return {one["key"]: one["value"] for one in list_of}


def points(history):
    return [(int(one.get("step", 0)), one["value"]) for one in history]


# ---- CSV ----

def test_csv_has_every_sample(regatta):
    run = run_job(regatta, count=2)["id"]
    assert regatta("export", run, "--to", "csv", "out/csv").err == f"regatta: {run}: 12 samples exported to out/csv\n"
    with open(regatta.cwd / "out" / "csv" / f"{run}.csv", newline="") as f:
        rows = list(csv.DictReader(f))
    assert [(int(row["step"]), float(row["value"])) for row in rows
            if row["node"] == "worker-1" and row["name"] == "loss"] == LOSS
    assert os.listdir(regatta.cwd / "out" / "csv") == [f"{run}.csv"]


# ---- TensorBoard ----

def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    while data:
        length, = struct.unpack("<Q", data[:8])
        assert struct.unpack("<I", data[8:12])[0] == masked(data[:8])
        content = data[12:12 + length]
        assert struct.unpack("<I", data[12 + length:16 + length])[0] == masked(content)
        yield content
        data = data[16 + length:]


def fields(data):
    """Of a message of protocol buffers: number -> value, each field once."""
    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    at, found = 0, {}
    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        else:
            n = {1: 8, 5: 4}.get(kind) or varint()
            value, at = data[at:at + n], at + n
        assert key >> 3 not in found
        found[key >> 3] = value
    assert at == len(data)
    return found


def read_events(path):
    first, *rest = [fields(content) for content in records(path.read_bytes())]
    assert first[3] == b"brain.Event:2" and set(first) == {1, 3}
    tags = {}
    for event in rest:
        value = fields(fields(event[5])[1])
        tags.setdefault(value[1].decode(), []).append((event[2], round(struct.unpack("<f", value[2])[0], 6)))
    return tags


def real_events(directory):
    code = ("import json, sys\n"
            "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
            "e = EventAccumulator(sys.argv[1], size_guidance={'scalars': 0})\n"
            "e.Reload()\n"
            "print(json.dumps({t: [(s.step, round(s.value, 6)) for s in e.Scalars(t)] for t in e.Tags()['scalars']}))\n")
    done = subprocess.run([REAL_PYTHON, "-c", code, directory], capture_output=True, check=True, timeout=120)
    return {tag: [tuple(one) for one in v] for tag, v in json.loads(done.stdout.splitlines()[-1]).items()}


def test_tensorboard_gets_event_files_of_each_node(regatta):
    run = run_job(regatta, count=2)["id"]
    for _ in range(2):  # again: the same files, nothing twice
        regatta("export", run, "--to", "tensorboard", "boards")
        for node in "worker-0", "worker-1":
            directory = regatta.cwd / "boards" / run / node
            assert os.listdir(directory) == ["events.out.tfevents.regatta"]
            tags = real_events(directory) if REAL_PYTHON else read_events(directory / "events.out.tfevents.regatta")
            assert {tag: tags[tag] for tag in ("loss", "speed")} == {"loss": LOSS, "speed": SPEED}


def names_made(directory, action):
    """Of the files that are made in a directory during an action, without those that are renamed."""
    libc, names = ctypes.CDLL(None, use_errno=True), []
    fd = libc.inotify_init1(os.O_CLOEXEC)
    assert libc.inotify_add_watch(fd, os.fsencode(directory), 0x100) >= 0  # IN_CREATE
    action()
    events = os.read(fd, 65536)
    os.close(fd)
    while events:
        n = struct.unpack_from("=iIII", events)[3]
        names.append(events[16:16 + n].rstrip(b"\0").decode())
        events = events[16 + n:]
    return names


def test_what_is_not_complete_is_no_event_file(regatta):
    """TensorBoard takes every file with "tfevents" in its name: also one that a killed export has left."""
    run = run_job(regatta)["id"]
    regatta("export", run, "--to", "tensorboard", "boards")
    made = names_made(regatta.cwd / "boards" / run / "worker-0", lambda: regatta("export", run, "--to", "tensorboard", "boards"))
    assert len(made) == 1 and "tfevents" not in made[0]


# ---- MLflow ----

def test_mlflow_gets_the_run(regatta, url):
    name = f"e-{uuid.uuid4()}"
    run = run_job(regatta, count=2)
    said = regatta("export", run["id"], "--to", "mlflow", url, "--experiment", name).err
    assert said == f"regatta: {run['id']}: 12 samples exported to {url}\n"
    one, = Reader(url).runs(name)
    assert one["info"]["status"] == "FINISHED" and one["info"]["run_name"] == run["id"]
    assert (one["info"]["start_time"], one["info"]["end_time"]) == (run["created_ms"], run["ended_ms"])
    assert pairs(one["data"]["params"]) == {"lr": "0.1", "model": "resnet50"}
    assert pairs(one["data"]["tags"])["regatta.run"] == run["id"]
    assert points(Reader(url).history(one, "worker-1/loss")) == LOSS
    assert points(Reader(url).history(one, "worker-0/speed")) == SPEED
    # Again: nothing twice.
    said = regatta("export", run["id"], "--to", "mlflow", url + "/", "--experiment", name).err
    assert said == f"regatta: {run['id']}: 0 samples exported to {url}/, 12 were there already\n"
    again, = Reader(url).runs(name)
    assert again["info"]["run_id"] == one["info"]["run_id"]
    assert points(Reader(url).history(again, "worker-1/loss")) == LOSS


def test_a_run_that_goes_on_is_completed_later(regatta, url):
    name = f"e-{uuid.uuid4()}"
    run = regatta.submit(regatta.job(JOB % (1, THREE + "\nwhile [ ! -e go ]; do sleep 0.01; done\necho step=40 loss=0.4")))
    wait_for(lambda: regatta.json("metrics", run)["metrics"].get("speed", {}).get("all", {}).get("count") == 3,
             what="the first samples")
    regatta("export", run, "--to", "mlflow", url, "--experiment", name)
    assert Reader(url).runs(name)[0]["info"]["status"] == "RUNNING"
    (regatta.cwd / "go").touch()
    regatta.wait(run)
    regatta("export", run, "--to", "mlflow", url, "--experiment", name)
    one, = Reader(url).runs(name)
    assert one["info"]["status"] == "FINISHED"
    assert points(Reader(url).history(one, "loss")) == LOSS + [(40, 0.4)]


def test_many_samples_go_in_batches_and_an_export_that_fails_is_completed(regatta, fake):
    script = "i=0; while [ $i -lt 2500 ]; do echo step=$i loss=0.$i; i=$((i + 1)); done"
    run = run_job(regatta, script)["id"]
    fake.state.fail["runs/log-batch"] = 2  # the parameters, and a thousand samples
    failed = regatta("export", run, "--to", "mlflow", fake.url, code=8).err
    assert failed == ("regatta: export to mlflow: runs/log-batch: the server answers 500: the database is away\n")
    fake.state.page = 300  # what is there is counted over all pages
    said = regatta("export", run, "--to", "mlflow", f"{fake.url}/proxy/").err
    assert said.endswith(", 1000 were there already\n")
    fake.state.page = 25000
    one, = Reader(fake.url).runs("exported")
    assert [step for step, _ in points(Reader(fake.url).history(one, "loss"))] == list(range(2500))


def test_samples_without_steps_are_counted_for_each_node(regatta, fake):
    job = JOB.replace("[params]", 'sample_every = "0s"\n[params]')  # nothing stands between the nodes
    run = regatta.json("run", regatta.job(job % (2, "echo speed=1.5; echo speed=2.5")))["id"]
    regatta("export", run, "--to", "mlflow", fake.url)
    one, = Reader(fake.url).runs("exported")
    for node in "worker-0", "worker-1":
        assert points(Reader(fake.url).history(one, f"{node}/speed")) == [(0, 1.5), (1, 2.5)]


def test_mlflow_is_told_how_a_run_ended(regatta, url):
    name = f"e-{uuid.uuid4()}"
    failed = json.loads(regatta("run", "--output", "json", regatta.job(JOB % (1, THREE + "; exit 3")), code=1).stdout)["id"]
    killed = regatta.submit(regatta.job(JOB % (1, THREE + "; sleep 1000")))
    wait_for(lambda: regatta.json("metrics", killed)["metrics"].get("loss"), what="samples")
    regatta("kill", killed)
    regatta.wait(killed)
    for run in failed, killed:
        regatta("export", run, "--to", "mlflow", url, "--experiment", name)
    told = {one["info"]["run_name"]: one["info"]["status"] for one in Reader(url).runs(name)}
    assert told == {failed: "FAILED", killed: "KILLED"}


def test_half_an_answer_is_an_error_of_one_line(regatta):
    run = run_job(regatta)["id"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        export = regatta.start("export", run, "--to", "mlflow", f"http://127.0.0.1:{server.getsockname()[1]}")
        server.settimeout(0.1)
        while export.poll() is None:
            with contextlib.suppress(TimeoutError):
                peer, _ = server.accept()
                with peer:
                    peer.recv(65536)
                    peer.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"experiment":')
    err = export.communicate()[1].decode()
    assert export.returncode == 8 and len(err.splitlines()) == 1 and "experiments/get-by-name: " in err, err


def test_mlflow_gets_the_token(regatta, fake):
    run = run_job(regatta)["id"]
    fake.state.token = "secret"
    denied = regatta("export", run, "--to", "mlflow", fake.url, code=4).err
    assert denied == ("regatta: export to mlflow: experiments/get-by-name: the server answers 401: You are not "
                      "authenticated.\n")
    regatta("export", run, "--to", "mlflow", fake.url, env={"MLFLOW_TRACKING_TOKEN": "secret"})


# ---- what cannot be done ----

def test_bad_words_are_refused_in_one_line(regatta, fake):
    run = run_job(regatta)["id"]
    silent = regatta.json("run", "--", "true")["id"]

    def said(*words, code):
        text = regatta("export", *words, code=code).err
        assert text.count("\n") == 1
        return text
    assert "has no metrics: there is nothing to export" in said(silent, "--to", "csv", "out", code=3)
    assert "give --to csv, tensorboard or mlflow" in said(run, "out", code=2)
    assert "needs a directory after the run" in said(run, "--to", "csv", code=2)
    assert "--experiment is for --to mlflow" in said(run, "--to", "csv", "out", "--experiment", "x", code=2)
    said(run, "--to", "mlflow", "not a url", code=2)
    said(run, "--to", "mlflow", "http://127.0.0.1:1", code=8)
    (regatta.cwd / "file").touch()
    assert "file" in said(run, "--to", "tensorboard", "file", code=2)
    assert "no run 'nobody'" in said("nobody", "--to", "csv", "out", code=3)
