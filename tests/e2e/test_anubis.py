"""A descriptor of Anubis runs as it is."""
import hashlib

DESCRIPTOR = """\
spec_version = "0.1.0"
[info]
task_name = "Example"
description = "reads a file"
[hardware]
instance_type = "t3.small"
strategy = "single_node"
[env.vars]
GREETING = "hello"
[ml]
benchmark_code = "cat words.txt; echo $GREETING accuracy="
args = "0.75"
[[data.sources]]
src = "words.txt"
path = "words.txt"
md5 = "%s"
[[output.metrics]]
name = "accuracy"
units = "ratio"
pattern = "accuracy= ([0-9.]+)"
"""


def descriptor(regatta, md5=hashlib.md5(b"some words\n").hexdigest()):
    job = regatta.job(DESCRIPTOR % md5)
    job.parent.joinpath("words.txt").write_text("some words\n")
    return job


def test_a_descriptor_runs_and_its_metric_is_read(regatta):
    done = regatta("run", descriptor(regatta), "--output", "json")
    run = regatta.json("ps", "-a")[0]
    assert run["name"] == "example" and run["verdict"] == "succeeded", done.out
    assert "some words\nhello accuracy= 0.75\n" == regatta("logs", run["id"]).out
    assert regatta.json("metrics", run["id"])["metrics"]["accuracy"]["all"]["last"] == 0.75


def test_data_with_another_md5_is_refused(regatta):
    done = regatta("run", descriptor(regatta, "0" * 32), code=None)
    assert done.returncode == 2
    assert "wrong content: its md5 is" in done.out + done.err


def test_problems_name_the_line_of_the_descriptor(regatta):
    job = descriptor(regatta)
    job.write_text(job.read_text().replace("single_node", "mxnet_parameter_server"))
    done = regatta("run", job, code=2)
    assert "job.toml:7:" in done.err and "hardware.strategy" in done.err


def test_convert_prints_a_native_file_that_means_the_same(regatta):
    job = descriptor(regatta)
    native = regatta("convert", job).out
    job.write_text(native)
    assert regatta("convert", job).out == native
    assert regatta.json("plan", job)["roles"][0]["command"] == ["sh", "-c",
                                                                "cat words.txt; echo $GREETING accuracy= 0.75"]


def test_horovod_runs_on_several_instances(regatta):
    job = regatta.job("""
[info]
[hardware]
strategy = "horovod"
[hardware.distributed]
processes_per_instance = "2"
[ml]
benchmark_code = "echo rank $HOROVOD_RANK of $HOROVOD_SIZE"
""")
    got = regatta.json("run", job)
    assert got["verdict"] == "succeeded", got["cause"]
    assert regatta.log(got["id"], "worker-1.p1") == b"rank 3 of 4\n"


def test_inference_measures_a_server_that_answers(regatta):
    (regatta.cwd / "answer").write_text("42\n")
    job = regatta.job("""
[info]
[hardware]
strategy = "inference"
[ml]
benchmark_code = "curl -s http://$INFERENCE_SERVER_HOST:$INFERENCE_SERVER_PORT/answer"
[server.env]
ports = [8089]
start_command = "python3 -m http.server"
start_command_args = "8089"
""")
    got = regatta.json("run", job)
    assert got["verdict"] == "succeeded", got["cause"]
    assert regatta.log(got["id"], "client-0") == b"42\n"
