"""Ports that frameworks open by themselves: two runs of one machine do not spoil each other."""
import socket

from conftest import wait_for

JOB = """
name = "{name}"
strategy = "{strategy}"
command = ["sh", "-c", "echo up; exec sleep 120"]
env = {{ MASTER_PORT = "{port}", JAX_COORDINATOR_PORT = "{port}" }}
"""


def free_port():
    with socket.create_server(("", 0)) as s:
        return s.getsockname()[1]


def job(regatta, name, port, strategy="torch"):
    return regatta.job(JOB.format(name=name, port=port, strategy=strategy), name=f"{name}.toml")


def test_a_second_run_finds_the_port_of_the_first_taken(regatta):
    port = free_port()
    first = regatta.submit(job(regatta, "first", port))
    wait_for(lambda: regatta.status(first)["state"] == "running", what="the first run")
    second = regatta("run", job(regatta, "second", port), code=2)
    assert f"worker-0: port {port} on this machine is taken by worker-0 of run '{first}': choose another one with env.MASTER_PORT" in second.err + second.out
    assert not [run["id"] for run in regatta.json("ps", "-a") if run["id"] != first and regatta.left(run["id"])]
    regatta("kill", first)
    regatta.wait(first)
    third = regatta.submit(job(regatta, "third", port))
    wait_for(lambda: regatta.status(third)["state"] == "running", what="the third run")
    regatta("kill", third)


def test_a_program_that_is_no_job_is_named_too(regatta):
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
        done = regatta("run", job(regatta, "jax", port, "jax"), code=2)
    assert f"port {port} on this machine is taken by process " in done.err + done.out
    assert "choose another one with env.JAX_COORDINATOR_PORT" in done.err + done.out
