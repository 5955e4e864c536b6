"""Numbers that scorers give a campaign's objects. No verdict depends on them."""

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
