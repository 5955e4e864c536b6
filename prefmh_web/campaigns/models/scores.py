"""Numbers that scorers give a campaign's objects. No verdict depends on them.

What asking models has come to in a campaign. Written by `engine/spending.py` only.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from prefmh_web.campaigns.models.campaign import Campaign
from prefmh_web.campaigns.models.objects import State


class CampaignScorer(models.Model):
    """A scorer that a campaign has started with. Written by `proposals/scoring.py` and `lifecycle/scorers.py`."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="scorers")
    place = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=40)
    # What the scorer said of itself at the start: its kind, and what tells versions apart.
    frozen = models.JSONField()
    # Why it is asked no more, until somebody has seen to it; empty while it is asked.
    stopped_because = models.CharField(max_length=500, blank=True, default="")
    # While somebody asks it about a batch: until when nobody else need try.
    claimed_until = models.DateTimeField(null=True)
    # The campaign has finished and every object has its score, or a reason.
    is_complete = models.BooleanField(default=False)

    class Meta:
        ordering = ("place",)
        constraints = (models.UniqueConstraint(fields=("campaign", "name"), name="scorer_once_per_name"),)

    def __str__(self) -> str:
        return self.name


class Score(models.Model):
    """One number that a scorer gave an object, or why it has none."""

    state = models.ForeignKey(State, models.CASCADE, related_name="scores")
    scorer = models.ForeignKey(CampaignScorer, models.CASCADE, related_name="scores")
    value = models.FloatField(null=True)
    reason = models.CharField(max_length=300, blank=True, default="")
    scored_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("state", "scorer"), name="score_once_per_scorer"),
            models.CheckConstraint(
                name="score_or_reason",
                condition=Q(value__isnull=False, reason="") | (Q(value__isnull=True) & ~Q(reason="")),
            ),
        )

    def __str__(self) -> str:
        return f"{self.value} for state {self.state_id} by scorer {self.scorer_id}"


class ModelUsage(models.Model):
    """What one judge of a campaign has taken, or the writing of its proposals: requests, tokens, seconds, cost.

    The cost is in the currency of the endpoints' prices, at the prices of the time. `seconds` are those of answered
    requests; `unreadable` replies, neither label nor rating, are among the answered. `unpriced` requests had tokens,
    and no known price. `repeated` bounds the requests that were made again because whoever had claimed them died: see
    `engine/spending.py`.
    """

    # In `place`, beside the places of judges.
    PROPOSALS = -1

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="model_usage")
    place = models.SmallIntegerField()
    requests = models.PositiveBigIntegerField(default=0)
    failed = models.PositiveBigIntegerField(default=0)
    unreadable = models.PositiveBigIntegerField(default=0)
    unpriced = models.PositiveBigIntegerField(default=0)
    tokens_in = models.PositiveBigIntegerField(default=0)
    tokens_out = models.PositiveBigIntegerField(default=0)
    seconds = models.FloatField(default=0)
    cost = models.FloatField(default=0)
    # Its default is the database's too: `engine/spending.py` inserts without it.
    repeated = models.PositiveBigIntegerField(default=0, db_default=0)
    # The largest of one request: by these, what the next one may cost.
    most_tokens_in = models.PositiveBigIntegerField(default=0)
    most_tokens_out = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ("place",)
        constraints = (models.UniqueConstraint(fields=("campaign", "place"), name="model_usage_once_per_judge"),)

    def __str__(self) -> str:
        return f"{self.requests} requests of judge {self.place} in {self.campaign_id}"

    @property
    def answered(self) -> int:
        return self.requests - self.failed

    @property
    def is_of_proposals(self) -> bool:
        return self.place == self.PROPOSALS
