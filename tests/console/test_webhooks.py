"""The pages of webhooks: for owners alone, the secret shown once, the log with its attempts."""

import re

import pytest
from django.urls import reverse

from prefmh_web.campaigns.lifecycle import access, webhooks
from prefmh_web.campaigns.models import Delivery, Membership, Webhook
from prefmh_web.console.views.webhooks import A_PAGE
from tests.security.world import browser_of
from tests.support.receiver import Receiver, answers, is_signed
from tests.support.stack import make_draft, wait_until_idle

pytestmark = pytest.mark.django_db(transaction=True)
FIELDS = {"events": ["campaign.started", "campaign.finished"]}


@pytest.fixture
def receiver(settings):
    settings.WEBHOOK_ALLOWED_HOSTS = ("127.0.0.1",)
    settings.WEBHOOK_ALLOW_PRIVATE = ("127.0.0.1/32",)
    found = Receiver()
    yield found
    found.stop()


def at(name: str, *keys: int) -> str:
    return reverse(f"console:{name}", args=keys)


def secret_in(page: str) -> str:
    found = re.search(r'value="(whsec_[\w+/=]+)"', page)
    assert found, page
    return found[1]


def test_a_webhook_is_made_and_its_secret_is_shown_once(signed_in, campaign, receiver):
    page = signed_in.post(at("webhooks", campaign.pk), FIELDS | {"url": receiver.url})
    secret = secret_in(page.content.decode())
    assert page.headers["Cache-Control"].count("no-store")
    webhook = Webhook.objects.get()
    for path in (at("webhooks", campaign.pk), at("webhook", campaign.pk, webhook.pk)):
        assert secret not in signed_in.get(path).content.decode()
    signed_in.post(at("test-webhook", campaign.pk, webhook.pk))
    wait_until_idle()
    assert is_signed(secret, *receiver.requests[0])
    page = signed_in.post(at("renew-secret", campaign.pk, webhook.pk)).content.decode()
    assert secret_in(page) != secret
    assert "requests are signed with the previous secret as well" in page
    # Each column has a name, that of the buttons too.
    assert "<th></th>" not in page


def test_a_draft_has_webhooks_so_that_its_start_is_told(signed_in, researcher, receiver):
    draft = make_draft(researcher)
    assert at("webhooks", draft.pk) in signed_in.get(draft.get_absolute_url()).content.decode()
    signed_in.post(at("webhooks", draft.pk), FIELDS | {"url": receiver.url})
    signed_in.post(at("start", draft.pk))
    wait_until_idle()
    assert [event["type"] for event in receiver.events] == ["campaign.started"]


def test_an_address_that_may_not_be_called_is_refused_at_its_field(signed_in, campaign):
    answer = signed_in.post(at("webhooks", campaign.pk), FIELDS | {"url": "https://hooks.example/x"})
    assert answer.status_code == 400
    assert "WEBHOOK_ALLOWED_HOSTS" in answer.content.decode()
    assert "https://hooks.example/x" in answer.content.decode()
    answer = signed_in.post(at("webhooks", campaign.pk), {"url": "https://hooks.example/x"})
    assert answer.status_code == 400
    assert not Webhook.objects.exists()


def test_the_log_says_what_was_answered_and_sends_again(signed_in, campaign, receiver):
    receiver.behave = answers(503, b"Closed <b>on Sundays</b>. " + b"x" * 2000)
    webhook, _ = webhooks.make(campaign, receiver.url, ["campaign.finished"])
    signed_in.post(at("test-webhook", campaign.pk, webhook.pk))
    wait_until_idle()
    page = signed_in.get(at("webhook", campaign.pk, webhook.pk)).content.decode()
    assert "the receiver answered 503" in page
    assert "Closed &lt;b&gt;on Sundays&lt;/b&gt;." in page
    assert "x" * 900 in page
    assert "x" * 1000 not in page
    receiver.behave = answers(204)
    signed_in.post(at("send-again", campaign.pk, webhook.pk, Delivery.objects.get().pk))
    wait_until_idle()
    assert "delivered" in signed_in.get(at("webhook", campaign.pk, webhook.pk)).content.decode()
    assert len(set(receiver.ids)) == 1


def test_a_failing_webhook_is_shown_where_the_owner_looks(signed_in, campaign, receiver):
    webhook, _ = webhooks.make(campaign, receiver.url, ["campaign.finished"])
    Webhook.objects.update(failures=3)
    for path in (at("edit", campaign.pk), at("webhooks", campaign.pk), at("webhook", campaign.pk, webhook.pk)):
        assert "failing" in signed_in.get(path).content.decode()
    changed = FIELDS | {"url": receiver.url.replace("hook", "other")}
    assert signed_in.post(at("webhook", campaign.pk, webhook.pk), changed).status_code == 302
    webhook.refresh_from_db()
    assert webhook.url.count("other")
    assert webhook.events == FIELDS["events"]
    assert not webhook.is_failing


def test_the_log_is_paged(signed_in, campaign, receiver):
    webhook, _ = webhooks.make(campaign, receiver.url, ["campaign.finished"])
    for number in range(A_PAGE + 1):
        Delivery.objects.create(webhook=webhook, event=f"number {number}", told={}, status="delivered")
    path = at("webhook", campaign.pk, webhook.pk)
    assert "number 0 " not in signed_in.get(path).content.decode()
    assert "number 0 " in signed_in.get(path, {"page": 2}).content.decode()


def test_a_webhook_is_removed_with_its_log(signed_in, campaign, receiver):
    webhook, _ = webhooks.make(campaign, receiver.url, ["campaign.finished"])
    signed_in.post(at("remove-webhook", campaign.pk, webhook.pk))
    assert not Webhook.objects.exists()


@pytest.mark.parametrize("role", [Membership.Role.VIEWER, Membership.Role.MANAGER, None])
def test_nobody_but_the_owner_sees_webhooks(campaign, receiver, django_user_model, role):
    eve = django_user_model.objects.create_user("eve")
    if role:
        access.add_member(campaign, "eve", role)
    webhook, _ = webhooks.make(campaign, receiver.url, ["campaign.finished"])
    webhooks.test(webhook)
    wait_until_idle()
    keys = (campaign.pk, webhook.pk)
    browser = browser_of(eve)
    for path in (at("webhooks", campaign.pk), at("webhook", *keys)):
        assert browser.get(path).status_code == 404
    delivery = Delivery.objects.get().pk
    for path in (
        at("test-webhook", *keys),
        at("renew-secret", *keys),
        at("remove-webhook", *keys),
        at("send-again", *keys, delivery),
    ):
        assert browser.post(path).status_code == 404
    page = browser.get(at("edit", campaign.pk))
    assert role is None or "webhooks" not in page.content.decode()
    assert len(receiver.requests) == 1


def test_the_webhook_of_another_campaign_is_not_found_by_its_number(signed_in, campaign, researcher, receiver):
    webhook, _ = webhooks.make(make_draft(researcher), receiver.url, ["campaign.finished"])
    assert signed_in.get(at("webhook", campaign.pk, webhook.pk)).status_code == 404
