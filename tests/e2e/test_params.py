"""Parameters of a job: in its texts, beside its name, between runs."""
JOB = '''name = "par"
command = ["sh", "-c", "echo ${params.model} ${params.lr} $BATCH '$${params.lr}' ${NOBODY:-shell}; echo loss=0.${params.n}"]
env = { BATCH = "b${params.n}" }
[params]
lr = 1e-3
model = "net"
n = 5
[metrics]
loss = 'loss=(?<value>[0-9.]+)'
'''


def test_parameters_are_put_in_shown_and_compared(regatta):
    job = regatta.job(JOB)
    assert regatta("run", "-f", job).out == "worker-0 | net 1e-3 b5 ${params.lr} shell\nworker-0 | loss=0.5\n"
    regatta("run", "--set", "params.lr=0.2", "--set", "params.n=7", job)
    new, old = regatta.json("ps", "-a")
    assert (old["params"], new["params"]) == ({"lr": 0.001, "model": "net", "n": 5}, {"lr": 0.2, "model": "net", "n": 7})
    assert "lr=0.2 model=net n=7" in regatta("ps", "-a", "--params").out and "PARAMS" not in regatta("ps", "-a").out
    assert "params  lr=0.2, model=net, n=7\n" in regatta("status", new["id"]).out
    assert "1e-3" in (regatta.home / "runs" / old["id"] / "report.html").read_text()

    told = regatta.json("compare", old["id"], new["id"])
    assert told["params"] == [{"name": "lr", "values": [[0.001], [0.2]]}, {"name": "n", "values": [[5], [7]]}]
    assert "params    lr: 1e-3 -> 0.2\n          n: 5 -> 7\n" in regatta("compare", old["id"], new["id"]).out
    assert regatta.json("compare", old["id"], old["id"])["params"] == []

    again = regatta("rerun", new["id"], "-f", "--set", "params.model=other")
    assert again.out.startswith("worker-0 | other 0.2 b7 ") and 'params.model: "net" -> "other"' in again.err


def test_a_wrong_parameter_is_named(regatta):
    job = regatta.job(JOB)
    assert regatta("run", "--set", "params.rl=1", job, code=2).err == "--set params.rl: there is no parameter 'rl': did you mean 'lr'?\n"
    assert regatta("run", "--", "echo", "${params.x}", code=2).err == (
        "command line: ${params.x}: there is no such parameter: write it into [params], or $${params.x} for the text itself\n")
    assert regatta("run", "-f", "--set", "params.x=4", "--", "echo", "${params.x}").out == "worker-0 | 4\n"
    several = regatta("run", "-f", "--set", "params.x=4", "--set", "params.y=b", "--", "echo", "${params.x}", "${params.y}")
    assert several.out == "worker-0 | 4 b\n"


def test_a_suite_sweeps_parameters(regatta):
    regatta.job(JOB)
    (regatta.cwd / "s.toml").write_text('name = "sw"\n[suite]\njob = "job.toml"\n[matrix]\n"params.lr" = [0.1, 0.2]\n')
    regatta("suite", "run", "s.toml")
    runs = regatta.json("ps", "-a")
    assert sorted(r["params"]["lr"] for r in runs) == [0.1, 0.2] and all(r["verdict"] == "succeeded" for r in runs)
    (regatta.cwd / "s.toml").write_text('name = "sw"\n[suite]\njob = "job.toml"\n[matrix]\n"params.rl" = [0.1, 0.2]\n')
    assert "there is no parameter 'rl': did you mean 'lr'?" in regatta("suite", "run", "s.toml", code=2).err
    # A job without parameters gets those of the matrix.
    regatta.job('name = "none"\ncommand = ["true"]\n', "none.toml")
    (regatta.cwd / "s.toml").write_text('name = "sw"\n[suite]\njob = "none.toml"\n[matrix]\n"params.a" = [1]\n"params.b" = [2, 3]\n')
    regatta("suite", "run", "s.toml")
    assert sorted(r["params"]["b"] for r in regatta.json("ps", "-a") if r["name"] == "none") == [2, 3]
