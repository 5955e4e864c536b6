"""A cap as a researcher meets it: the estimate, the pause with its reason, the cap raised, the campaign at its end."""

import re

import pytest

from prefmh_web.accounts.links import sign_in_path
from prefmh_web.campaigns.models import Campaign
from tests.flows.test_model_costs import by_model, draft, endpoint, script

__all__ = ["endpoint", "script"]

pytestmark = pytest.mark.browser


def is_as_wide_as_the_screen(page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_a_cap_is_reached_raised_and_resumed(chromium, live_site, researcher, endpoint, eventually):
    campaign = draft(researcher, by_model(), cost_cap="0.12")
    desk = chromium.new_context(base_url=live_site.url, viewport={"width": 1280, "height": 900}).new_page()
    desk.goto(sign_in_path(researcher))
    desk.goto(campaign.get_absolute_url())
    estimate = desk.locator("#model-estimate")
    estimate.get_by_text("48", exact=True).wait_for()
    estimate.get_by_text("price unknown until a request has been made").wait_for()
    desk.get_by_role("button", name="Start").click()
    desk.get_by_text("The cap of 0.12 is reached").wait_for()
    for width in (1280, 360):
        desk.set_viewport_size({"width": width, "height": 900})
        assert is_as_wide_as_the_screen(desk)
    desk.get_by_role("button", name="Resume").click()
    desk.get_by_text(re.compile("Raise the cap, then press Resume")).first.wait_for()
    desk.get_by_label("Models may cost at most").fill("5")
    desk.get_by_role("button", name="Change the caps").click()
    desk.get_by_text("The caps are changed. Press Resume to go on.").wait_for()
    desk.get_by_role("button", name="Resume").click()
    assert eventually(lambda: Campaign.objects.get().status == Campaign.Status.FINISHED)
    desk.locator("#model-costs").get_by_text("of at most 5.00").wait_for()
