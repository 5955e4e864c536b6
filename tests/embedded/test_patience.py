"""Connections that ask for nothing are closed; whoever asks, uploads, votes or waits for a vote is not disturbed."""

import contextlib
import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.support.campaigns import LiveServer, invitation_path
from tests.support.installations import cookies_after_joining, open_socket, send

HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
PATIENCE_S = 0.4


@pytest.fixture
def site(idle_tasks, monkeypatch) -> Iterator[LiveServer]:
    monkeypatch.setattr("prefmh_web.embedded.serving.HEAD_WITHIN_S", PATIENCE_S)
    site = LiveServer()
    site.start()
    yield site
    site.stop()


def connection_to(site: LiveServer) -> socket.socket:
    address = urlsplit(site.url)
    return socket.create_connection((address.hostname, address.port), timeout=20)


@pytest.mark.parametrize(
    "sent", [b"", b"G", HEAD, HEAD + b"\r\n" + HEAD], ids=["nothing", "a letter", "half", "one and a half"]
)
def test_half_a_request_is_not_waited_for(site, sent):
    with connection_to(site) as connection:
        connection.sendall(sent)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := connection.recv(1000):
                answer += piece
    assert answer.count(b"alive") == (HEAD + b"\r\n" in sent)


def trickle(connection: socket.socket) -> None:
    connection.sendall(HEAD)
    while True:
        connection.sendall(b"X: y\r\n")
        time.sleep(PATIENCE_S / 4)


def test_a_head_that_trickles_in_is_not_waited_for(site):
    with connection_to(site) as connection, pytest.raises((BrokenPipeError, ConnectionResetError)):
        trickle(connection)


def test_a_body_that_takes_its_time_arrives(site):
    with connection_to(site) as connection:
        connection.sendall(b"POST /no-such-page/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n")
        for _ in range(10):
            time.sleep(PATIENCE_S / 4)
            connection.sendall(b"x")
        assert b" 404 " in connection.recv(1000).splitlines()[0]


def test_an_open_page_stays_open(site, campaign):
    link = invitation_path(campaign)
    with open_socket(site.url, f"/ws{link}", cookies_after_joining(site.url + link)) as page:
        page.recv(timeout=10)
        time.sleep(4 * PATIENCE_S)
        send(page, choice="continue")
        assert page.recv(timeout=10)
