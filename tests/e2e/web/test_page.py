"""The dashboard of the real binary in a real browser: what a person does with it, and what an attacker tries."""
import json
import pathlib
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

from browser import chromium, faults, fits, site, until, visitors  # noqa: F401 (fixtures)
from conftest import wait_for

# A trainer that does as many steps as the file "steps" says, and ends when "done" is there.
TRAINER = """
import os, sys, time
rank, step = int(os.environ["RANK"]), 0
print("trainer", rank, "begins", flush=True)
while not os.path.exists("{here}/done"):
    try:
        until = int(open("{here}/steps").read() or 0)
    except (OSError, ValueError):
        until = 0
    while step < until:
        step += 1
        print(f"step {{step}}/1000 loss={{1 / (step + rank):.6f}} speed={{100 + rank}}", flush=True)
    time.sleep(0.02)
print("trainer", rank, "ends", flush=True)
sys.exit(int(open("{here}/done").read() or 0))
"""
JOB = """
name = "{name}"
[roles.trainer]
count = 2
command = ["python3", "{here}/trainer.py"]
[metrics.loss]
pattern = 'step (?<step>\\d+)/\\d+ loss=(?<value>\\S+)'
better = "lower"
[metrics.speed]
pattern = 'step (?<step>\\d+).* speed=(?<value>\\S+)'
better = "higher"
"""


class Training:
    """A run that goes as far as the test lets it."""

    def __init__(self, user, name):
        self.user, self.here = user, user.cwd / name
        self.here.mkdir()
        (self.here / "trainer.py").write_text(TRAINER.format(here=self.here))
        self.id = user.submit(user.job(JOB.format(name=name, here=self.here), f"{name}.toml"))

    def steps(self, n):
        new = self.here / "steps.new"
        new.write_text(str(n))
        new.rename(self.here / "steps")

    def end(self, code=0):
        new = self.here / "done.new"
        new.write_text(str(code))
        new.rename(self.here / "done")

    def ended(self, steps=20, code=0):
        self.steps(steps)
        self.user.wait(self.id, state="running")
        wait_for(lambda: self.user.status(self.id)["metrics"].get("loss", {}).get("count", 0) >= 2 * steps, what="the metrics")
        self.end(code)
        return self.user.wait(self.id)


def sign_in(user, visitor, path="/", scope="admin"):
    link = re.search(r"http://\S+/login\?code=\w+", user("ui", "--print", "--scope", scope).out).group(0)
    visitor.page.goto(link)
    visitor.base = link.split("/login")[0]
    visitor.page.get_by_role("heading", name="Runs").wait_for()
    if path != "/":
        visitor.page.goto(visitor.base + path)
    return visitor.page



def test_the_link_opens_the_page_once(regatta, visitors):
    run = regatta.json("run", "--name", "first", "--", "echo", "hello")["id"]
    link = re.search(r"http://\S+/login\?code=\w+", regatta("ui", "--print").out).group(0)
    v = visitors()
    v.page.goto(link)
    v.page.get_by_role("link", name=run).wait_for()
    assert "code=" not in v.page.url
    cookie = [c for c in v.context.cookies() if "session" in c["name"]][0]
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
    # Who has the link later has nothing.
    other = visitors()
    answer = other.page.goto(link)
    assert answer.status in (401, 403) or "code=" not in other.page.url
    other.page.goto(link.split("/login")[0] + "/")
    other.page.get_by_role("heading", name="You are not signed in").wait_for()
    other.page.get_by_text("regatta ui", exact=True).wait_for()


def test_a_run_is_watched_live(regatta, visitors):
    v = visitors()
    page = sign_in(regatta, v)
    t = Training(regatta, "live")
    # It comes by itself, and its page shows what happens without a reload.
    page.get_by_role("link", name=t.id).click()
    page.get_by_role("heading", name=t.id).wait_for()
    until(page, "() => document.querySelector('.head .state')?.innerText === 'running'")
    assert page.locator(".tile").count() == 2
    until(page, "() => [...document.querySelectorAll('.tile .what')].every(e => e.innerText === 'running')")
    t.steps(40)
    page.locator("[data-chart=loss] .key .who").filter(has_text="trainer-1").wait_for()
    until(page, "() => document.querySelector('[data-chart=loss] .key .num').innerText === '0.025'")
    page.get_by_text("loss 0.025").wait_for()
    v.picture("running")
    t.end()
    until(page, "() => document.querySelector('.head .state')?.innerText === 'succeeded'")
    until(page, "() => document.querySelector('.tally').innerText.includes('2 done')")
    assert "complete" in page.locator(".link").inner_text()
    assert page.get_by_role("link", name="Report").get_attribute("href").endswith(f"/{t.id}/report")
    for phase in ["provisioning", "gathering", "running", "collecting", "cleaning"]:
        assert re.search(rf"{phase}\s+\d", page.locator(".timeline ol").inner_text()), phase
    # The list has heard of it too.
    page.get_by_role("link", name="Runs").click()
    assert page.locator(f"[data-run={t.id}] .state").inner_text() == "succeeded"


