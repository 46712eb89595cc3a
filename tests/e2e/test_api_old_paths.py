"""The HTTP paths of the Paddle benchmark tool."""
import re

from database import copies
from service import start_service


def test_the_old_paths_keep_their_shapes(regatta, service, run):
    status = service.get("/status")
    assert status.type == "text/plain" and "HTTP on" in status.text
    assert f"run {run}: provisioning\n" in status.text and f"run {run}: succeeded" in status.text
    names = service.get("/list_logs").text.splitlines()
    assert f"{run}/worker-0.log" in names and f"{run}/worker-0.err.log" in names
    assert service.get(f"/log/{run}/worker-0.log").body == regatta.log(run, "worker-0")
    assert service.get(f"/log/{run}/worker-0.err.log").body == b"oops\n"
    assert service.get(f"/log/{run}/worker-0.log").type == "text/plain"
    assert service.get(f"/log/{run}/worker-1.log").status == 404
    assert service.get(f"/log/{run[:-1]}/worker-0.log").status == 404  # a name, not a prefix


def test_the_names_of_many_logs_come_in_pages(regatta, service):
    first = regatta.submit("--", "true")
    regatta.wait(first)
    assert "link" not in service.get("/list_logs").headers
    regatta("master", "--stop")
    copies(regatta, first, 1000)
    for i in range(1000):
        logs = regatta.home / "runs" / f"many-{i:04}" / "logs"
        logs.mkdir(parents=True)
        (logs / "worker-0.log").touch()
    again = start_service(regatta)
    page = again.get("/list_logs")
    names = page.text.splitlines()
    assert len(names) == 1000 and f"{first}/worker-0.log" not in names
    link = re.fullmatch(r'<(/list_logs\?before=many-0000)>; rel="next"', page.headers["link"]).group(1)
    rest = again.get(link)
    assert f"{first}/worker-0.log" in rest.text.splitlines() and "link" not in rest.headers
    assert again.get("/list_logs?before=nothing").status == 404


def test_the_old_cleanup_cancels_everything_and_answers_at_once(regatta, service):
    runs = [regatta.submit("--", "sleep", "1000") for _ in range(2)]
    for run in runs:
        regatta.wait(run, state="running")
    answer = service.call("POST", "/cleanup")
    assert (answer.status, answer.text) == (200, "cleanup in progress\n")
    for run in runs:
        assert regatta.wait(run)["verdict"] == "cancelled"
