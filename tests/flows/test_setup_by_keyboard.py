"""A campaign is set up and tried in its sandbox by keyboard alone; every page of it fits a narrow screen."""

from __future__ import annotations

import pytest

from prefmh_web.accounts.roles import sign_in_path
from prefmh_web.campaigns.models import Campaign
from tests.console.test_sandbox import STUDY
from tests.flows.test_browser import open_page as open_page
from tests.flows.test_keyboard import Keyboard
from tests.support.campaigns import make_draft, set_study

pytestmark = pytest.mark.browser
NARROW = {"width": 360, "height": 800}
_UNFOLD = "document.querySelectorAll('details').forEach((part) => { part.open = true; })"
_PAIRS = 6


def test_a_setup_and_its_sandbox_by_keyboard_alone(open_page, researcher):
    page = open_page(sign_in_path(researcher))
    keyboard = Keyboard(page)
    keyboard.press("New campaign", then="What is compared")
    keyboard.tab_to("Name of the campaign")
    page.keyboard.type("By keyboard")
    # A card is chosen with an arrow.
    keyboard.tab_to("Your own list", "input")
    page.keyboard.press("ArrowUp")
    keyboard.tab_to("Question")
    page.keyboard.type("Which is calmer?")
    keyboard.tab_to("Which object stands first", "summary")
    page.keyboard.press("Enter")
    keyboard.tab_to("Which object is shown first", "select")
    keyboard.press("^Create$", then="After the start, only the name")
    assert Campaign.objects.get().config_data["space"]["kind"] == "images"
    page.locator("#first-pair").get_by_text("Which is calmer?").wait_for()
    page.locator("#first-pair img").nth(1).wait_for()
    assert page.locator("#first-pair .reading").first.bounding_box()["height"] > 100

    keyboard.press("Vote as a participant would", then="A sandbox.")
    # The button that begins has the focus already.
    page.keyboard.press("Enter")
    for number in range(_PAIRS):
        page.get_by_text(f"You: {number} vote").wait_for()
        # Until its scripts are there, the page hears no key.
        page.wait_for_load_state()
        page.keyboard.press(("ArrowLeft", "2")[number % 2])
    page.get_by_text("Your part is complete").wait_for()
    keyboard.press("Begin again", then="Which of the two?")
    keyboard.press("Back to the setup", then="Setup of By keyboard")
    assert not keyboard.lost


def test_pages_of_a_setup_fit_a_narrow_screen(open_page, researcher, idle_tasks):
    draft = make_draft(researcher)
    set_study(draft, STUDY, ())
    idle_tasks()
    page = open_page(sign_in_path(researcher))
    page.set_viewport_size(NARROW)
    for part in ("../new/", "", "setup/", "participants/", "protocol/", "sandbox/"):
        page.goto(f"{draft.get_absolute_url()}{part}")
        page.wait_for_load_state("networkidle")
        page.evaluate(_UNFOLD)
        wide, has = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= has, part
