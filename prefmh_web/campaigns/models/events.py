"""What researchers did in a started campaign, where no other table says it. Written only by `lifecycle/events.py`."""

from __future__ import annotations

from django.db import models

from prefmh_web.campaigns.models.campaign import Campaign


class CampaignEvent(models.Model):
    """One deed, by its kind. Who did it is not kept, and `detail` is in words of ours: it is part of the record."""

    class Kind(models.TextChoices):
        PAUSED = "paused"
        RESUMED = "resumed"
        PANEL_ENDED = "panel-ended"
        REMINDED = "reminded"
        SCORERS_ASKED = "scorers-asked-again"
        MEMBER_SET = "member-set"
        MEMBER_REMOVED = "member-removed"
        PARTICIPANTS_SET = "participants-set"
        IDS_DELETED = "ids-deleted"

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="events")
    kind = models.CharField(max_length=24, choices=Kind)
    at = models.DateTimeField(auto_now_add=True)
    # As `name=value`, several separated by a semicolon and a space.
    detail = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        ordering = ("pk",)

    def __str__(self) -> str:
        return f"{self.kind} {self.detail}".strip()
