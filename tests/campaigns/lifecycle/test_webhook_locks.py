"""A webhook is not removed between an event and its row in the outbox."""

import threading

import pytest
from django.conf import settings
from django.db import connection, transaction

from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.lifecycle import webhooks
from prefmh_web.campaigns.models import Webhook


@pytest.fixture
def hook(campaign, settings):
    settings.WEBHOOK_ALLOWED_HOSTS = ("127.0.0.1",)
    settings.WEBHOOK_ALLOW_PRIVATE = ("127.0.0.1/32",)
    return webhooks.make(campaign, "http://127.0.0.1:9/", Webhook.Event.values)


# Two transactions at once, of which one waits for a row: CI runs it on PostgreSQL.
@pytest.mark.skipif(settings.EMBEDDED, reason="SQLite has one lock; see tests/support/server_stack.py")
def test_who_tells_webhooks_keeps_them_from_being_removed_until_it_is_stored(campaign, hook):
    """Else the row for a webhook that is no more would undo the last vote of a campaign, say."""
    webhook, _ = hook
    seen = []

    def remove() -> None:
        webhooks.remove(webhook)
        connection.close()

    removing = threading.Thread(target=remove)
    with transaction.atomic():
        dispatch.campaign_finished(campaign)
        removing.start()
        removing.join(1)
        seen.append(Webhook.objects.exists())
    removing.join()
    assert seen == [True]
    assert not Webhook.objects.exists()