def test_a_log_is_followed(regatta, visitors):
    t = Training(regatta, "follow")
    page = sign_in(regatta, visitors(), f"/run/{t.id}")
    page.locator("[data-node=trainer-1]").click()
    page.get_by_text("trainer 1 begins").wait_for()
    t.steps(300)
    page.get_by_text("step 300/1000").wait_for()
    log = page.locator(".log")
    assert log.evaluate("el => el.scrollTop + el.clientHeight >= el.scrollHeight - 4")
    follow = page.get_by_role("button", name="Follow")
    assert follow.get_attribute("aria-pressed") == "true"
    # Who scrolls up is left in peace; who asks for the end gets it.
    log.hover()
    page.mouse.wheel(0, -1500)
    until(page, "() => document.querySelector('.toggle').getAttribute('aria-pressed') === 'false'")
    at = log.evaluate("el => el.scrollTop")
    t.steps(400)
    page.wait_for_timeout(1500)
    assert abs(log.evaluate("el => el.scrollTop") - at) < 2
    assert page.get_by_text("step 400/1000").count() == 0
    follow.click()
    page.get_by_text("step 400/1000").wait_for()
    # Both nodes together, each line with its node.
    page.get_by_role("combobox", name="Node").select_option("*")
    page.locator(".row").filter(has_text="trainer-0").first.wait_for()
    t.steps(410)
    for node in ["trainer-0", "trainer-1"]:
        page.locator(".row", has=page.locator(".who", has_text=node)).filter(has_text="step 410/1000").wait_for()
    t.end()
    page.locator(".row").filter(has_text="trainer 1 ends").wait_for()


def test_times_of_a_log_are_shown_when_asked_for(regatta, visitors):
    run = regatta.json("run", "--", "sh", "-c", "seq -f 'line %.0f' 1 20000; echo problem >&2")["id"]
    printed = regatta("logs", run, "--stdout", "--timestamps", "--tail", "1").out
    shown = re.search(r"T(\S+)Z line 20000$", printed).group(1)
    v = visitors(timezone_id="UTC")
    page = sign_in(regatta, v, f"/run/{run}?tab=logs")
    last = page.locator(".row").filter(has_text=re.compile(r"line 20000$"))
    last.wait_for()
    assert page.locator(".when").count() == 0
    times = page.get_by_role("button", name="Times")
    times.click()
    assert last.locator(".when", has_text=re.compile(r"^\d\d:\d\d:\d\d\.\d{3}$")).inner_text() == shown
    # Who looks at another place stays there, and the times are kept beyond a reload.
    page.locator(".log").focus()
    page.keyboard.press("Home")
    first = page.locator(".row").filter(has_text=re.compile(r"line 1$"))
    first.locator(".when", has_text=":").wait_for()
    page.keyboard.press("t")
    until(page, "() => !document.querySelector('.when')")
    first.wait_for()
    page.keyboard.press("t")
    first.locator(".when", has_text=":").wait_for()
    page.reload()
    last.locator(".when", has_text=shown).wait_for()
    # Only what is in sight is in the document, and which of the two streams came last is not known.
    page.goto(f"{v.base}/run/{run}?tab=logs&node=*&stream=err")
    page.locator(".row", has=page.locator(".when", has_text=":")).filter(has_text="problem").wait_for()
    page.get_by_text("the last lines of each, in the order of arrival").wait_for()


