"""What researchers did in a started campaign, where no other table says it. Written only by `lifecycle/events.py`."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from prefmh_web.campaigns.models.campaign import Campaign


class CampaignEvent(models.Model):
    """One deed, by its kind. `detail` is in words of ours: it is part of the record, which names nobody."""

    class Kind(models.TextChoices):
        PAUSED = "paused"
        RESUMED = "resumed"
        PANEL_ENDED = "panel-ended"
        REMINDED = "reminded"
        SCORERS_ASKED = "scorers-asked-again"
        MEMBER_SET = "member-set"
        MEMBER_REMOVED = "member-removed"
        PARTICIPANTS_SET = "participants-set"
        # Of versions in which trials were deleted with the ids.
        IDS_DELETED = "ids-deleted"
        ERASED = "erased"
        PAID = "paid"
        BONUS_SET = "bonus-set"
        RENAMED = "renamed"
        DEBRIEFING_SET = "debriefing-set"
        MODEL_ACCEPTED = "model-accepted"
        ARCHIVED = "archived"
        UNARCHIVED = "unarchived"
        JUDGE_TOKEN_MADE = "judge-token-made"  # noqa: S105 - what was done, no token
        JUDGE_TOKEN_WITHDRAWN = "judge-token-withdrawn"  # noqa: S105 - what was done, no token

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="events")
    kind = models.CharField(max_length=24, choices=Kind)
    at = models.DateTimeField(auto_now_add=True)
    # Who did it, where it is known; the record has the role only.
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    # As `name=value`, several separated by a semicolon and a space.
    detail = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        ordering = ("pk",)

    def __str__(self) -> str:
        return f"{self.kind} {self.detail}".strip()
