"""A panel in real browsers: set up by names, each panelist by its own link, one of them on two devices, one asleep."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from prefmh_web.accounts.links import sign_in_path
from prefmh_web.campaigns.models import Campaign, Comparison, Vote
from tests.support.campaigns import TEXTS, assert_replay_passes, everything_in, export_to

pytestmark = pytest.mark.browser
MS_TO_JUDGE = 400
IS_ANOTHER = "key => document.querySelector('input[name=lease]')?.value !== key"
NAMES = ("Ada Lovelace", "Grace Hopper")


def set_up(page, live_site, researcher, folder) -> Campaign:
    """Fill in the setup as a researcher does, and start."""
    file = folder / "texts.csv"
    file.write_text(TEXTS)
    page.goto(f"{live_site.url}{sign_in_path(researcher)}")
    page.goto(f"{live_site.url}/campaigns/new/")
    page.locator("input[name=name]").fill("Our panel")
    page.locator("input[name='space.catalog.file']").set_input_files(file)
    page.get_by_text("A panel of people whom you name").click()
    page.get_by_label("People of the panel").fill("\n".join(NAMES))
    page.locator("input[name='judges.0.question']").fill("Which is darker?")
    page.locator("input[name=chains]").fill("2")
    page.locator("input[name=steps]").fill("3")
    page.get_by_role("button", name="Create").click()
    page.get_by_text("25.0 % of the steps at best").wait_for()
    page.get_by_text("You can start.").wait_for()
    page.get_by_role("button", name="Start").click()
    page.get_by_role("link", name="Panel").first.click()
    page.get_by_role("heading", name="Links").wait_for()
    return Campaign.objects.get()


def open_link(chromium, live_site, link: str):
    page = chromium.new_context(base_url=live_site.url).new_page()
    page.goto(link)
    page.get_by_role("button", name="Start").click()
    page.locator("#question, .message").first.wait_for()
    return page


def answers_until_it_waits(page) -> None:
    """Choose the first object as long as there is a pair."""
    while page.locator("input[name=lease]").count():
        key = page.locator("input[name=lease]").input_value()
        # Sooner the page takes no answer.
        page.wait_for_timeout(MS_TO_JUDGE)
        page.keyboard.press("ArrowLeft")
        with suppress(PlaywrightTimeout):
            page.wait_for_function(IS_ANOTHER, arg=key, timeout=2000)


def test_a_panel_of_two_votes_to_the_end(chromium, live_site, researcher, idle_tasks, eventually, tmp_path):
    owner = chromium.new_context(base_url=live_site.url).new_page()
    campaign = set_up(owner, live_site, researcher, tmp_path)
    assert NAMES[0] in owner.content()
    links = [owner.get_by_label(f"Link of panelist {panelist}").input_value() for panelist in (1, 2)]
    first = open_link(chromium, live_site, links[0])
    answers_until_it_waits(first)
    # The other panelist sleeps: its chains wait, and the page says so with something to send.
    assert campaign.annotators.count() == 1
    if campaign.chains.filter(step__lt=3).exists():
        Comparison.objects.filter(verdict=None).update(opened_at=timezone.now() - timedelta(hours=2))
        owner.reload()
        reminder = owner.get_by_label("Reminder for panelist 2").input_value()
        assert links[1] in reminder
        owner.get_by_role("button", name="Note that panelist 2 was reminded").click()
        owner.get_by_text("1 time, the last time").wait_for()
    second = open_link(chromium, live_site, links[1])
    phone = open_link(chromium, live_site, links[1])
    assert campaign.annotators.count() == 2
    second.context.close()
    pages = [first, phone]

    def is_finished() -> bool:
        for page in pages:
            answers_until_it_waits(page)
        idle_tasks()
        return Campaign.objects.get(pk=campaign.pk).status == Campaign.Status.FINISHED

    eventually(is_finished, 40)
    assert set(Vote.objects.values_list("annotator__panelist", "judge__panelist")) <= {(1, 1), (2, 2)}
    export = export_to(campaign, tmp_path)
    assert_replay_passes(export)
    assert not any(name in everything_in(export) for name in NAMES)
    for page in pages:
        assert not any(name in page.content() for name in NAMES)