def test_a_log_is_searched(regatta, visitors):
    run = regatta.json("run", "--", "sh", "-c", "seq -f 'line %.0f' 1 30000; echo 'ValueError: bad shape'; seq -f 'more %.0f' 1 30000")["id"]
    page = sign_in(regatta, visitors(), f"/run/{run}?tab=logs")
    page.get_by_text("more 30000").wait_for()
    page.locator(".log").focus()
    page.keyboard.press("E")
    page.locator(".row.target").filter(has_text="ValueError: bad shape").wait_for()
    page.keyboard.press("/")
    page.keyboard.type("line 1234")
    page.keyboard.press("Enter")
    page.locator(".row.target").filter(has_text="line 1234").wait_for()
    page.locator(".log").focus()
    page.keyboard.press("Home")
    page.locator(".row").filter(has_text=re.compile(r"^line 1$")).wait_for()
    page.keyboard.press("End")
    page.get_by_text("more 30000").wait_for()


def test_a_big_log_is_read_in_pieces(regatta, visitors):
    size = 256 << 20
    run = regatta.json("run", "--", "sh", "-c", f"yes 'the quick brown fox jumps over the lazy dog' | head -c {size}; echo; echo the end", timeout=300)["id"]
    v = visitors()
    page = sign_in(regatta, v)
    got = []
    page.on("response", lambda r: got.append(int(r.headers.get("content-length", 0))) if "/logs/" in r.url else None)
    began = time.monotonic()
    page.goto(f"{v.base}/run/{run}?tab=logs")
    page.get_by_text("the end", exact=True).wait_for()
    assert time.monotonic() - began < 10
    assert sum(got) < 1 << 20
    page.locator(".log").focus()
    page.keyboard.press("Home")
    until(page, "() => document.querySelector('.foot').innerText.startsWith('at 0 B')")
    assert page.locator(".row").first.inner_text() == "the quick brown fox jumps over the lazy dog"
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    assert session.send("Runtime.getHeapUsage")["usedSize"] < 60e6


def test_a_chart_is_zoomed(regatta, visitors):
    t = Training(regatta, "zoom")
    t.ended(200)
    page = sign_in(regatta, visitors(), f"/run/{t.id}")
    chart = page.locator("[data-chart=loss]")
    over = chart.locator(".u-over")
    over.wait_for()
    box = over.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40, steps=5)
    page.mouse.up()
    page.wait_for_selector("[data-chart=loss][data-zoomed=true]")
    page.mouse.move(box["x"] + 2, box["y"] + 40)
    left = int(until(page, "() => { const t = document.querySelector('[data-chart=loss] .at').innerText; return t !== 'last' && t }"))
    assert 40 <= left <= 60, "a quarter of 200 steps is at the left edge"
    page.get_by_role("button", name="Reset zoom").click()
    page.wait_for_selector("[data-chart=loss][data-zoomed=false]")
    page.get_by_role("button", name="Aggregate").click()
    chart.get_by_text("mean of 2").wait_for()
    chart.get_by_text("min–max").wait_for()
    page.get_by_role("button", name="Time", exact=True).click()
    page.get_by_role("button", name="Log scale").click()
    chart.get_by_text("mean of 2").wait_for()


def test_a_run_is_cancelled_and_cleaned_up(regatta, visitors):
    t = Training(regatta, "doomed")
    t.steps(5)
    v = visitors()
    page = sign_in(regatta, v, f"/run/{t.id}")
    until(page, "() => document.querySelector('.head .state')?.innerText === 'running'")
    clean = page.get_by_role("button", name="Clean up…")
    assert clean.is_disabled()
    page.get_by_role("button", name="Cancel…").click()
    dialog = page.get_by_role("dialog")
    assert "2 nodes are still working" in dialog.inner_text()
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    assert regatta.status(t.id)["state"] == "running", "a question that was not answered does nothing"
    page.get_by_role("button", name="Cancel…").click()
    page.get_by_role("button", name="Cancel the run").click()
    until(page, "() => document.querySelector('.head .state')?.innerText === 'cancelled'")
    got = regatta.status(t.id)
    assert got["verdict"] == "cancelled"

    clean.click()
    said = dialog.inner_text()
    assert got["dir"] in said and "trainer-0, trainer-1" in said and "2 nodes" in said
    delete = page.get_by_role("button", name="Delete")
    assert delete.is_disabled()
    page.get_by_role("textbox").fill("doome")
    assert delete.is_disabled()
    page.get_by_role("textbox").fill("doomed")
    v.picture("cleanup")
    delete.click()
    page.get_by_role("heading", name="Runs").wait_for()
    page.get_by_text(f"Removed {t.id}").wait_for()
    assert page.locator(f"[data-run={t.id}]").count() == 0
    assert not (regatta.home / "runs" / t.id).exists()
    assert regatta("status", t.id, code=None).returncode != 0
    page.goto(f"{v.base}/run/{t.id}")
    page.get_by_role("alert").get_by_text("no run").wait_for()


