"""The report of a run as a reader sees it: the file in a real browser, on a desk and on a phone."""
import pytest

from browser import chromium, fits, visitors  # noqa: F401 (fixtures)
from conftest import wait_for

JOB = """
name = "train"
[roles.trainer]
count = 2
command = ["python3", "{script}"]
[metrics.loss]
pattern = 'step (?<step>\\d+)/\\d+ loss=(?<value>\\S+)'
better = "lower"
[metrics.speed]
pattern = 'speed=(?<value>\\S+)'
better = "higher"
"""
SCRIPT = """
for step in range(0, 50001, 1000):
    print(f"step {step}/50000 loss={1 / (step + 1000):.6f} speed={step % 7000}", flush=True)
"""

# Every word of a table that is drawn in more than one piece.
BROKEN_WORDS = """() => {
    const broken = [];
    for (const cell of document.querySelectorAll('th, td:not(.t)')) {
        const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
        while (walk.nextNode())
            for (const word of walk.currentNode.data.matchAll(/\\S+/g)) {
                const range = document.createRange();
                range.setStart(walk.currentNode, word.index);
                range.setEnd(walk.currentNode, word.index + word[0].length);
                if (new Set([...range.getClientRects()].map(r => r.top)).size > 1) broken.push(word[0]);
            }
    }
    return broken;
}"""


@pytest.fixture
def report(regatta):
    script = regatta.script(SCRIPT)
    run = regatta.submit(regatta.job(JOB.format(script=script)))
    regatta.wait(run)
    path = regatta.home / "runs" / run / "report.html"
    wait_for(path.exists, 20, "the report")
    return f"file://{path}"


def test_a_metric_with_steps_is_drawn_over_them(report, visitors):
    v = visitors()
    v.page.goto(report)
    over_steps = v.page.get_by_role("img", name="loss over steps")
    assert over_steps.is_visible()
    ticks = over_steps.locator("text").all_text_contents()
    assert "50000" in ticks and "step" in ticks
    over_time = v.page.locator("svg[aria-label='loss over time']")
    assert not over_time.is_visible()
    v.page.get_by_text("over time", exact=True).click()
    assert over_time.is_visible()
    assert v.page.locator("svg[aria-label='speed over time']").is_visible(), "without steps, time is all there is"
    assert not v.page.locator("svg[aria-label='speed over steps']").count()


def test_the_tables_can_be_read_on_a_phone(report, visitors):
    v = visitors(viewport={"width": 390, "height": 844})
    v.page.goto(report)
    v.page.evaluate("() => document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert v.page.evaluate(BROKEN_WORDS) == []
    assert fits(v.page), "the tables scroll, the page does not"
    narrow = v.page.evaluate("() => [...document.querySelectorAll('td.t')].filter(c => c.innerText && c.clientWidth < 200).length")
    assert narrow == 0
    v.page.locator("h2", has_text="Nodes").scroll_into_view_if_needed()
    v.picture("nodes")
