"""What webhooks are told, at a real receiver: signed, the same id at each attempt, and whatever it does the campaign
goes on.
"""

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from prefmh_web.api import delivery
from prefmh_web.api.tasks import sweep_webhooks
from prefmh_web.campaigns import dispatch, lifecycle
from prefmh_web.campaigns.lifecycle import deletion, webhooks
from prefmh_web.campaigns.models import Campaign, Delivery, DeliveryAttempt, Webhook
from tests.support.receiver import answers, is_signed
from tests.support.stack import make_campaign, make_draft, wait_until_idle

EVENTS = Webhook.Event.values

pytestmark = pytest.mark.usefixtures("allowed")


def later(moved: timedelta = timedelta(days=2)) -> None:
    """Let what waits for its next attempt wait no longer, and sweep."""
    Delivery.objects.filter(status="waiting").update(due_at=timezone.now() - moved)
    sweep_webhooks()
    wait_until_idle()


def test_a_started_campaign_is_told_with_a_signature_that_verifies(researcher, receiver):
    draft = make_draft(researcher)
    _, secret = webhooks.make(draft, receiver.url, EVENTS)
    lifecycle.start(draft)
    wait_until_idle()
    [(headers, body)] = receiver.requests
    assert is_signed(secret, headers, body)
    assert not is_signed(secret, headers, body.replace(b"started", b"stopped"))
    assert not is_signed(secret, headers | {"webhook-id": "another"}, body)
    [event] = receiver.events
    assert event["type"] == "campaign.started"
    assert event["id"] == headers["webhook-id"]
    assert event["data"]["campaign"] == {
        "id": draft.pk,
        "name": draft.name,
        "status": "running",
        "url": draft.get_absolute_url(),
    }
    assert str(draft.recipe["seed"]) not in body.decode()


def test_an_address_of_the_site_stands_in_front(hook, receiver, settings):
    settings.SITE_URL = "https://prefmh.example"
    webhooks.test(hook[0])
    wait_until_idle()
    [event] = receiver.events
    assert event["data"]["campaign"]["url"] == f"https://prefmh.example/campaigns/{hook[0].campaign_id}/"


def test_what_was_rolled_back_is_never_told(campaign, hook, receiver):
    with transaction.atomic():
        dispatch.campaign_finished(campaign)
        transaction.set_rollback(True)
    wait_until_idle()
    later()
    assert receiver.requests == []
    assert not Delivery.objects.exists()


def test_a_crash_between_commit_and_delivery_loses_nothing(campaign, hook, receiver, monkeypatch):
    """The process ends in that moment: no hint leaves it."""
    monkeypatch.setattr("prefmh_web.transport.publishing.publish", lambda hint: None)
    with transaction.atomic():
        dispatch.campaign_finished(campaign)
    monkeypatch.undo()
    wait_until_idle()
    assert receiver.requests == []
    sweep_webhooks()
    wait_until_idle()
    assert [event["type"] for event in receiver.events] == ["campaign.finished"]


def test_a_worker_that_dies_while_it_sends_keeps_the_webhook_for_a_moment_only(hook, receiver):
    Webhook.objects.update(claimed_until=timezone.now() + timedelta(seconds=30))
    webhooks.test(hook[0])
    wait_until_idle()
    assert receiver.requests == []
    Webhook.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))
    sweep_webhooks()
    wait_until_idle()
    assert len(receiver.requests) == 1


def test_a_failing_receiver_gets_the_same_event_again_until_it_is_given_up(hook, receiver):
    webhook, secret = hook
    receiver.behave = answers(500, b"Out of order.")
    webhooks.test(webhook)
    wait_until_idle()
    pauses = []
    while (found := Delivery.objects.get()).is_waiting:
        last = found.attempts.last()
        pauses.append(round((found.due_at - last.at).total_seconds() / 60))
        later()
    assert pauses == [1, 5, 30, 120, 480, 1440]
    assert found.status == "given-up"
    assert len(set(receiver.ids)) == 1
    assert len({body for _, body in receiver.requests}) == 1
    assert all(is_signed(secret, *each) for each in receiver.requests)
    assert {(each.code, each.reply, each.problem) for each in found.attempts.all()} == {
        (500, "Out of order.", "the receiver answered 500")
    }
    webhook.refresh_from_db()
    assert webhook.is_failing
    later()
    assert len(receiver.requests) == len(pauses) + 1