def test_who_may_only_look_is_not_offered_more(regatta, visitors):
    t = Training(regatta, "look")
    v = visitors()
    page = sign_in(regatta, v, f"/run/{t.id}", scope="read")
    until(page, "() => document.querySelector('.head .state')?.innerText === 'running'")
    until(page, "() => document.querySelector('.danger').disabled")
    answer = page.evaluate("""id => fetch(`/api/v1/runs/${id}/cancel`, {method: 'POST', headers: {'Regatta-Request': '1'}, body: '{}'})
        .then(r => r.status)""", t.id)
    assert answer == 403
    t.end()
    until(page, "() => document.querySelector('.head .state')?.innerText === 'succeeded'")
    assert page.get_by_role("button", name="Clean up…").is_disabled()
    assert page.get_by_role("heading", name=t.id).is_visible(), "a refusal is no reason to sign in again"


def test_a_failure_is_explained_at_a_glance(regatta, visitors):
    run = regatta.json("run", "--name", "bad", "--", "sh", "-c", "echo fine; echo 'Traceback: it broke here' >&2; exit 3", code=1)["id"]
    page = sign_in(regatta, visitors(), f"/run/{run}")
    page.get_by_text("worker-0: exit code 3").wait_for()
    assert "it broke here" in page.locator(".tail").inner_text()
    page.get_by_role("link", name="Open the log of worker-0").click()
    page.locator(".row.bad").filter(has_text="it broke here").wait_for()


def test_words_on_a_run_are_shown_and_searched(regatta, visitors):
    regatta("run", "--name", "lead", "--tag", "baseline", "--tag", "<b>x", "--set", "params.lr=0.1", "--", "true")
    regatta("run", "--name", "plain", "--", "true")
    regatta("note", "lead", "two\nlines <script>")
    page = sign_in(regatta, visitors())
    page.get_by_label("Search runs").fill("baseline lr=0.1")
    until(page, "document.querySelectorAll('[data-row]').length === 1")
    assert page.locator("[data-row] .tag").all_inner_texts() == ["<b>x", "baseline"]
    page.locator("[data-row] a").click()
    until(page, "document.querySelector('.words')")
    assert page.locator(".words").inner_text().startswith("two\nlines <script>")
    facts = page.locator(".facts").inner_text()
    assert "<b>x, baseline" in facts and "0.1" in facts


def test_the_commit_of_the_source_is_shown(regatta, visitors):
    def git(*args):
        return subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *args], cwd=regatta.cwd, check=True, capture_output=True,
                              text=True, timeout=60).stdout.strip()
    git("init", "-q", "-b", "trunk")
    (regatta.cwd / "a").write_text("1")
    git("add", "a")
    git("commit", "-q", "-m", "first")
    clean = regatta.json("run", "--", "true")["id"]
    (regatta.cwd / "a").write_text("2")
    changed = regatta.json("run", "--", "true")["id"]
    commit = git("rev-parse", "HEAD")
    v = visitors()
    page = sign_in(regatta, v, f"/run/{clean}")
    fact = page.locator(".facts div", has=page.locator("dt", has_text=re.compile("^commit$")))
    assert fact.locator("dd").inner_text() == commit[:12]
    page.goto(f"{v.base}/run/{changed}")
    assert fact.locator("dd").inner_text() == f"{commit[:12]} with changes"
    assert fact.get_attribute("title") == f"{commit} on trunk, with changes that were not committed"


def test_the_last_words_of_a_failure_are_in_sight(regatta, visitors):
    script = regatta.script("import sys\nfor i in range(30):\n    print(f'  File \"model.py\", line {i}, in forward' + 30 * ' deeper', file=sys.stderr)\n"
                            "raise SystemExit('ValueError: the last word')\n")
    run = regatta.json("run", "--name", "deep", "--", "python3", script, code=1)["id"]
    page = sign_in(regatta, visitors(), f"/run/{run}")
    tail = page.locator(".tail")
    tail.get_by_text("the last word").wait_for()
    assert tail.evaluate("el => el.scrollHeight > el.clientHeight"), "the box is too small for this test"
    assert tail.evaluate("el => el.scrollTop + el.clientHeight >= el.scrollHeight - 2"), "its end is cut off"


