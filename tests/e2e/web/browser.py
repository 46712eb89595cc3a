"""A real browser for the tests of the dashboard: Debian's Chromium, driven by Playwright.

Whatever a test asserts, it has failed if a script ran that is not the page's own, if the page threw, or if it broke its
own content security policy.  A picture of the last state is kept in build/artefacts/.
"""
import pathlib
import shutil
import subprocess

import pytest
from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[3]
ARTEFACTS = ROOT / "build" / "artefacts"
WORK = ROOT / "build" / "web-test"
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync"]
TIMEOUT_MS = 20_000


class Visitor:
    """One person with one browser profile; remembers what went wrong."""

    def __init__(self, browser, name, **context):
        context.setdefault("viewport", {"width": 1280, "height": 860})
        self.name, self.faults, self.shots = name, [], 0
        self.context = browser.new_context(**context)
        self.context.set_default_timeout(TIMEOUT_MS)
        self.page = self.context.new_page()
        self.page.on("pageerror", lambda e: self.faults.append(f"threw: {e}"))
        self.page.on("dialog", self._dialog)
        self.page.on("console", self._console)

    def _dialog(self, dialog):
        self.faults.append(f"a script opened a dialog: {dialog.message}")
        dialog.dismiss()

    def _console(self, message):
        if "Content Security Policy" in message.text or "Refused to" in message.text:
            self.faults.append(f"against the policy: {message.text}")

    def picture(self, label=None):
        ARTEFACTS.mkdir(parents=True, exist_ok=True)
        name = f"{self.name}-{label}" if label else self.name
        self.page.screenshot(path=str(ARTEFACTS / f"{name}.png"))

    def check(self):
        if self.page.evaluate("() => 'pwned' in window"):
            self.faults.append("a script from outside ran")
        assert not self.faults, self.faults


_shared = []  # each test module has this fixture as its own, and there can be only one Playwright


@pytest.fixture(scope="session")
def chromium():
    if _shared:
        yield _shared[0]
        return
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        _shared.append(browser)
        yield browser
        _shared.clear()
        browser.close()


@pytest.fixture
def visitors(chromium, request):
    """visitors() makes another one; all are looked at in the end."""
    made = []

    def visitor(**context):
        name = request.node.name.replace("[", "-").replace("]", "")
        made.append(Visitor(chromium, name + (f"-{len(made) + 1}" if made else ""), **context))
        return made[-1]

    yield visitor
    try:
        for v in made:
            v.picture()
            v.check()
    finally:
        for v in made:
            v.context.close()


@pytest.fixture(scope="session")
def site():
    """The page as it is in the sources now, with what its tests need beside it."""
    subprocess.run(["node", str(ROOT / "web/build.mjs"), "--work", str(WORK), "--dev"], check=True, timeout=600)
    return WORK / "site"


def faults(page):
    """What axe-core finds by the rules of WCAG 2.1 A and AA."""
    page.evaluate((WORK / "node_modules/axe-core/axe.min.js").read_text())
    return page.evaluate("""async () => (await axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}))
        .violations.map(v => `${v.id}: ${v.help}: ${v.nodes.map(n => n.target.join(' ')).slice(0, 4).join(', ')}`)""")


def until(page, script, timeout=TIMEOUT_MS):
    """Wait until the script (a function's text) gives something true.  Playwright's own way needs eval in the page."""
    for _ in range(timeout // 50):
        got = page.evaluate(script)
        if got:
            return got
        page.wait_for_timeout(50)
    raise AssertionError(f"waited {timeout} ms for {script}")


def fits(page):
    """Is nothing wider than the window?"""
    return page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
