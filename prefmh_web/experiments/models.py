"""What a run of an experiment remembers beside its campaigns. `settings` is the hash of settings.json."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from prefmh_web.campaigns.models import Campaign
from prefmh_web.endpoints.models import Counts


class ExperimentCampaign(models.Model):
    """Which campaign is which part of which run."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    settings = models.CharField(max_length=64)
    experiment = models.CharField(max_length=20)
    method = models.CharField(max_length=40)
    direction = models.CharField(max_length=20, blank=True)
    seed = models.PositiveBigIntegerField()
    campaign = models.OneToOneField(Campaign, models.CASCADE, related_name="experiment")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("owner", "settings", "method", "direction", "seed"), name="experiment_campaign_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.experiment} {self.method} {self.direction} s{self.seed}"


class EvaluationAnswer(Counts):
    """One answer of a run's evaluation, or that it was asked for.

    `value` is null until it has come, and where a scorer has no number. `asked` counts how often it was asked for: more
    than once where a run was killed, or the reply was none. A scorer's `requests` are the objects that it has answered
    about.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    settings = models.CharField(max_length=64)
    # Of a model, or of a scorer.
    role = models.CharField(max_length=20)
    # What is asked: the cells of the key columns of the table, joined.
    key = models.CharField(max_length=300)
    method = models.CharField(max_length=40)
    source = models.CharField(max_length=120)
    value = models.FloatField(null=True)
    replies = models.PositiveIntegerField(default=0)
    asked = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("owner", "settings", "key"), name="evaluation_answer_once"),)

    def __str__(self) -> str:
        return f"{self.key}: {self.value}"