def test_no_p_value_stands_where_nothing_was_tested(regatta, visitors):
    for name, values in (("few", (1, 1)), ("some", (2, 2))):
        for v in values:
            regatta("run", "--name", name, "--", "echo", f"**metrics_data: speed={v}")
    page = sign_in(regatta, visitors(), "/compare?run=few&run=some")
    page.get_by_text("too few runs to test").first.wait_for()
    cell = page.locator(".compare td[title='too few runs to test']")
    assert cell.all_inner_texts() == ["–"]


def test_the_interval_is_in_percent_like_the_difference(regatta, visitors):
    for name, values in (("slow", (100, 101, 103)), ("fast", (200, 203, 207))):
        for v in values:
            regatta("run", "--name", name, "--", "echo", f"**metrics_data: speed={v}")
    page = sign_in(regatta, visitors(), "/compare?run=slow&run=fast")
    cell = page.locator(".compare td[title^='in figures: +']")
    cell.wait_for()
    low, high = (float(part) for part in cell.inner_text().replace("\u2212", "-").removesuffix(" %").split(" … "))
    assert 90 < low < high < 110


def test_what_the_sides_cost_stands_above_the_table(regatta, visitors):
    a, b = (regatta.json("run", "--name", name, "--", "echo", "**metrics_data: speed=1")["id"] for name in ("dear", "free"))

    def priced(route):
        answer = route.fetch()
        body = answer.json()
        assert [arm["cost"] for arm in body["arms"]] == [None, None]
        body["arms"][0]["cost"] = {"runs": 2, "usd": 0.42, "usd_per_step": 0.00013, "usd_per_1k_samples": None}
        route.fulfill(response=answer, json=body)

    page = sign_in(regatta, visitors())
    assert page.get_by_role("list", name="Costs").count() == 0
    page.route("**/api/v1/compare?*", priced)
    page.goto(f"{page.url.split('/', 3)[0]}//{page.url.split('/', 3)[2]}/compare?run={a}&run={b}")
    costs = page.get_by_role("list", name="Costs").get_by_role("listitem")
    costs.first.wait_for()
    assert costs.all_inner_texts() == [f"{a}: 0.42 USD a run, 0.00013 USD per step"]


def test_parameters_that_differ_stand_above_the_table(regatta, visitors):
    job = regatta.job("command = [\"echo\", \"**metrics_data: speed=1\"]\n[params]\nlr = 0.1\ndepth = 3\nkind = \"a\"\n")
    a = regatta.json("run", job)["id"]
    b = regatta.json("run", job, "--set", "params.lr=0.2", "--set", "params.kind=b c")["id"]
    page = sign_in(regatta, visitors(), f"/compare?run={a}&run={b}")
    listed = page.get_by_role("list", name="Parameters that differ").get_by_role("listitem")
    listed.first.wait_for()
    assert listed.all_inner_texts() == ["lr: 0.1 → 0.2", "kind: a → b c"]


def test_a_single_point_is_seen(regatta, visitors):
    run = regatta.json("run", "--name", "lone", "--", "echo", "**metrics_data: speed=5")["id"]
    page = sign_in(regatta, visitors(), f"/run/{run}")
    page.locator("[data-chart=speed] canvas").wait_for()
    coloured = """() => {
        const c = document.querySelector('[data-chart=speed] canvas');
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        let n = 0;
        for (let i = 0; i < d.length; i += 4)
            n += d[i + 3] > 128 && Math.max(d[i], d[i + 1], d[i + 2]) - Math.min(d[i], d[i + 1], d[i + 2]) > 60;
        return n > 40 && n;
    }"""
    assert until(page, coloured) > 40


