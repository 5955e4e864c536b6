"""One process: tasks on threads, a channel layer that other threads may use, ports, links.

Connections that ask for nothing are closed; whoever asks, uploads, votes or waits for a vote is not disturbed.
"""

import asyncio
import contextlib
import logging
import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from celery import shared_task
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from prefmh_web.embedded import Clock, site_url
from prefmh_web.transport.layers import ProcessLayer
from tests.support.campaigns import invitation_path
from tests.support.installations import cookies_after_joining, open_socket, send
from tests.support.process import LiveServer, wait_until_idle

seen = []


@shared_task
def note(value):
    seen.append((value, threading.current_thread().name))
    if value == "queue another":
        note.delay("another")


@shared_task
def fail():
    raise ZeroDivisionError("on purpose")


def test_tasks_run_on_other_threads_and_idle_waits_for_those_they_queue(db):
    seen.clear()
    note.delay("queue another")
    wait_until_idle()
    assert [value for value, _ in seen] == ["queue another", "another"]
    assert all(name.startswith("task") for _, name in seen)


def test_a_failing_task_is_logged_and_harms_no_other(db, caplog):
    seen.clear()
    with caplog.at_level(logging.ERROR, logger="prefmh_web"):
        fail.delay()
        note.delay("after")
        wait_until_idle()
    assert "on purpose" in caplog.text
    assert [value for value, _ in seen] == ["after"]


def test_a_message_from_another_thread_wakes_its_reader():
    layer = ProcessLayer()

    async def receive() -> dict:
        channel = await layer.new_channel()
        await layer.group_add("group", channel)
        message = {"type": "refresh"}
        threading.Thread(target=asyncio.run, args=(layer.group_send("group", message),)).start()
        return await asyncio.wait_for(layer.receive(channel), 10)

    assert asyncio.run(receive()) == {"type": "refresh"}
    # Nobody listens any more: a message to a closed loop is dropped, as to a page that has gone.
    asyncio.run(layer.group_send("group", {"type": "refresh"}))


def test_the_clock_ticks_at_once_and_stops():
    ticked = threading.Event()
    clock = Clock(ticked.set, every_s=60)
    clock.start()
    assert ticked.wait(10)
    clock.stop()
    assert not clock.is_alive()


@pytest.mark.parametrize("url", ["http://x:port", "http://x?y", "http://x/y", "ftp://x", "http://anna@x", "http://"])
def test_an_address_that_nobody_could_open_is_refused(url):
    with pytest.raises(CommandError, match="--url must be an address such as"):
        site_url("127.0.0.1", 8000, url)


@pytest.mark.parametrize("arguments", [("--researcher", "a b"), ("--port", "²")])
def test_serve_refuses_what_it_cannot_use(arguments, idle_tasks):
    with pytest.raises(CommandError, match=r"cannot be a user name|must be a number from 1 to 65535"):
        call_command("serve", *arguments)
    assert not User.objects.filter(username="a b").exists()


HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
PATIENCE_S = 0.4


@pytest.fixture
def site(idle_tasks, monkeypatch) -> Iterator[LiveServer]:
    monkeypatch.setattr("prefmh_web.embedded.HEAD_WITHIN_S", PATIENCE_S)
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
