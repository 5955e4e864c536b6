"""A program as a judge, as its owner meets it: chosen in the setup, given a token, watched; read by everybody."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse

from prefmh_web.accounts.links import sign_in_path
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.models import Campaign
from prefmh_web.client import Judge
from tests.flows.test_browser import open_page as open_page
from tests.flows.test_tabs import NARROW, RULES
from tests.support.stack import make_draft, wait_until_idle

pytestmark = pytest.mark.browser
WIDE = {"width": 1280, "height": 900}


def can_be_read(page) -> None:
    """Fail if a rule of WCAG 2.2 A or AA is broken in light or dark, or a narrow screen scrolls sideways."""
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        found = Axe().run(page, options={"runOnly": RULES}).response["violations"]
        assert [(scheme, wrong["id"], wrong["nodes"][0]["html"][:200]) for wrong in found] == []
    page.set_viewport_size({"width": NARROW, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW
    page.set_viewport_size(WIDE)


def test_a_program_is_chosen_given_a_token_and_watched(open_page, live_site, researcher):
    draft = make_draft(researcher)
    page = open_page(sign_in_path(researcher), viewport=WIDE)
    page.goto(reverse("console:edit", args=[draft.pk]))
    question = page.locator(".question-block").first
    assert not question.get_by_label("Name of the program").is_visible()
    question.get_by_label("Who answers?").select_option("A program of yours, over the API")
    question.get_by_label("Name of the program").fill("by length")
    question.get_by_label("Votes on a pair, at most").fill("3")
    page.get_by_role("button", name="Save").first.click()
    page.get_by_text("For a program that always answers the same, ask for 1 vote").first.wait_for()
    question = page.locator(".question-block").first
    assert question.get_by_label("Name of the program").input_value() == "by length"
    question.get_by_label("Its answers are independent draws").check()
    page.get_by_role("button", name="Save").first.click()
    page.get_by_text("answers by your program by length, independent draws").first.wait_for()

    lifecycle.start(Campaign.objects.get(pk=draft.pk))
    wait_until_idle()
    page.goto(draft.get_absolute_url())
    page.get_by_text("no token").wait_for()
    page.get_by_role("link", name="Programs").click()
    page.get_by_role("button", name="Make a token").click()
    plain = page.get_by_label("The new token of by length").input_value()
    can_be_read(page)
    with Judge(live_site.url, plain) as judge:
        question = next(judge.questions())
        assert judge.answer(question, "first").counted
    page.goto(draft.get_absolute_url())
    page.get_by_text("1 vote, holds 0 questions now").wait_for()
    page.goto(reverse("console:programs", args=[draft.pk]))
    assert plain not in page.content()
    can_be_read(page)
    page.get_by_role("button", name="Withdraw").click()
    page.get_by_text("It is refused from now on").wait_for()