def test_runs_are_compared(regatta, visitors):
    a, b = Training(regatta, "base"), Training(regatta, "next")
    a.ended(30)
    b.ended(30)
    v = visitors()
    page = sign_in(regatta, v)
    for t in (a, b):
        page.get_by_role("checkbox", name=f"Compare {t.id}").check()
    page.get_by_role("button", name="Compare 2").click()
    page.get_by_role("region", name="Comparison").wait_for()
    table = page.get_by_role("region", name="Comparison").inner_text()
    assert "loss" in table and "speed" in table and a.id in table and b.id in table
    assert set(page.locator(".compare .state").all_inner_texts()) <= {"better", "worse", "same", "unclear"}
    assert page.locator(".compare .state").count() >= 2
    page.get_by_text("samples of one run are not independent").wait_for()
    page.locator("[data-chart=loss] .key .who").filter(has_text=b.id).wait_for()
    page.locator("[data-chart=loss] .u-over").wait_for()
    v.picture("table")
    # A third by typing a part of its name.
    c = regatta.json("run", "--name", "third", "--", "sh", "-c", "echo 'step 1/9 loss=0.5'")["id"]
    page.get_by_role("combobox").click()
    page.get_by_role("combobox").fill("third")
    page.get_by_role("option").filter(has_text=c).wait_for()
    page.keyboard.press("Enter")
    page.locator(".picked").get_by_text(c).wait_for()
    assert page.url.count("run=") == 3


def test_what_was_asked_for_is_shown(regatta, visitors):
    t = Training(regatta, "shown")
    t.ended(3)
    page = sign_in(regatta, visitors(), f"/run/{t.id}?tab=job")
    page.get_by_text("[roles.trainer]").wait_for()
    page.get_by_role("row", name="WORLD_SIZE 2", exact=True).wait_for()
    page.get_by_role("combobox", name="Node").select_option("trainer-1")
    page.get_by_role("row").filter(has_text="REGATTA_NODE").get_by_text("trainer-1").first.wait_for()
    page.get_by_role("tab", name="Events").click()
    for kind in ["accepted", "gathering", "hello", "started", "exited"]:
        page.locator(".event b", has_text=kind).first.wait_for()


def test_everything_can_be_reached_by_keyboard(regatta, visitors):
    run = regatta.json("run", "-n", "3", "--name", "keys", "--", "echo", "hello")["id"]
    page = sign_in(regatta, visitors())
    page.get_by_role("link", name=run).wait_for()
    focus = "() => { const e = document.activeElement; return (e.getAttribute('aria-label') || e.innerText || e.placeholder || '').trim() }"

    def tab_to(text, most=40):
        for _ in range(most):
            page.keyboard.press("Tab")
            if page.evaluate(focus).startswith(text):
                return
        raise AssertionError(f"Tab does not come to {text}")

    page.keyboard.press("Tab")
    assert page.evaluate(focus) == "Skip to content"
    tab_to(run)
    outline = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none", "what has the focus must show it"
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=run).wait_for()
    tab_to("worker-0")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focus).startswith("worker-1")
    tab_to("Metrics")
    page.keyboard.press("ArrowRight")
    page.locator(".log").wait_for()
    assert "tab=logs" in page.url
    page.get_by_role("button", name="Clean up…").focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    assert page.evaluate("() => document.querySelector('dialog').contains(document.activeElement)")
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    assert page.evaluate(focus) == "Clean up…", "the focus goes back to where it was"


