"""Judges tried before the start: what was asked of a model about sample pairs, and what their researcher would say.

Nothing here belongs to a campaign's record. What trials have taken counts against the site's caps, also once their
draft is deleted: the row stays, without its pairs.
"""

from typing import Any, TypedDict

from django.conf import settings
from django.db import models

from prefmh_web.campaigns.models.campaign import Campaign
from prefmh_web.endpoints.models import Endpoint


class TrialPair(TypedDict):
    """Two objects as they were when they were shown, what the model replied, and which one the researcher prefers.

    `replies` are by the name of their slot (`model_judges/tried.py`); `preferred` is 0, 1 or None.
    """

    objects_shown: list[dict[str, Any]]
    replies: dict[str, Any]
    preferred: int | None


class JudgeTrial(models.Model):
    """One trial of one judge of a draft. Written by `lifecycle/judge_trials.py`."""

    class Status(models.TextChoices):
        """How far it is."""

        ASKING = "asking"
        DONE = "done"
        STOPPED = "stopped"

    campaign = models.ForeignKey(Campaign, models.SET_NULL, null=True, related_name="judge_trials")
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    asked_at = models.DateTimeField(auto_now_add=True)
    # Of the judge in the config as it was then, which `judge` is.
    place = models.PositiveSmallIntegerField()
    judge = models.JSONField()
    prompt_version = models.CharField(max_length=8)
    endpoint = models.ForeignKey(Endpoint, models.SET_NULL, null=True, related_name="+")
    # How many pairs, and how many replies for each of two orders, or of two objects where they are rated.
    wanted = models.PositiveSmallIntegerField()
    replies = models.PositiveSmallIntegerField()
    # Each a `TrialPair`; none before they are drawn. A pair is changed under the lock of the row: the researcher says
    # what they prefer while a worker stores replies.
    pairs = models.JSONField(default=list)
    status = models.CharField(max_length=8, choices=Status, default=Status.ASKING)
    reason = models.CharField(max_length=500, blank=True)
    # While somebody asks.
    until = models.DateTimeField(null=True)
    # What has been taken, as in `ModelUsage`; and what is set aside for the rest while it is asked.
    requests = models.PositiveBigIntegerField(default=0)
    failed = models.PositiveBigIntegerField(default=0)
    unpriced = models.PositiveBigIntegerField(default=0)
    tokens_in = models.PositiveBigIntegerField(default=0)
    tokens_out = models.PositiveBigIntegerField(default=0)
    seconds = models.FloatField(default=0)
    cost = models.FloatField(default=0)
    reserved_requests = models.PositiveBigIntegerField(default=0)
    reserved_cost = models.FloatField(default=0)

    class Meta:
        ordering = ("pk",)

    def __str__(self) -> str:
        return f"trial of judge {self.place} in {self.campaign_id}"

    @property
    def is_asking(self) -> bool:
        return self.status == self.Status.ASKING
