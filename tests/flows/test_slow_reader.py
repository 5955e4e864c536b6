"""Somebody whose connection takes nothing in keeps nobody else waiting, and costs the server a bounded queue."""

import socket
from urllib.parse import urlsplit

from websockets.sync.client import connect

from prefmh_web.campaigns.models import Vote
from tests.annotate.test_socket import lease_in
from tests.support.campaigns import invitation_path, make_campaign, make_config
from tests.support.installations import cookies_after_joining, open_socket, send

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