# Each would set window.pwned, open a dialog or break the policy if it were taken for anything but text.
CORPUS = [
    "<script>window.pwned=1</script>",
    "<ScRiPt src=data:text/javascript,window.pwned=1></sCrIpT>",
    "<img src=x onerror=window.pwned=1>",
    "<IMG SRC=\"javascript:window.pwned=1\">",
    "<svg onload=window.pwned=1>",
    "<svg><script>window.pwned=1</script></svg>",
    "<math><mtext></math><img src=x onerror=window.pwned=1>",
    "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "<object data=javascript:window.pwned=1></object>",
    "<a href=javascript:window.pwned=1 autofocus onfocus=window.pwned=1>x</a>",
    "<input autofocus onfocus=window.pwned=1>",
    "<details open ontoggle=window.pwned=1>x</details>",
    "<video><source onerror=window.pwned=1></video>",
    "<style>@import 'http://127.0.0.1:1/x';*{background:url(javascript:window.pwned=1)}</style>",
    "<link rel=stylesheet href=data:text/css,*{display:none}>",
    "<meta http-equiv=refresh content='0;url=javascript:window.pwned=1'>",
    "<base href=http://127.0.0.1:1/>",
    "</pre></div></td></textarea></title></style></script><script>window.pwned=1</script>",
    "--><script>window.pwned=1</script><!--",
    "]]><script>window.pwned=1</script>",
    "\"><script>window.pwned=1</script>",
    "' onmouseover='window.pwned=1' x='",
    "\" style=\"animation:x\" onanimationstart=\"window.pwned=1",
    "`-window.pwned=1-`",
    "${window.pwned=1}{{constructor.constructor('window.pwned=1')()}}",
    "&lt;script&gt;window.pwned=1&lt;/script&gt;",
    "&#60;img src=x onerror=window.pwned=1&#62;",
    "\\u003cscript\\u003ewindow.pwned=1\\u003c/script\\u003e",
    "\u001b[31m<img src=x onerror=window.pwned=1>\u001b[0m",
    "\u001b]8;;javascript:window.pwned=1\u0007click\u001b]8;;\u0007",
    "\u001b]0;<script>window.pwned=1</script>\u0007title",
    "\u202e>tpircs/<1=denwp.wodniw>tpircs<",
    "<script\u0000>window.pwned=1</script>",
    "javascript:window.pwned=1",
    "data:text/html,<script>window.pwned=1</script>",
    "error <b onclick=window.pwned=1>failed</b>",
]


def test_no_script_from_outside_runs(regatta, visitors):
    script = regatta.script(
        "import json, os, sys\n"
        f"corpus = json.loads({json.dumps(json.dumps(CORPUS))})\n"
        "with open(os.environ['REGATTA_METRICS'], 'w') as f:\n"
        "    for i, text in enumerate(corpus):\n"
        "        for step in (1, 2, 3):\n"
        "            f.write(json.dumps({'name': text[:100], 'value': step, 'step': step}) + '\\n')\n"
        "    for step in (1, 2, 3):\n"
        "        f.write(json.dumps({'name': 'a.good_name', 'value': step, 'step': step}) + '\\n')\n"
        "for text in corpus:\n"
        "    print('step 1/2', text)\n"
        "    print('error:', text, file=sys.stderr)\n"
        "sys.exit(9)\n")
    env = ", ".join(f"X{i} = {json.dumps(t)}" for i, t in enumerate(CORPUS) if "\u0000" not in t and "\u001b" not in t)
    job = regatta.job(f'name = "hostile"\ncommand = ["python3", "{script}"]\nenv = {{ {env} }}\n')
    run = regatta.json("run", job, code=1)["id"]
    payload = "<img src=x onerror=window.pwned=1>"
    unfit = regatta.json("run", "--name", "unfit", "--", f"./{payload}", code=None)
    v = visitors()
    page = sign_in(regatta, v)
    page.get_by_role("link", name=run).wait_for()
    seen = []
    for path, text in [("", "exit code 9"), ("?tab=logs", payload), ("?tab=logs&stream=out", payload), ("?tab=logs&node=*", payload),
                       ("?tab=events", "exited"), ("?tab=job", payload)]:
        page.goto(f"{v.base}/run/{run}{path}")
        page.get_by_text(text).first.wait_for(state="attached")
        if path == "":
            page.locator(".u-over").first.wait_for()
            page.get_by_role("heading", name="a.good_name", exact=True).wait_for(state="attached")
        page.wait_for_timeout(300)
        seen.append(page.evaluate("() => document.querySelectorAll('img, iframe, object, base, meta[http-equiv], #app script, #app style').length"))
    for path in [f"/run/{unfit['id']}", f"/compare?run={run}&run={unfit['id']}", "/run/" + urllib.parse.quote(payload, safe=""),
                 "/?q=" + urllib.parse.quote(payload), f"/run/{run}?tab=logs&node=" + urllib.parse.quote(payload)]:
        page.goto(v.base + path)
        page.wait_for_timeout(500)
        seen.append(page.evaluate("() => document.querySelectorAll('img, iframe, object, base, meta[http-equiv], #app script, #app style').length"))
    assert seen == [0] * len(seen)
    v.check()


