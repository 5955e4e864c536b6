"""Extensions: what a researcher added to the steps of a started campaign. Written only by `lifecycle/extension.py`."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from prefmh_web.campaigns.models.campaign import Campaign


class Extension(models.Model):
    """Every chain that was not ended walks to `steps_after` instead of `steps_before`, as the recipe now says."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="extensions")
    # From 1.
    number = models.PositiveIntegerField()
    steps_before = models.PositiveIntegerField()
    steps_after = models.PositiveIntegerField()
    extended_at = models.DateTimeField()
    # No part of the record; null once the account is deleted, and for the command line.
    extended_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")

    class Meta:
        ordering = ("number",)
        constraints = (
            models.UniqueConstraint(fields=("campaign", "number"), name="extension_once_per_number"),
            models.CheckConstraint(name="extension_adds_steps", condition=Q(steps_after__gt=F("steps_before"))),
        )

    def __str__(self) -> str:
        return f"extension {self.number} of {self.campaign_id}"
