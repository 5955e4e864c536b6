"""Takes the README's screenshots from a running demo: `uv run --group dev python -m tests.screenshots`."""

import argparse
import re
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.installations import ARGUMENTS, CHROMIUM, ROOT, Program, in_folder, lease_on, wait_for_another_pair

FOLDER = ROOT / "static" / "screenshots"
# Long enough for the simulated people to have made some history.
HISTORY_S = 60
MAX_SKIPS = 5
# Of the smaller molecule of a pair in a picture.
MIN_STROKES = 12


def main() -> None:
    """Start the demo with simulated voters, take the pictures, stop it."""
    argparse.ArgumentParser(description="Replaces the README's screenshots by new ones.").parse_args()
    with tempfile.TemporaryDirectory() as data, sync_playwright() as playwright:
        program = Program(Path(data), in_folder(Path(data)))
        try:
            demo, _ = program.serve("demo", "--simulate", "5")
            time.sleep(HISTORY_S)
            browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(ARGUMENTS))
            take(browser, demo.log())
            browser.close()
        finally:
            program.stop()


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
    for _ in range(MAX_SKIPS):
        sources = page.eval_on_selector_all(".sides img", "images => images.map(image => image.currentSrc)")
        drawn = [page.request.get(source).text() for source in sources if "molecule" in source]
        if all(svg.count("<path") >= MIN_STROKES for svg in drawn):
            return
        lease = lease_on(page)
        page.keyboard.press("s")
        wait_for_another_pair(page, lease)


def save(page: Page, name: str) -> None:
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(500)
    page.screenshot(path=FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
