#!/usr/bin/env python3
"""How long until a browser on this machine shows the dashboard: median of several loads, nothing cached.

    tests/e2e/web/first_paint.py BINARY [LOADS]     (with the Python of tests/e2e/requirements.txt)
"""
import os
import statistics
import subprocess
import sys
import tempfile

from playwright.sync_api import sync_playwright

from browser import CHROMIUM, FLAGS

LIMIT_MS = 300


def main(binary, loads):
    with tempfile.TemporaryDirectory() as home:
        env = dict(os.environ, REGATTA_HOME=home)

        def regatta(*args):
            return subprocess.run([binary, *args], env=env, check=True, capture_output=True, text=True, timeout=60).stdout

        try:
            for i in range(20):
                regatta("run", "--name", f"r{i}", "--", "echo", "hello")
            link = regatta("ui", "--print").strip()
            times = []
            with sync_playwright() as p:
                browser = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
                context = browser.new_context()
                page = context.new_page()
                page.goto(link)
                page.locator("[data-row]").first.wait_for()
                session = context.new_cdp_session(page)
                session.send("Network.setCacheDisabled", {"cacheDisabled": True})
                for _ in range(loads):
                    page.reload()
                    page.locator("[data-row]").first.wait_for()
                    times.append(page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime"))
                browser.close()
        finally:
            subprocess.run([binary, "master", "--stop", "--cancel"], env=env, capture_output=True, timeout=60)
    print(f"first paint: {statistics.median(times):.0f} ms median, {max(times):.0f} ms worst of {loads} (limit {LIMIT_MS} ms)")
    return 0 if statistics.median(times) <= LIMIT_MS else 1


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 20))
