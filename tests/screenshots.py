"""Takes the README's screenshots from a running demo: `uv run --group dev python -m tests.screenshots`."""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "static" / "screenshots"
PORT = 8791
# Long enough for the simulated people to have made some history.
HISTORY_S = 60
MOST_SKIPS = 5
# Of the smaller molecule of a pair in a picture.
FEWEST_STROKES = 12


def main() -> None:
    """Start the demo with simulated voters, take the pictures, stop it."""
    argparse.ArgumentParser(description="Replaces the README's screenshots by new ones.").parse_args()
    with tempfile.TemporaryDirectory() as data:
        log = Path(data) / "demo.log"
        with log.open("w") as file:
            command = [sys.executable, "manage.py", "demo", "--simulate", "5", "--port", str(PORT)]
            demo = subprocess.Popen(
                command, cwd=ROOT, env={**os.environ, "PREFMH_DATA": data}, stdout=file, stderr=file
            )
        try:
            while "Serving" not in log.read_text():
                if demo.poll() is not None:
                    raise SystemExit(f"the demo did not start: {log.read_text()}")
                time.sleep(0.2)
            time.sleep(HISTORY_S)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
                take(browser, log.read_text())
                browser.close()
        finally:
            demo.terminate()
            demo.wait()


def take(browser: Browser, log: str) -> None:
    """Take every picture of a demo whose links stand in `log`."""
    sign_in = re.search(r"http\S+sesame=\S+", log).group()
    texts, molecules, images = re.findall(r"http\S+/join/\S+/", log)
    desktop, phone = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
    for name, link, size, scheme in (
        ("vote-texts", texts, desktop, "light"),
        ("vote-molecules", molecules, desktop, "light"),
        ("vote-images", images, desktop, "light"),
        ("vote-texts-phone", texts, phone, "light"),
        ("vote-molecules-phone", molecules, phone, "dark"),
        ("vote-images-phone", images, phone, "light"),
    ):
        is_phone = size is phone
        context = browser.new_context(viewport=size, color_scheme=scheme, is_mobile=is_phone, has_touch=is_phone)
        page = context.new_page()
        page.goto(link)
        page.get_by_role("button", name="Start").click()
        page.wait_for_selector(".sides")
        skip_what_shows_little(page)
        save(page, name)
        context.close()
    page = browser.new_context(viewport={"width": 1280, "height": 1000}).new_page()
    page.goto(sign_in)
    page.get_by_role("link", name="Molecules").click()
    page.wait_for_selector("#board")
    page.get_by_text("They are drawn once objects have been measured").wait_for(state="hidden", timeout=90_000)
    save(page, "campaign-live")


def skip_what_shows_little(page: Page) -> None:
    """Skip pairs of molecules of which one has only a few atoms, while there are others."""
    for _ in range(MOST_SKIPS):
        sources = page.eval_on_selector_all(".sides img", "images => images.map(image => image.currentSrc)")
        drawn = [page.request.get(source).text() for source in sources if "molecule" in source]
        if all(svg.count("<path") >= FEWEST_STROKES for svg in drawn):
            return
        lease = page.locator("[name=lease]").first.input_value()
        page.keyboard.press("s")
        page.wait_for_function("key => document.querySelector('[name=lease]').value !== key", arg=lease)


def save(page: Page, name: str) -> None:
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(500)
    page.screenshot(path=FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
