"""Report and comparison, from the outside: the files, the API, and the figures beside SciPy's."""
import csv
import html.parser
import json
import random

import pytest
from scipy.stats import mannwhitneyu

from conftest import wait_for
from service import Service

# Prints the numbers that it is given, as metric lines.
PRINT = """import json, sys
for line in json.loads(sys.argv[1]):
    print("**metrics_data: " + ",".join(f"{k}={v!r}" for k, v in line.items()), flush=True)
"""


def run_of(regatta, name, lines, code=0, nodes=1):
    """A run that prints these metric lines; its id."""
    script = regatta.script(PRINT, "print.py")
    run = regatta.submit("--name", name, "-n", nodes, "--", "python3", script, json.dumps(lines))
    assert regatta.wait(run)["exit_code"] == code
    return run


def group(regatta, name, values, metric="speed"):
    return [run_of(regatta, name, [{metric: v}]) for v in values]


def compare(regatta, *args, code=0):
    return regatta.json("compare", *args, code=code)


def metric(answer, name):
    return next(m for m in answer["metrics"] if m["name"] == name)


class Page(html.parser.HTMLParser):
    """What is in a page: its tags, and whatever a browser could fetch or run."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.bad, self.text = set(), [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            if name.startswith("on") or name in ("src", "href", "srcset", "xlink:href", "action", "style", "data"):
                self.bad.append((tag, name, value))

    def handle_data(self, data):
        self.text += data


def files_of(regatta, run):
    return regatta.home / "runs" / run


def wait_report(regatta, run):
    wait_for(lambda: (files_of(regatta, run) / "report.html").exists(), 20, "report.html")
    wait_for(lambda: (files_of(regatta, run) / "metrics.csv").exists(), 20, "metrics.csv")


def test_the_end_of_a_run_with_metrics_leaves_its_report(regatta):
    run = run_of(regatta, "train", [{"loss": 1 / (i + 1), "speed": 100 + i} for i in range(30)], nodes=2)
    wait_report(regatta, run)
    page = Page((files_of(regatta, run) / "report.html").read_text())
    assert "svg" in page.tags and "script" not in page.tags and not page.bad
    for word in (run, "succeeded", "loss", "speed", "worker-0", "worker-1", "accepted", "print.py"):
        assert word in page.text, word
    with open(files_of(regatta, run) / "metrics.csv", newline="") as f:
        rows = list(csv.DictReader(f))
    assert len(rows) == 120 and list(rows[0]) == ["time", "node", "role", "rank", "name", "step", "value"]
    mine = [float(r["value"]) for r in rows if r["node"] == "worker-1" and r["name"] == "loss"]
    assert mine == [1 / (i + 1) for i in range(30)]
    assert json.loads((files_of(regatta, run) / "summary.json").read_text())["verdict"] == "succeeded"


def test_a_run_without_samples_has_a_report_too(regatta, tmp_path):
    regatta("run", "--name", "plain", "--", "true")
    run = regatta.json("ps", "--all")[0]["id"]
    wait_for((files_of(regatta, run) / "report.html").exists, 20, "the report")
    assert "The run gave no metrics." in (files_of(regatta, run) / "report.html").read_text()
    out = regatta("report", run).out.split()
    assert out == [str(files_of(regatta, run) / n) for n in ("report.html", "metrics.csv", "summary.json")]
    assert "The run gave no metrics." in (files_of(regatta, run) / "report.html").read_text()
    assert (files_of(regatta, run) / "metrics.csv").read_bytes() == b"time,node,role,rank,name,step,value\r\n"
    regatta("report", "plain", "-o", tmp_path / "a" / "b")
    for name in ("report.html", "metrics.csv", "summary.json"):
        assert (tmp_path / "a" / "b" / name).stat().st_size > 20
    assert sorted(p.name for p in (tmp_path / "a" / "b").iterdir()) == ["metrics.csv", "report.html", "summary.json"]
    assert not [p for p in files_of(regatta, run).iterdir() if p.name.startswith(".")]


def test_every_one_of_many_short_runs_has_a_report(regatta):
    regatta("run", "--repeat", "40", "--parallel", "8", "--", "true")
    runs = [r["id"] for r in regatta.json("ps", "--all")]
    assert len(runs) == 40
    wait_for(lambda: all((files_of(regatta, r) / "report.html").exists() for r in runs), 20, "all reports")
    regatta("master", "--stop")
    # What a master could not make, the next one does.
    (files_of(regatta, runs[3]) / "report.html").unlink()
    regatta("ps")
    wait_for((files_of(regatta, runs[3]) / "report.html").exists, 20, "the missing report")


def test_a_failed_run_says_why(regatta):
    script = regatta.script("import sys\nprint('**metrics_data: loss=1')\nprint('<b>boom</b>', file=sys.stderr)\n"
                            "sys.exit(3)\n")
    regatta("run", "--name", "bad", "--", "python3", script, code=1)
    run = regatta.json("ps", "--all")[0]["id"]
    regatta("report", run)
    text = (files_of(regatta, run) / "report.html").read_text()
    page = Page(text)
    assert "<b>boom</b>" not in text and "<b>boom</b>" in page.text
    assert "exit code 3" in page.text and "Cause:" in page.text


def test_hostile_names_run_nothing(regatta):
    script = regatta.script("print('**metrics_data: <img/src=x/onerror=alert(1)>=1,=cmd|calc=2,loss=3', flush=True)\n"
                            "print('x\\x1b[31m</pre><script>alert(1)</script>')\nraise SystemExit(1)\n")
    regatta("run", "--name", "evil", "--", "python3", script, "<script>alert(2)</script>", code=1)
    run = regatta.json("ps", "--all")[0]["id"]
    regatta("report", run)
    text = (files_of(regatta, run) / "report.html").read_text()
    page = Page(text)
    assert "script" not in page.tags and "img" not in page.tags and not page.bad
    assert "<script>alert(2)</script>" in page.text  # in the job file, as text
    assert "default-src 'none'" in text
    with open(files_of(regatta, run) / "metrics.csv", newline="") as f:
        for row in csv.reader(f):
            assert not any(cell[:1] in tuple("=+@\t\r") for cell in row), row


def test_the_api_serves_the_files(regatta):
    run = run_of(regatta, "train", [{"loss": 1.5}] * 3)
    service = Service(regatta)
    report = service.get(f"/api/v1/runs/{run}/report")
    assert (report.status, report.type) == (200, "text/html") and report.body.startswith(b"<!doctype html>")
    policies = report.headers.get_all("content-security-policy")
    assert len(policies) == 1 and "default-src 'none'; style-src 'unsafe-inline'" in policies[0]
    table = service.get(f"/api/v1/runs/{run}/metrics.csv")
    assert table.type == "text/csv" and table.body.count(b"\r\n") == 4
    assert service.get(f"/api/v1/compare?run={run}&run={run}").json["runs"] == [run, run]
    assert service.get("/api/v1/runs/nobody/report").status == 404
    for bad in ("run=" + run, f"run={run}&run={run}&use=mode", f"run={run}&run={run}&threshold=x",
                f"run={run}&run={run}&samples=2"):
        assert service.get(f"/api/v1/compare?{bad}").status == 400, bad


def test_the_report_of_a_run_that_goes_on_is_not_kept_as_its_last(regatta):
    script = regatta.script("import time\nprint('**metrics_data: loss=1', flush=True)\ntime.sleep(600)\n")
    run = regatta.submit("--name", "long", "--", "python3", script)
    regatta.wait(run, state="running")
    wait_for(lambda: regatta.status(run)["metrics"], 20, "the first sample")
    assert Service(regatta).get(f"/api/v1/runs/{run}/report").status == 200
    assert not (files_of(regatta, run) / "report.html").exists()
    regatta("report", run)
    assert "so far" in (files_of(regatta, run) / "report.html").read_text()
    regatta("kill", run, "--now")
    regatta.wait(run)
    wait_for(lambda: "so far" not in (files_of(regatta, run) / "report.html").read_text(), 20, "the last report")


def test_p_values_are_those_of_scipy(regatta):
    draw = random.Random(5)
    for i, (na, nb, shift, places) in enumerate([(4, 4, 3, 6), (5, 6, 0, 6), (6, 5, 1, 0)]):
        a = [round(draw.gauss(100, 2), places) for _ in range(na)]
        b = [round(draw.gauss(100 + shift, 2), places) for _ in range(nb)]
        group(regatta, f"a{i}", a)
        group(regatta, f"b{i}", b)
        got = metric(compare(regatta, f"a{i}", f"b{i}", code=None), "speed")
        want = mannwhitneyu(b, a, alternative="two-sided").pvalue
        assert got["p"] == pytest.approx(want, abs=1e-9), (a, b)
        assert got["test"] == "runs"


def test_p_values_of_samples_are_those_of_scipy(regatta):
    draw = random.Random(6)
    a = [round(draw.gauss(100, 5), 3) for _ in range(7)]  # below 8 no warm-up is dropped
    b = [round(draw.gauss(103, 5), 3) for _ in range(7)]
    one, two = run_of(regatta, "a", [{"speed": v} for v in a]), run_of(regatta, "b", [{"speed": v} for v in b])
    answer = compare(regatta, one, two)
    got = metric(answer, "speed")
    assert got["p"] == pytest.approx(mannwhitneyu(b, a, alternative="two-sided").pvalue, abs=1e-9)
    assert got["verdict"] == "unclear" and any("not independent" in n for n in answer["notes"])


def test_the_same_again_does_not_alarm(regatta):
    """Runs of one job, dealt into two arms 20 times: nobody got worse."""
    draw = random.Random(7)
    runs = group(regatta, "same", [round(draw.gauss(100, 1), 4) for _ in range(10)])
    for _ in range(20):
        draw.shuffle(runs)
        answer = compare(regatta, ",".join(runs[:5]), ",".join(runs[5:]))
        assert not answer["fails"], answer


def test_ten_percent_slower_is_found(regatta):
    draw = random.Random(8)
    group(regatta, "before", [round(draw.gauss(100, 1), 4) for _ in range(5)])
    group(regatta, "after", [round(draw.gauss(90, 1), 4) for _ in range(5)])
    answer = compare(regatta, "before", "after", code=1)
    got = metric(answer, "speed")
    assert got["verdict"] == "worse" and -12 < got["diff_pct"] < -8 and got["ci_pct"][1] < -5
    assert 0 < got["mde_pct"] < 10
    done = regatta("compare", "before@last5", "after@last5", code=1)
    assert "worse" in done.out and "P (HOLM)" in done.out
    assert metric(compare(regatta, "after", "before"), "speed")["verdict"] == "better"
    compare(regatta, "before", "after", "--threshold", "20")
    # A misspelt metric must not pass for "nothing got worse".
    said = regatta("compare", "before", "after", "--metric", "sped", code=3).err
    assert "no metric to compare: 'regatta metrics before-" in said
    # One run each: no alarm, unless it is asked for.
    one, two = answer["arms"][0]["runs"][0], answer["arms"][1]["runs"][0]
    compare(regatta, one, two)
    compare(regatta, one, two, "--no-test", code=1)


def test_what_cannot_be_compared_is_said(regatta):
    one = run_of(regatta, "a", [{"speed": 1, "loss": 2}])
    two = run_of(regatta, "b", [{"speed": 1}])
    done = regatta("compare", one, two)
    assert f"metric 'loss' is missing in {two}" in done.out
    assert [m["name"] for m in compare(regatta, one, two, "--metric", "speed")["metrics"]] == ["speed"]
    assert "two runs or more" in regatta("compare", one, code=2).err
    assert "no run 'nobody'" in regatta("compare", one, "nobody", code=3).err
    assert "threshold" in regatta("compare", one, two, "--threshold", "much", code=2).err
    regatta("report", "nobody", code=3)
