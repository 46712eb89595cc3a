"""Manifests of Kubernetes as job files, and as output; no cluster is needed for these."""
import yaml

PADDLE = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: paddle-cluster-job
spec:
  parallelism: 3
  completions: 3
  template:
    spec:
      containers:
      - name: trainer
        image: drinkcode/paddle:k8s-job
        command: [sh, -c, "echo id=$PADDLE_INIT_TRAINER_ID of $CONF_PADDLE_GRADIENT_NUM"]
        env:
        - &three
          name: CONF_PADDLE_GRADIENT_NUM
          value: "3"
      restartPolicy: Never
"""


def test_a_job_of_paddle_runs_here_when_asked_to(regatta):
    job = regatta.job(PADDLE, name="job.yaml")
    regatta("run", job, "--engine", "local")
    run = regatta.json("ps", "-a")[0]
    assert run["verdict"] == "succeeded" and run["name"] == "paddle-cluster-job"
    for i in range(3):
        assert regatta("logs", run["id"], f"node-{i}").out == f"id={i} of 3\n"


def test_a_converted_manifest_is_the_same_job(regatta):
    job = regatta.job(PADDLE, name="job.yaml")
    native = regatta.job(regatta("convert", job).out)
    assert regatta("convert", native).out == regatta("convert", job).out
    assert regatta("manifests", native).out == regatta("manifests", job).out


def test_a_mistake_in_a_manifest_is_shown_at_its_line(regatta):
    job = regatta.job(PADDLE.replace("completions: 3", "completions: three"), name="job.yaml")
    done = regatta("run", job, code=2)
    assert "job.yaml:7:16: roles.node.count: expected a whole number, got the string \"three\"" in done.err


def test_manifests_need_no_cluster_and_show_no_secret(regatta):
    job = regatta.job('name = "ctr"\nstrategy = "torch"\ncount = 2\ncommand = "train"\nimage = "i"\nenv = { HUB_TOKEN = "hush" }\n')
    done = regatta("manifests", job, "--set", "kubernetes.namespace=team")
    service, work = yaml.safe_load_all(done.out)
    assert (service["kind"], work["kind"], work["metadata"]["namespace"]) == ("Service", "Job", "team")
    env = {e["name"]: e for e in work["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert env["MASTER_ADDR"]["value"] == "ctr-worker-0.ctr" and "hush" not in done.out
    assert env["HUB_TOKEN"]["valueFrom"]["secretKeyRef"] == {"name": "ctr-secrets", "key": "HUB_TOKEN"}
    alone, = yaml.safe_load_all(regatta("manifests", job, "--set", "kubernetes.as=pytorchjob").out)
    assert list(alone["spec"]["pytorchReplicaSpecs"]) == ["Master", "Worker"]
