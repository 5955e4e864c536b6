"""Columns of a list on the voting page as a browser draws it: readable on a narrow screen, and no way into the page."""

import os

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from prefmh_web.campaigns.models import Vote
from tests.flows.test_context import NAMES, recipe_of
from tests.support import files
from tests.support.chromium import press_and_wait
from tests.support.stack import invitation_path, make_campaign

pytestmark = pytest.mark.browser
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
SCRIPT = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"
HEIGHTS = """() => [
  document.querySelector("#panel > .context").getBoundingClientRect().height,
  ...[...document.querySelectorAll("button.option")].map(
    (each) => [each.getBoundingClientRect().height, each.getAttribute("aria-label")]),
]"""
ARABIC = "بيت أحمر كبير على التل. " * 40


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (360, 640)])
def test_long_and_hostile_columns_leave_room_for_both_objects(chromium, live_site, researcher, width, height):
    # On a narrow screen the page grows with its objects.
    names = [name * (40 if width < 641 else 1) for name in NAMES]
    rows = [[name, ARABIC + SCRIPT, f"{place} " + "w" * 300 * (place == 0)] for place, name in enumerate(names)]
    table = files.table([["text", "source", "quality"], *rows])
    campaign = make_campaign(researcher, file=table, recipe=recipe_of())
    context = chromium.new_context(base_url=live_site.url, viewport={"width": width, "height": height})
    page = context.new_page()
    page.goto(invitation_path(campaign))
    page.locator("button.big").click()
    page.wait_for_selector("button.option")
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/context-{width}.png", full_page=True)
    assert page.title() != "taken"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    expect(page.locator("#panel > .context dd")).to_have_css("direction", "rtl")
    # In one look: when its socket connects, the page draws the pair again.
    context_height, *options = page.evaluate(HEIGHTS)
    assert context_height < 0.4 * height
    assert len(options) == 2
    for option_height, label in options:
        assert option_height > 90
        assert "Source text" not in label
    found = Axe().run(page, options=RULES).response["violations"]
    assert not [(wrong["id"], wrong["nodes"][0]["html"][:80]) for wrong in found]
    press_and_wait(page, "ArrowLeft")
    assert Vote.objects.count() == 1
    context.close()
