"""A server that is frozen closes nothing and answers nothing: the voter's page says so, and finds its way to one that
answers.
"""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from prefmh_web.campaigns.models import Lease, Vote
from tests.support.campaigns import invitation_path
from tests.support.servers import Relay

pytestmark = pytest.mark.browser

SAYS_SO_WITHIN_MS = 20_000


@pytest.fixture
def relay(live_site):
    relay = Relay([urlsplit(live_site.url).port])
    relay.start()
    yield relay
    relay.stop()


@pytest.fixture
def page(chromium, relay, campaign) -> Page:
    """A voter's page that shows a pair, on a connection that the test may freeze."""
    context = chromium.new_context(base_url=relay.url)
    page = context.new_page()
    page.goto(invitation_path(campaign))
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/vote/")
    # The socket is open once the person is noted as present; and sooner than this the page takes no answer.
    page.wait_for_timeout(1000)
    yield page
    context.close()


def vote(page: Page) -> str:
    """Choose the first one and return the pair's key."""
    key = page.locator("input[name=lease]").input_value()
    page.keyboard.press("ArrowLeft")
    return key


def expect_the_next_pair(page: Page, key: str) -> None:
    expect(page.locator("input[name=lease]")).not_to_have_value(key, timeout=40_000)
    expect(page.locator("#connection")).to_be_hidden()


def test_a_page_whose_server_vanishes_votes_on_another_connection(page, relay):
    # What was sent to it is lost, and it never closes anything.
    relay.lose_connections()
    key = vote(page)
    expect_the_next_pair(page, key)
    assert [str(stored.key) for stored in Vote.objects.all()] == [key]


def test_a_server_that_goes_on_after_a_while_has_the_vote_once(page, relay):
    relay.freeze()
    key = vote(page)
    expect(page.locator("#connection")).to_contain_text("does not answer. Your vote is kept", timeout=SAYS_SO_WITHIN_MS)
    assert not Vote.objects.exists()
    relay.thaw()
    expect_the_next_pair(page, key)
    assert [str(stored.key) for stored in Vote.objects.all()] == [key]


def test_a_page_with_nothing_on_its_way_is_left_in_peace(page, relay):
    relay.freeze()
    page.wait_for_timeout(10_000)
    expect(page.locator("#connection")).to_be_hidden()
    relay.thaw()
    key = vote(page)
    expect_the_next_pair(page, key)
    assert Lease.objects.filter(key=key, ending=Lease.Ending.VOTED).exists()
