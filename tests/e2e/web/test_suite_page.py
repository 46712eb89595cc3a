"""The suites of the real binary in a real browser: the grid fills as the runs go."""
import json

from browser import chromium, faults, fits, site, until, visitors  # noqa: F401 (fixtures)
from conftest import wait_for
from test_page import sign_in

# Each run waits for the test; then it prints its figure and ends, badly if the test says so.
JOB = """
name = "train"
command = ["sh", "-c", "until [ -e {here}/go.$LR.$BATCH ]; do sleep 0.02; done; echo speed=$((LR * 100 + BATCH)); test $LR != 3"]
env = {{ LR = "0", BATCH = "0" }}
[metrics.speed]
pattern = 'speed=(?<value>[0-9]+)'
better = "higher"
"""
SUITE = """
name = "grid"
[suite]
job = "train.toml"
repeats = 2
parallel = 2
[matrix]
"env.LR" = ["1", "2", "3"]
"env.BATCH" = ["16", "32"]
[[exclude]]
"env.LR" = "3"
"env.BATCH" = "32"
[[experiments]]
name = "base"
[report]
metric = "speed"
baseline = { "env.LR" = "1" }
"""


def squares(page, *states):
    return page.locator(", ".join(f".cell[data-state={s}]" for s in states)).count()


def test_the_grid_of_a_suite_fills(regatta, visitors, site):
    regatta.job(JOB.format(here=regatta.cwd), "train.toml")
    suite = regatta("suite", "run", "-d", regatta.job(SUITE, "suite.toml")).out.strip()
    v = visitors()
    page = sign_in(regatta, v)
    page.get_by_role("link", name="Suites").click()
    page.get_by_role("link", name=suite).click()
    page.get_by_role("heading", name=suite).wait_for()
    # Two at a time, the first repeat of all variants before the second.
    until(page, "() => document.querySelectorAll('.cell[data-state=running]').length === 2")
    assert squares(page, "waiting") == 10
    assert page.locator(".matrix thead th").all_inner_texts() == ["env.LR ↓ env.BATCH →", "16", "32"]
    assert page.locator(".matrix tbody th").all_inner_texts() == ["1", "2", "3"]
    assert page.locator(".matrix .excluded").inner_text() == "excluded"
    assert page.locator("[data-variant=base] .cell").count() == 2
    # What happens is shown without a reload, with the figure of each variant.
    (regatta.cwd / "go.1.16").touch()
    until(page, "() => document.querySelectorAll('.cell[data-state=succeeded]').length === 1")
    until(page, "() => document.querySelector('.matrix .figure').innerText.startsWith('116')")
    v.picture("filling")
    for name in "1.32", "2.16", "2.32", "3.16", "0.0":
        (regatta.cwd / f"go.{name}").touch()
    until(page, "() => document.querySelector('.head .state')?.innerText === 'failed'")
    assert squares(page, "succeeded") == 10 and squares(page, "failed") == 2
    until(page, "() => document.querySelectorAll('.matrix .figure')[2].innerText.replace(/\\s/g, ' ').startsWith('216 +86.21 %')")
    # A filter makes a list of it, with the cause; a square leads to its run.
    page.get_by_role("button", name="Not succeeded").click()
    until(page, "() => document.querySelectorAll('[data-variant]').length === 1")
    bad = page.locator(".cell[data-state=failed]").first
    assert "exit code 1" in bad.get_attribute("title")
    bad.click()
    page.get_by_role("heading", name="train-").wait_for()
    page.go_back()
    page.get_by_role("button", name="All", exact=True).click()
    # One stop for Tab, arrows between the squares.
    page.locator(".matrix .cell").first.focus()
    page.keyboard.press("ArrowDown")
    assert "LR=2" in page.evaluate("() => document.activeElement.title")
    assert page.locator(".cell[tabindex='0']").count() == 1
    found = faults(page)
    for path in "/suites", f"/suite/{suite}":
        for width in 1280, 360:
            page.set_viewport_size({"width": width, "height": 800})
            page.goto(v.base + path)
            page.get_by_text("grid-").first.wait_for()
            found += faults(page) + ([] if fits(page) else [f"{path} sticks out at {width}"])
    assert not found, found


def test_looking_at_a_suite_changes_no_file(regatta, visitors):
    """Its runs may have been removed since: the figures of its end are still there."""
    regatta.job('command = ["sh", "-c", "echo speed=7"]\n[metrics.speed]\npattern = "speed=(?<value>[0-9]+)"\n', "train.toml")
    suite = regatta.json("suite", "run", regatta.job('[suite]\njob = "train.toml"\n', "suite.toml"))
    summary = regatta.home / "suites" / suite["id"] / "summary.json"
    wait_for(summary.exists, what="the summary")
    before = summary.stat()
    regatta("cleanup", suite["variants"][0]["runs"][0]["run"])
    page = sign_in(regatta, visitors(), f"/suite/{suite['id']}")
    until(page, "() => document.querySelector('[data-variant] td.num')?.innerText === '7'")
    assert (summary.stat().st_ino, summary.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert json.loads(summary.read_text())["metrics"][0]["rows"][0]["median"] == 7


def test_there_is_no_such_suite(regatta, visitors):
    page = sign_in(regatta, visitors(), "/suites")
    page.get_by_text("regatta suite run FILE").wait_for()
    page.goto(page.url.replace("/suites", "/suite/nothing"))
    page.get_by_role("alert").get_by_text("no suite 'nothing'").wait_for()


def test_suites_and_groups_of_repeats_are_compared(regatta, visitors, site):
    regatta.job('command = ["sh", "-c", "echo speed=$((N * 10 + B))"]\nenv = { N = "1", B = "0" }\n'
                '[metrics.speed]\npattern = "speed=(?<value>[0-9]+)"\n', "train.toml")
    ids = []
    for n in 1, 2:
        text = f'name = "s{n}"\n[suite]\njob = "train.toml"\nrepeats = 2\n[matrix]\n"env.B" = ["1", "2"]\n"env.N" = ["{n}"]\n'
        ids.append(regatta.json("suite", "run", regatta.job(text, f"s{n}.toml"))["id"])
    v = visitors()
    page = sign_in(regatta, v, "/suites")
    compare = page.get_by_role("button", name="Compare")
    for suite in ids:
        assert compare.is_disabled()
        page.get_by_role("checkbox", name=suite).check()
    compare.click()
    page.locator(".compare .variant").first.wait_for()
    assert page.locator(".compare .variant").all_inner_texts() == ["B=1,N=1", "B=2,N=1"]
    page.get_by_text(f"parameter 'env.N' is 1 in {ids[0]}, is 2 in {ids[1]}").wait_for()
    assert page.locator("[data-chart]").count() == 0
    assert not faults(page) and fits(page)
    page.get_by_role("link", name=f"suite:{ids[1]}").click()
    page.get_by_role("heading", name=ids[1]).wait_for()
    # Repeats of one name are offered as a group, which has no page of its own.
    regatta("run", "train.toml", "--name", "one", "--repeat", "2")
    regatta("run", "train.toml", "--name", "two", "--repeat", "2", "--set", "env.N=\"2\"")
    page.goto(v.base + "/compare")
    for name in "one", "two":
        page.get_by_role("combobox").fill(name)
        page.get_by_role("option").filter(has_text="2 repeats").wait_for()
        page.keyboard.press("Enter")
        page.locator(".picked").get_by_text(name, exact=True).wait_for()
    page.locator(".picked").get_by_text("2 runs").nth(1).wait_for()
    assert page.locator(".picked a").count() == 0
    page.locator("[data-chart=speed]").wait_for()
