"""Looks of a stopping rule: what all chains showed at a declared step. Written only by `engine/looks.py`."""

from __future__ import annotations

from django.db import models

from prefmh_web.campaigns.models.campaign import Campaign


class StoppingLook(models.Model):
    """What was seen at a step that all chains had reached, and whether they stop there."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="looks")
    step = models.PositiveIntegerField()
    # Null where it cannot be computed.
    r_hat = models.FloatField(null=True)
    bulk_ess = models.FloatField(null=True)
    tail_ess = models.FloatField(null=True)
    stops = models.BooleanField()
    looked_at = models.DateTimeField()

    class Meta:
        ordering = ("step",)
        constraints = (models.UniqueConstraint(fields=("campaign", "step"), name="look_once_per_step"),)

    def __str__(self) -> str:
        return f"look at step {self.step} of {self.campaign_id}"
