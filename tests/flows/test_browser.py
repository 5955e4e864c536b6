"""Real Chromium: people vote, the researcher watches, the record agrees."""

import re
import time

import pytest
from playwright.sync_api import Page, expect

from prefmh_web.accounts.models import sign_in_path
from prefmh_web.campaigns.models import Comparison, Vote
from tests.support.campaigns import invitation_path, make_campaign, make_config
from tests.support.installations import join, lease_on, press_and_wait, wait_for_another_pair
from tests.support.records import assert_record_is_whole, assert_replay_passes, table

pytestmark = pytest.mark.browser


def never_reloads(page: Page) -> None:
    page.evaluate("window.sameDocument = true")


def test_two_people_vote_and_the_chain_moves_on_every_page(open_page, researcher, tmp_path):
    judges = [{"question": "Which is darker?", "votes": 2}]
    campaign = make_campaign(researcher, config=make_config(judges=judges, chains=1, steps=40))
    watcher = open_page(sign_in_path(researcher))
    watcher.get_by_role("link", name=campaign.name).click()
    expect(watcher.locator("#board")).to_contain_text("of 40")
    people = [join(open_page, campaign), join(open_page, campaign)]
    for page in (watcher, *people):
        never_reloads(page)

    # N = 2 of two different people on one chain: each waits for the other, and goes on by itself. Whoever looks first
    # has a pair that one vote may settle, so that a few steps may be one person's alone.
    by_votes = Comparison.objects.filter(verdict__isnull=False, votes__isnull=False).distinct()
    voters = Vote.objects.values("voter").distinct()
    deadline = time.monotonic() + 60
    while by_votes.count() < 4 or voters.count() < 2:
        assert time.monotonic() < deadline
        for page, key in zip(people, ("ArrowLeft", "2"), strict=True):
            if page.locator("input[name=lease]").count():
                press_and_wait(page, key)

    expect(watcher.locator(".steps tbody tr").first).to_be_visible()
    expect(watcher.locator(".figures")).to_contain_text(re.compile(r"People online\s*2"))
    decided = campaign.chains.get().step
    expect(watcher.locator(".figures")).to_contain_text(re.compile(rf"Steps decided\s*{decided}"))
    for page in (watcher, *people):
        assert page.evaluate("window.sameDocument") is True

    watcher.get_by_role("link", name="Record").click()
    with watcher.expect_download() as download:
        watcher.get_by_role("link", name="Download all (ZIP)").click()
    path = tmp_path / "export.zip"
    download.value.save_as(path)
    rows = table(path, "votes.csv")
    assert [row["number"] for row in rows if row["number"]]
    assert len(rows) == Vote.objects.count()
    assert {row["voter"] for row in rows} == {"1", "2"}
    assert campaign.voters.count() == 2
    assert_replay_passes(path)
    assert_record_is_whole(campaign)


def test_a_double_click_is_one_vote(open_page, campaign):
    page = join(open_page, campaign)
    for pause_ms in (0, 60, 120, 180):
        page.wait_for_timeout(400)
        before = Vote.objects.count()
        box = page.locator(".option").first.bounding_box()
        page.mouse.click(box["x"] + 50, box["y"] + 50)
        page.wait_for_timeout(pause_ms)
        # By now the next pair may stand there; this click was not meant for it.
        page.mouse.click(box["x"] + 50, box["y"] + 50)
        page.wait_for_timeout(400)
        assert Vote.objects.count() == before + 1


def test_a_choice_can_be_undone_until_it_is_sent(open_page, researcher):
    config = make_config(judges=[{"question": "Which is darker?", "votes": 1}])
    campaign = make_campaign(researcher, config=config, undo=True)
    page = join(open_page, campaign)
    lease = lease_on(page)
    page.wait_for_timeout(300)
    page.keyboard.press("1")
    expect(page.locator("#held")).to_be_visible()
    page.keyboard.press("u")
    expect(page.locator("#held")).to_be_hidden()
    # Longer than a choice is held.
    page.wait_for_timeout(2_500)
    assert not Vote.objects.exists()
    assert lease_on(page) == lease
    page.keyboard.press("2")
    expect(page.locator("input[name=lease]")).not_to_have_value(lease)
    [vote] = Vote.objects.all()
    assert vote.chosen_side == "second"
    assert vote.elapsed_ms < 10_000