def test_the_policy_forbids_what_the_page_does_not_need(regatta, visitors):
    v = visitors()
    page = sign_in(regatta, v)
    answer = page.goto(v.base + "/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    page.evaluate("""() => { const s = document.createElement('script'); s.textContent = 'window.inline = 1'; document.head.append(s);
        const d = document.createElement('div'); d.setAttribute('onclick', 'window.inline = 1'); document.body.append(d); d.click(); }""")
    assert page.evaluate("() => 'inline' in window") is False
    v.faults = [f for f in v.faults if "policy" not in f]  # that was us


def test_the_session_is_needed_for_every_answer(regatta, visitors):
    t = Training(regatta, "private")
    t.steps(1)
    v = visitors()
    sign_in(regatta, v)
    for path in ["/api/v1/runs", f"/api/v1/runs/{t.id}", f"/api/v1/runs/{t.id}/logs/trainer-0", "/api/v1/events", "/api/v1/me"]:
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(v.base + path, timeout=10)
        assert refused.value.code in (401, 403), path
    # A page that lost its session says what to do.
    v.context.clear_cookies()
    v.page.goto(f"{v.base}/run/{t.id}")
    v.page.get_by_role("heading", name="You are not signed in").wait_for()


@pytest.mark.parametrize("scheme,width", [("light", 1280), ("dark", 1280), ("dark", 390)])
def test_the_pages_are_accessible_and_fit(regatta, visitors, site, scheme, width):
    t = Training(regatta, "looks")
    t.ended(50)
    v = visitors(color_scheme=scheme, viewport={"width": width, "height": 844})
    page = sign_in(regatta, v)
    found = {}
    for name, path, text in [("list", "/", t.id), ("metrics", f"/run/{t.id}", "speed"), ("logs", f"/run/{t.id}?tab=logs", "step 50/1000"),
                             ("events", f"/run/{t.id}?tab=events", "gathering"), ("job", f"/run/{t.id}?tab=job", "WORLD_SIZE")]:
        page.goto(v.base + path)
        page.get_by_text(text).first.wait_for(state="attached")
        page.wait_for_timeout(200)
        v.picture(name)
        found[name] = faults(page) + ([] if fits(page) else ["sticks out"])
    assert not any(found.values()), {k: x for k, x in found.items() if x}


def test_kept_files_are_a_tree_and_each_can_be_downloaded(regatta, visitors):
    regatta("run", "--name", "keeps", "--", "sh", "-c", """cd "$REGATTA_OUTPUT" && mkdir -p 'a b/<i>' && printf %s one > 'a b/<i>/per%cent?&#.txt' &&
        printf %s two > "a b/$(printf 'line\\nbreak')" && ln -s /etc/passwd out && truncate -s 3000 zero""")
    v = visitors()
    page = sign_in(regatta, v)
    page.locator("[data-row] a").first.click()
    page.get_by_role("tab", name="Outputs").click()
    tree = page.get_by_role("region", name="Outputs")
    tree.get_by_text("4 files").wait_for()
    assert tree.locator("summary").first.inner_text().startswith("worker-0/")
    assert "out → /etc/passwd" in tree.inner_text() and tree.get_by_role("link", name="out").count() == 0
    for folder in ("a b/", "<i>/"):
        tree.locator("summary").filter(has_text=folder).last.click()
    for link, text in (("per%cent?&#.txt", "one"), ("line", "two")):
        with page.expect_download() as got:
            tree.get_by_role("link", name=link).click()
        assert pathlib.Path(got.value.path()).read_text() == text, link
    assert tree.get_by_role("link", name="zero").get_attribute("title").startswith("SHA-256 ")


def test_the_list_is_filtered_and_says_how_many_there_are(regatta, visitors):
    for name, code in (("good", 0), ("bad", 3), ("late", 0)):
        regatta("run", "--name", name, "--", "sh", "-c", f"exit {code}", code=1 if code else 0)
    held = regatta.submit("--name", "held", "--", "sleep", "1000")
    regatta.wait(held, state="running")
    page = sign_in(regatta, visitors())
    page.get_by_text("1 active, 4 in all").wait_for()
    with page.expect_response(lambda r: "state=active" in r.url):  # asked for again and again: the total stays that of all
        pass
    assert page.get_by_text("1 active, 4 in all").is_visible()
    page.get_by_text("Failed", exact=True).click()
    until(page, "document.querySelectorAll('[data-row]').length === 1")
    assert page.locator("[data-row]").get_attribute("data-run").startswith("bad-")
    page.get_by_text("1 run of 4").wait_for()
    regatta("kill", held)
