"""/metrics, read by promtool and by Prometheus."""
import json
import os
import re
import shutil
import socket
import subprocess
import urllib.request

import pytest

from conftest import ROOT, wait_for


def peer(name):
    """A program of Debian's prometheus: installed, or unpacked by tools/setup."""
    return shutil.which(name, path=os.environ["PATH"] + os.pathsep + str(ROOT / "build/peers/usr/bin"))


@pytest.mark.skipif(not peer("promtool"), reason="promtool (Debian: prometheus) is not installed")
def test_metrics_pass_promtool_with_every_name_that_is_taken(regatta, service):
    regatta.script(r"""
import os, time
print('**metrics_data: we"ird\\x{y}=0.5', flush=True)
print('**metrics_data: Aa_9./-z=0.25', flush=True)
while not os.path.exists(os.environ["DONE"]):
    time.sleep(0.02)
""")
    regatta.job(f"""
name = "prom"
command = ["python3", "{regatta.cwd}/job.py"]
env = {{DONE = "{regatta.cwd}/done"}}
""")
    run = regatta.submit(regatta.cwd / "job.toml")
    text = wait_for(lambda: (lambda t: t if 'metric="Aa_9./-z"} 0.25' in t else None)(service.get("/metrics").text),
                    what="the metric")
    assert "x{y}" not in text  # printed before the other one, and refused
    assert f'run="{run}",node="worker-0"' in text
    assert 'regatta_runs{state="running"} 1' in text and 'regatta_nodes{state="running"} 1' in text
    assert f'regatta_run_nodes{{run="{run}",state="running"}} 1' in text and "regatta_run_cost_usd{" not in text  # it costs nothing here
    done = subprocess.run([peer("promtool"), "check", "metrics"], input=text.encode(), capture_output=True)
    assert done.returncode == 0 and not done.stdout + done.stderr, (done, text)
    (regatta.cwd / "done").touch()
    regatta.wait(run)
    assert 'regatta_metric{' not in service.get("/metrics").text
    assert re.search(r"regatta_log_bytes_total [1-9]", service.get("/metrics").text)


@pytest.mark.skipif(not peer("prometheus"), reason="prometheus (Debian) is not installed")
def test_prometheus_scrapes_it(regatta, service, tmp_path):
    token = service.new_token("read", name="prometheus")
    (tmp_path / "token").write_text(token)
    (tmp_path / "prometheus.yml").write_text(f"""
global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}
scrape_configs:
  - job_name: regatta
    authorization: {{credentials_file: {tmp_path}/token}}
    static_configs: [{{targets: ["{service.own}"]}}]
""")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    child = subprocess.Popen([peer("prometheus"), f"--config.file={tmp_path}/prometheus.yml", f"--web.listen-address=127.0.0.1:{port}",
                              f"--storage.tsdb.path={tmp_path}/tsdb"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def scraped():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?query=regatta_build_info", timeout=2) as r:
                return json.load(r)["data"]["result"]
        except OSError:
            return None
    try:
        found = wait_for(scraped, 30, "prometheus to scrape")
        assert found[0]["value"][1] == "1" and found[0]["metric"]["version"]
    finally:
        child.kill()
        child.wait()