def test_a_choice_that_waits_is_sent_although_the_connection_was_lost_meanwhile(open_page, researcher, live_site):
    config = make_config(judges=[{"question": "Which is darker?", "votes": 1}])
    page = join(open_page, make_campaign(researcher, config=config, undo=True))
    lease = lease_on(page)
    page.wait_for_timeout(600)
    page.keyboard.press("2")
    # The same pair comes once more, in new elements.
    with page.expect_websocket():
        live_site.drop_connections()
    wait_for_another_pair(page, lease)
    assert Vote.objects.get().chosen_side == "second"


def test_a_lost_connection_loses_no_vote(open_page, campaign, live_site):
    page = join(open_page, campaign)
    first = lease_on(page)
    page.wait_for_timeout(300)
    live_site.drop_connections()
    page.keyboard.press("ArrowLeft")
    wait_for_another_pair(page, first)
    assert Vote.objects.filter(key=first).count() == 1
    never_reloads(page)
    press_and_wait(page, "ArrowLeft")
    assert Vote.objects.count() == 2
    assert page.evaluate("window.sameDocument") is True
    page.context.set_offline(True)
    live_site.drop_connections()
    last = lease_on(page)
    expect(page.get_by_text("Connection lost")).to_be_visible()
    page.wait_for_timeout(300)
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_text("Your vote is kept in this page")).to_be_visible()
    page.context.set_offline(False)
    wait_for_another_pair(page, last)
    assert Vote.objects.count() == 3


def test_without_script_the_form_votes(open_page, campaign):
    page = join(open_page, campaign, java_script_enabled=False)
    first = lease_on(page)
    page.locator("button[value=second]").click()
    assert lease_on(page) != first
    vote = Vote.objects.get()
    assert (str(vote.key), vote.chosen_side, vote.elapsed_ms, vote.layout) == (first, "second", None, "")


def test_where_no_socket_opens_the_page_votes_by_post(open_page, campaign):
    page = open_page(invitation_path(campaign))
    page.add_init_script("window.WebSocket = class extends EventTarget { readyState = 0; send() {} close() {} };")
    page.get_by_role("button", name="Start").click()
    first = lease_on(page)
    page.wait_for_load_state()
    page.wait_for_timeout(1_000)
    # Before the page gives up on its socket.
    page.keyboard.press("ArrowRight")
    expect(page.locator("button.chosen")).to_be_visible()
    wait_for_another_pair(page, first)
    vote = Vote.objects.get()
    assert str(vote.key) == first
    assert vote.elapsed_ms < 4_000
    # The next pages know.
    page.wait_for_selector("html[data-socket=none]", timeout=3_000)
    press_and_wait(page, "ArrowRight")
    assert Vote.objects.count() == 2


def test_a_pause_reaches_the_voters_and_a_resume_too(open_page, campaign, researcher):
    watcher = open_page(sign_in_path(researcher))
    watcher.get_by_role("link", name=campaign.name).click()
    page = join(open_page, campaign)
    watcher.get_by_role("button", name="Pause").click()
    expect(watcher.get_by_role("button", name="Resume")).to_be_visible()
    press_and_wait(page, "ArrowLeft")
    expect(page.locator("h1")).to_have_text("Paused")
    assert Vote.objects.filter(number=1).count() == 1
    watcher.get_by_role("button", name="Resume").click()
    expect(page.locator(".option").first).to_be_visible()


def test_a_link_is_copied_also_without_https(open_page, campaign, researcher):
    page = open_page()
    # As browsers have it on a page that comes by http from another machine.
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined });")
    page.goto(sign_in_path(researcher))
    page.goto(campaign.get_absolute_url())
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    page.evaluate("document.body.append(Object.assign(document.createElement('textarea'), { id: 'pasted' }))")
    page.locator("#pasted").press("Control+v")
    expect(page.locator("#pasted")).to_have_value(re.compile(rf"{invitation_path(campaign)}$"))
