"""Telling webhooks what is in the outbox: at least once each, one request at a time for each webhook.

    deliver     send what is due first for one webhook
    due         which webhooks have something due

A worker claims the webhook, sends without any lock or transaction, and notes what came of it. One that dies has sent
nothing or something: its claim ends by itself, the row still waits, and the event is sent again under the same id.
"""

from __future__ import annotations

import json
import logging
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from prefmh_web.api import sending
from prefmh_web.api.signatures import signature
from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.lifecycle.webhooks import signing_keys
from prefmh_web.campaigns.models import Campaign, Delivery, DeliveryAttempt, Webhook

logger = logging.getLogger(__name__)
PAUSES = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 30, 2 * 60, 8 * 60, 24 * 60))
"""How long to wait after each failed attempt; after the last one an event is given up."""


def due() -> set[int]:
    """Return the webhooks that have something to be sent now and that nobody is sending to."""
    now = timezone.now()
    free = _is_free(now, "webhook__")
    waiting = Delivery.objects.filter(free, status=Delivery.Status.WAITING, due_at__lte=now)
    return set(waiting.order_by().values_list("webhook", flat=True).distinct())


def deliver(webhook_id: int) -> None:
    """Send the event that a webhook should have been told first, if one is due; hint at the next one after it.

    So a webhook that hangs has one request under way, and what others are told comes in between.
    """
    now = timezone.now()
    # Longer than a request can take.
    until = now + timedelta(seconds=3 * settings.WEBHOOK_TIMEOUT_SECONDS)
    if not Webhook.objects.filter(_is_free(now), pk=webhook_id).update(claimed_until=until):
        return
    try:
        if delivery := _waiting(webhook_id).first():
            _send(delivery)
    finally:
        Webhook.objects.filter(pk=webhook_id).update(claimed_until=None)
    if _waiting(webhook_id).exists():
        dispatch.deliver(webhook_id)


def body_of(delivery: Delivery) -> bytes:
    """Return what is sent: the same bytes at each attempt."""
    campaign = delivery.told["campaign"]
    path = Campaign(pk=campaign["id"]).get_absolute_url()
    content = {
        "type": delivery.event,
        "id": str(delivery.event_id),
        "timestamp": delivery.created_at.isoformat(),
        "data": {"campaign": {**campaign, "url": f"{settings.SITE_URL or ''}{path}"}, **delivery.told["details"]},
    }
    return json.dumps(content, ensure_ascii=False).encode()


def _is_free(now: object, prefix: str = "") -> Q:
    return Q(**{f"{prefix}claimed_until": None}) | Q(**{f"{prefix}claimed_until__lt": now})


def _waiting(webhook_id: int) -> QuerySet[Delivery]:
    waiting = Delivery.objects.filter(webhook=webhook_id, status=Delivery.Status.WAITING, due_at__lte=timezone.now())
    return waiting.exclude(webhook__campaign__status=Campaign.Status.DELETING).order_by("due_at", "pk")


def _send(delivery: Delivery) -> None:
    webhook, body, at = delivery.webhook, body_of(delivery), timezone.now()
    stamp = str(int(at.timestamp()))
    signatures = [signature(key, str(delivery.event_id), stamp, body) for key in signing_keys(webhook)]
    headers = {
        "Content-Type": "application/json",
        "webhook-id": str(delivery.event_id),
        "webhook-timestamp": stamp,
        "webhook-signature": " ".join(signatures),
    }
    answer = sending.post(webhook.url, body, headers)
    attempt = DeliveryAttempt(delivery=delivery, at=at, **vars(answer))
    _note(attempt)
    # Neither the address nor what was answered: both may hold secrets, and logs have more readers.
    about = {"campaign": webhook.campaign_id, "webhook": webhook.pk, "event": delivery.event, "code": attempt.code}
    logger.info("webhook answered" if not attempt.problem else "webhook failed", extra=about)


@transaction.atomic
def _note(attempt: DeliveryAttempt) -> None:
    """Keep an attempt, and decide when the next one is due."""
    # Locked, as removing it locks it: both are gone, or neither.
    webhook = Webhook.objects.select_for_update(no_key=True).filter(pk=attempt.delivery.webhook_id).first()
    delivery = Delivery.objects.filter(pk=attempt.delivery_id).first()
    if webhook is None or delivery is None:
        return
    attempt.save()
    if not attempt.problem:
        webhook.failures, delivery.status = 0, Delivery.Status.DELIVERED
    else:
        webhook.failures += 1
        _put_off(delivery)
    webhook.save(update_fields=["failures"])
    delivery.save(update_fields=["status", "due_at", "tries"])


def _put_off(delivery: Delivery) -> None:
    delivery.tries += 1
    if delivery.tries > len(PAUSES):
        delivery.status = Delivery.Status.GIVEN_UP
    else:
        delivery.due_at = timezone.now() + PAUSES[delivery.tries - 1]