def test_what_was_given_up_is_sent_again_under_the_same_id(hook, receiver):
    webhook, _ = hook
    receiver.behave = answers(500)
    webhooks.test(webhook)
    wait_until_idle()
    Delivery.objects.update(status="given-up", tries=7)
    Webhook.objects.update(failures=7)
    receiver.behave = answers(200, b"Thank you.")
    webhooks.send_again(Delivery.objects.get())
    wait_until_idle()
    assert Delivery.objects.get().status == "delivered"
    assert len(set(receiver.ids)) == 1
    assert len(receiver.ids) == 2
    webhook.refresh_from_db()
    assert not webhook.is_failing


def test_a_new_secret_signs_at_once_and_the_one_before_for_a_day(hook, receiver):
    webhook, old = hook
    new = webhooks.renew_secret(webhook)
    assert new != old
    webhooks.test(webhook)
    wait_until_idle()
    assert is_signed(old, *receiver.requests[0])
    assert is_signed(new, *receiver.requests[0])
    Webhook.objects.update(previous_until=timezone.now() - timedelta(seconds=1))
    webhooks.test(webhook)
    wait_until_idle()
    assert not is_signed(old, *receiver.requests[1])
    assert is_signed(new, *receiver.requests[1])


def test_the_database_holds_no_secret(hook):
    _, secret = hook
    assert secret.removeprefix("whsec_") not in str(Webhook.objects.values().get())


def test_only_events_that_were_chosen_are_told(campaign, receiver):
    webhooks.make(campaign, receiver.url, ["step.suspended"])
    with transaction.atomic():
        dispatch.campaign_finished(campaign)
    wait_until_idle()
    assert receiver.requests == []
    assert not Delivery.objects.exists()


def test_several_webhooks_are_told_of_one_event_under_one_id(campaign, receiver):
    for _ in range(2):
        webhooks.make(campaign, receiver.url, EVENTS)
    with transaction.atomic():
        dispatch.campaign_finished(campaign)
    wait_until_idle()
    assert len(receiver.ids) == 2
    assert len(set(receiver.ids)) == 1


def test_a_deleted_campaign_takes_its_webhooks_and_their_log_with_it(campaign, hook, receiver):
    webhooks.test(hook[0])
    wait_until_idle()
    lifecycle.pause(campaign)
    deletion.request(campaign, campaign.name)
    wait_until_idle()
    assert not Campaign.objects.filter(pk=campaign.pk).exists()
    assert not Webhook.objects.exists()
    assert not DeliveryAttempt.objects.exists()


def test_a_campaign_that_is_being_deleted_tells_nothing(campaign, hook, receiver):
    webhook, _ = hook
    Campaign.objects.filter(pk=campaign.pk).update(status="deleting")
    with transaction.atomic():
        dispatch.campaign_finished(campaign)
    wait_until_idle()
    assert receiver.requests == []
    delivery.deliver(webhook.pk)
    assert receiver.requests == []


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://127.0.0.1/", "must begin with http"),
        ("http://user:secret@127.0.0.1/", "no user name or password"),
        ("http://evil.example/", "WEBHOOK_ALLOWED_HOSTS"),
        ("http://127.0.0.1/#part", "must hold no #"),
        ("http://2130706433/", "not the name of a host"),
    ],
)
def test_an_address_that_may_not_be_called_is_refused_where_it_is_entered(campaign, url, why):
    with pytest.raises(lifecycle.NotPossible, match=why):
        webhooks.make(campaign, url, EVENTS)
    assert not Webhook.objects.exists()


def test_a_public_address_is_told_over_https_only(campaign, settings):
    settings.WEBHOOK_ALLOWED_HOSTS = ("1.1.1.1",)
    webhook, _ = webhooks.make(campaign, "http://1.1.1.1/", EVENTS)
    webhooks.test(webhook)
    wait_until_idle()
    assert "over https:// only" in DeliveryAttempt.objects.get().problem


def test_there_is_an_end_to_webhooks(campaign, receiver):
    for _ in range(webhooks.MOST):
        webhooks.make(campaign, receiver.url, EVENTS)
    with pytest.raises(lifecycle.NotPossible, match="at most"):
        webhooks.make(campaign, receiver.url, EVENTS)


def test_a_removed_webhook_is_told_nothing_more(hook, receiver):
    webhook, _ = hook
    receiver.behave = answers(500)
    webhooks.test(webhook)
    wait_until_idle()
    webhooks.remove(webhook)
    later()
    assert len(receiver.requests) == 1
    assert not Delivery.objects.exists()


def test_a_webhook_that_was_removed_meanwhile_is_not_tested(hook):
    webhook, _ = hook
    webhooks.remove(Webhook.objects.get(pk=webhook.pk))
    webhooks.test(webhook)
    assert not Delivery.objects.exists()


def test_campaigns_without_webhooks_fill_no_outbox(researcher):
    make_campaign(researcher)
    assert not Delivery.objects.exists()
