"""A server that is frozen closes nothing and answers nothing: the voter's page says so, and finds its way to one that
answers.

Somebody whose connection takes nothing in keeps nobody else waiting, and costs the server a bounded queue.
"""

import socket
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect
from websockets.sync.client import connect

from prefmh_web.campaigns.models import Lease, Vote
from tests.support.campaigns import invitation_path, make_campaign, make_config
from tests.support.installations import cookies_after_joining, open_socket, send
from tests.support.servers import Relay
from tests.voting.test_socket import lease_in

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


# Each of these characters is five once it is escaped: a hundred such pairs that nobody reads are more than what lies
# between two processes takes in.
LONG_TEXTS = "text\n" + "".join(f"Number {number}: {'&' * 9000}\n" for number in range(12))
LITTLE = 4096
VOTES = 20


def stuck_socket(site_url: str, path: str, cookies: str):
    """Open a socket whose client has room for little, and reads none of it."""
    site = urlsplit(site_url)
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, LITTLE)
    line.connect((site.hostname, site.port))
    headers = {"Cookie": cookies}
    address = site_url.replace("http", "ws", 1) + path
    patience = {"max_queue": 1, "close_timeout": 0.1}
    return connect(address, sock=line, origin=site_url, additional_headers=headers, compression=None, **patience)


def test_a_reader_that_takes_nothing_in_keeps_nobody_waiting(researcher, live_site, eventually):
    campaign = make_campaign(researcher, file=LONG_TEXTS, config=make_config(chains=30, steps=40))
    link, path = live_site.url + invitation_path(campaign), f"/ws{invitation_path(campaign)}"
    slow, quick = cookies_after_joining(link), cookies_after_joining(link)
    with stuck_socket(live_site.url, path, slow) as stuck:
        for _ in range(100):
            send(stuck, choice="continue")
        eventually(lambda: max(live_site.unsent()))
        with open_socket(live_site.url, path, quick) as socket:
            pair = socket.recv(timeout=20)
            for _ in range(VOTES):
                send(socket, lease=lease_in(pair), choice="first", elapsed_ms="500")
                pair = socket.recv(timeout=20)
        # The server keeps a pair or two that could not be sent, and not all that were asked for.
        assert max(live_site.unsent()) < 3 * len(pair)
    assert Vote.objects.count() == VOTES
