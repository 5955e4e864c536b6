"""Receivers of webhooks that hang, flood, redirect or may not be called: each costs what one request costs, no more."""

import socket

import pytest
from django.core.files.base import ContentFile

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import drafts, webhooks
from prefmh_web.campaigns.models import Catalog, Comparison, Delivery, DeliveryAttempt, Webhook
from tests.support.receiver import Receiver, answers, hangs, trickles
from tests.support.stack import TEXTS, make_recipe, wait_until_idle

EVENTS = Webhook.Event.values
DRAFT = {"instructions": "", "lease_seconds": 120, "recipe": make_recipe()}

pytestmark = pytest.mark.usefixtures("allowed")


def test_a_redirect_is_not_followed_and_nothing_private_is_called(hook, receiver):
    inside = Receiver()
    for code in (301, 302, 307, 308):
        receiver.behave = answers(code, Location=inside.url)
        webhooks.test(hook[0])
        wait_until_idle()
    inside.stop()
    assert inside.requests == []
    assert {each.problem for each in DeliveryAttempt.objects.all()} == {
        "the receiver answered with a redirect, which is not followed; enter its final address"
    }


def test_a_private_address_is_called_only_where_the_site_allows_it(hook, receiver, settings):
    settings.WEBHOOK_ALLOW_PRIVATE = ()
    webhooks.test(hook[0])
    wait_until_idle()
    assert receiver.requests == []
    attempt = DeliveryAttempt.objects.get()
    assert attempt.code is None
    assert "127.0.0.1 is not a public address" in attempt.problem
    assert "WEBHOOK_ALLOW_PRIVATE" in attempt.problem


def test_a_host_that_was_taken_off_the_list_is_called_no_more(hook, receiver, settings):
    settings.WEBHOOK_ALLOWED_HOSTS = ()
    webhooks.test(hook[0])
    wait_until_idle()
    assert receiver.requests == []
    assert "WEBHOOK_ALLOWED_HOSTS" in DeliveryAttempt.objects.get().problem


def test_ten_megabytes_are_not_read(hook, receiver):
    written = []

    def floods(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(10 * 2**20))
        handler.end_headers()
        for _ in range(160):
            try:
                handler.wfile.write(b"\0<b>" * 2**14)
            except OSError:
                break
            written.append(2**16)

    receiver.behave = floods
    webhooks.test(hook[0])
    wait_until_idle()
    attempt = DeliveryAttempt.objects.get()
    assert (attempt.code, attempt.problem) == (200, "")
    assert attempt.reply == " <b>" * 250
    assert Delivery.objects.get().status == "delivered"
    receiver.stop()
    # What the sockets of both sides hold has left the receiver; the rest never does.
    assert sum(written) < 10 * 2**20


@pytest.mark.parametrize("how", ["hangs", "trickles its head", "speaks no HTTP"])
def test_a_receiver_that_hangs_is_left_in_time(hook, receiver, how):
    if how == "hangs":
        receiver.behave = hangs(receiver)
    elif how == "trickles its head":
        receiver.behave = trickles(receiver, b"HTTP/1.1 200 OK\r\nX-Long: ")
    else:
        receiver.behave = trickles(receiver, b"")
    webhooks.test(hook[0])
    wait_until_idle()
    attempt = DeliveryAttempt.objects.get()
    assert attempt.code is None
    assert attempt.problem
    assert Delivery.objects.get().is_waiting


def test_a_receiver_that_hangs_up_is_told_of_by_its_address(hook, receiver):
    """The log of a webhook speaks of what its page calls so."""
    receiver.behave = lambda handler: handler.connection.shutdown(socket.SHUT_RDWR)
    webhooks.test(hook[0])
    wait_until_idle()
    assert "should the address begin with https://?" in DeliveryAttempt.objects.get().problem


def test_an_answer_counts_though_its_body_never_ends(hook, receiver):
    receiver.behave = trickles(receiver, b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nTaken in. ")
    webhooks.test(hook[0])
    wait_until_idle()
    attempt = DeliveryAttempt.objects.get()
    assert (attempt.code, attempt.problem) == (200, "")
    assert attempt.reply.startswith("Taken in. x")


def test_hanging_receivers_keep_no_campaign_waiting(campaign, receiver, settings, researcher, eventually):
    """More of them than there are threads: a campaign starts and draws its pairs while all of them hang."""
    settings.WEBHOOK_TIMEOUT_SECONDS = 60
    stuck = [Receiver() for _ in range(6)]
    for each in stuck:
        each.behave = hangs(each)
        made, _ = webhooks.make(campaign, each.url, EVENTS)
        webhooks.test(made)
        webhooks.test(made)
    eventually(lambda: sum(len(each.requests) for each in stuck) >= 4)
    other = drafts.create(owner=researcher, name="Other", file=ContentFile(TEXTS), filename="o.csv", **DRAFT)
    eventually(lambda: Catalog.objects.get(campaign=other).status == Catalog.Status.READY)
    webhooks.make(other, receiver.url, EVENTS)
    lifecycle.start(other)
    eventually(lambda: Comparison.objects.filter(chain__campaign=other).count() == other.parsed_recipe.chains)
    assert not DeliveryAttempt.objects.exists()
    # One request at a time for each.
    assert max(len(each.requests) for each in stuck) == 1
    for each in stuck:
        each.stop()
    wait_until_idle()
    assert [event["type"] for event in receiver.events] == ["campaign.started"]
