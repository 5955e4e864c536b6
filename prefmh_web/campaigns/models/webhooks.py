"""Programs that are told what happens in a campaign, and the outbox of what they are to be told.

`dispatch.py` writes a row of the outbox in the transaction that makes an event true; `api/delivery.py` sends it and
notes each attempt; `lifecycle/webhooks.py` writes the rest. None of this is part of the record.
"""

from __future__ import annotations

import secrets
import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone

from prefmh_web.campaigns.models.campaign import Campaign

# Attempts that failed in a row after which a webhook is shown as failing.
FAILURES_TO_SHOW = 3


def new_salt() -> str:
    """Return what makes one webhook's secret differ from every other one."""
    return secrets.token_hex(16)


class Webhook(models.Model):
    """An address that is told of some kinds of events of one campaign.

    Its secret is computed from the site's SECRET_KEY and `salt` (`lifecycle/webhooks.py`), so that a copy of the
    database signs nothing.
    """

    class Event(models.TextChoices):
        STARTED = "campaign.started", "The campaign has started"
        FINISHED = "campaign.finished", "The campaign is finished"
        SUSPENDED = "step.suspended", "A step is suspended and waits for a researcher"
        BUDGET = "budget.reached", "A budget is reached: a cap on models"
        RESTING = "endpoint.resting", "An endpoint that the campaign asks has failed and is left alone for a while"
        FLAGGED = "person.flagged", "A person failed an attention check, or votes very fast"

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=500)
    # The kinds of events that it is told of.
    events = models.JSONField(default=list)
    salt = models.CharField(max_length=32, default=new_salt)
    # After a change of the secret, the one before signs as well until then.
    previous_salt = models.CharField(max_length=32, blank=True, default="")
    previous_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    # Attempts that failed since the last one that did not.
    failures = models.PositiveIntegerField(default=0)
    # While a worker sends something to it.
    claimed_until = models.DateTimeField(null=True)
    # Votes cast until then have been looked at for people who vote very fast (`participants/flags.py`).
    looked_until = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("pk",)

    def __str__(self) -> str:
        return self.url

    @property
    def is_failing(self) -> bool:
        """True once several attempts in a row have failed."""
        return self.failures >= FAILURES_TO_SHOW


class Delivery(models.Model):
    """One event that one webhook is told of, again and again until it answers or too many attempts have failed."""

    TEST = "webhook.test"

    class Status(models.TextChoices):
        WAITING = "waiting"
        DELIVERED = "delivered"
        GIVEN_UP = "given-up", "given up"

    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries")
    # The same for all webhooks that are told of one event, and at each attempt.
    event_id = models.UUIDField(default=uuid.uuid4)
    # A `Webhook.Event`, or that of a test.
    event = models.CharField(max_length=24)
    # What is the same however often the event is noticed; null for an event that is written once.
    once = models.CharField(max_length=80, null=True)  # noqa: DJ001 - several rows without it do not clash
    # The campaign as it was then, and what the event is about. No personal data.
    told = models.JSONField()
    created_at = models.DateTimeField(default=timezone.now)
    status = models.CharField(max_length=9, choices=Status, default=Status.WAITING)
    # When it is to be tried next, while it waits.
    due_at = models.DateTimeField(default=timezone.now)
    # Attempts since it was last put into the queue, by the event or by hand.
    tries = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ("-pk",)
        verbose_name_plural = "deliveries"
        constraints = (
            models.UniqueConstraint(fields=("webhook", "event_id"), name="delivery_once_per_webhook"),
            models.UniqueConstraint(fields=("webhook", "once"), name="delivery_once_noticed"),
        )
        indexes = (models.Index(fields=("due_at",), condition=Q(status="waiting"), name="delivery_waiting"),)

    def __str__(self) -> str:
        return f"{self.event} {self.event_id}"

    @property
    def is_waiting(self) -> bool:
        return self.status == self.Status.WAITING


class DeliveryAttempt(models.Model):
    """One request to a webhook, and what came of it."""

    MOST_REPLY = 1000

    delivery = models.ForeignKey(Delivery, models.CASCADE, related_name="attempts")
    at = models.DateTimeField()
    seconds = models.FloatField()
    # The status of the answer; null where there was none.
    code = models.PositiveSmallIntegerField(null=True)
    # The beginning of the answer.
    reply = models.CharField(max_length=MOST_REPLY, blank=True, default="")
    # Why it counts as failed; empty if it does not.
    problem = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        ordering = ("pk",)

    def __str__(self) -> str:
        return f"{self.code or self.problem}"
