"""Prompts as a researcher meets them: a preset, words of one's own, the preview, a try with clicks."""

import re

import pytest
from django.urls import reverse

from prefmh_web.accounts.links import sign_in_path
from prefmh_web.campaigns.models import Campaign, JudgeTrial
from tests.flows.test_model_costs import by_model, draft, endpoint, script

__all__ = ["endpoint", "script"]

pytestmark = pytest.mark.browser


def is_as_wide_as_the_screen(page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def fits_both_screens(page) -> bool:
    fits = []
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 900})
        fits.append(is_as_wide_as_the_screen(page))
    page.set_viewport_size({"width": 1280, "height": 900})
    return all(fits)


def test_a_prompt_is_written_seen_and_tried(chromium, live_site, researcher, endpoint, eventually):
    campaign = draft(researcher, by_model())
    desk = chromium.new_context(base_url=live_site.url, viewport={"width": 1280, "height": 900}).new_page()
    desk.goto(sign_in_path(researcher))
    desk.goto(reverse("console:edit", args=[campaign.pk]))
    prompt = desk.locator("details:has(> .columns > .group > .own-prompt)").first
    prompt.locator("summary").first.click()
    # This program's words, as long as there are no others.
    prompt.get_by_text("This program’s words").wait_for()

    prompt.get_by_label("Preset").select_option("stories")
    prompt.get_by_text("Your own words").wait_for()
    prompt.locator("pre", has_text="You judge the opening paragraph of a short story").first.wait_for()
    template = prompt.get_by_label("User template")
    template.fill("{{question}} A: {{first}} B: {{secnd}}")
    prompt.get_by_text("knows no {{secnd}}").wait_for()
    template.fill("Question: {{question}}\nA: {{first}}\nB: {{second}}\nSay A or B, nothing else:")
    prompt.locator("pre", has_text="Say A or B, nothing else:").first.wait_for()
    prompt.get_by_text("Exact body: POST /chat/completions").first.click()
    body = prompt.locator("pre.body").first
    assert '"model":"tiny"' in body.inner_text()
    assert fits_both_screens(desk)

    # A question that is added has a prompt and a preview of its own.
    desk.get_by_role("button", name="Add a question").click()
    desk.locator("[name='judges.1.question']").wait_for()
    added = desk.locator(".question-block").last
    added.get_by_label("Question").fill("Which is older?")
    added.get_by_label("A model", exact=True).check()
    added.locator("details:has(> .columns > .group > .own-prompt) > summary").click()
    added.locator("pre", has_text="Which is older?").first.wait_for()

    prompt.get_by_role("button", name="Save and try this judge").click()
    desk.get_by_role("heading", name="Try a judge").wait_for()
    campaign.refresh_from_db()
    assert campaign.config_data["judges"][0]["source"]["prompt"]["user"].endswith("Say A or B, nothing else:")
    desk.get_by_label(re.compile("Sample pairs")).fill("2")
    desk.get_by_role("button", name="Try this judge").click()
    assert eventually(lambda: JudgeTrial.objects.filter(status=JudgeTrial.Status.DONE).exists())
    desk.locator(".tried-pair").nth(1).wait_for()
    desk.get_by_text("Position lean").wait_for()
    for pair in (0, 1):
        desk.locator(".tried-pair").nth(pair).get_by_role("button", name="I prefer this one").first.click()
        desk.locator(".tried-pair").nth(pair).locator("button[aria-pressed=true]").wait_for()
    desk.locator(".tried-pair").first.get_by_text("tokens in").first.wait_for()
    assert fits_both_screens(desk)
    # It can be left, and is found again.
    desk.goto(campaign.get_absolute_url())
    desk.locator("#prompts").get_by_role("link", name="Try this judge").first.click()
    desk.get_by_text("Position lean").wait_for()
    assert Campaign.objects.get().status == Campaign.Status.DRAFT


def test_the_enter_key_saves_and_tries_nothing(chromium, live_site, researcher, endpoint):
    campaign = draft(researcher, by_model())
    desk = chromium.new_context(base_url=live_site.url).new_page()
    desk.goto(sign_in_path(researcher))
    desk.goto(reverse("console:edit", args=[campaign.pk]))
    desk.locator("[name='judges.0.question']").press("Enter")
    desk.locator("#prompts").wait_for()
    assert not JudgeTrial.objects.exists()
