"""Who people are, apart from their votes. Nothing in `campaigns` refers to these rows, so they can be deleted while the
record stays whole.

    Recruitment      how people come to a campaign, and what they get at its end
    Participant      a person, as a platform names them to one owner of campaigns
    Participation    a participant in one campaign, and the annotator that they are there
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models

from prefmh_web.campaigns.models import Annotator, Campaign
from prefmh_web.participants.recruiters import ANYBODY, Recruiter, recruiter_by

LONGEST_ID = 200


class Outcome(models.TextChoices):
    """How somebody's part ended. Each has its own code."""

    COMPLETED = "completed", "completed"
    NOTHING_LEFT = "nothing-left", "nothing left to vote on"


class Recruitment(models.Model):
    """How people come to a campaign. Codes and the way back may change at any time, the rest until Start."""

    campaign = models.OneToOneField(Campaign, models.CASCADE, related_name="+")
    recruiter = models.CharField(max_length=20, default=ANYBODY.name)
    # The name of the parameter with the person's id, where the researcher chooses it.
    parameter = models.CharField(max_length=64, blank=True, default="")
    # After so many votes somebody's part is complete; null for no limit.
    votes_each = models.PositiveIntegerField(null=True)
    # By outcome.
    codes = models.JSONField(default=dict)
    # The address to return to, with {code}, {external_id}, {session_id} or a parameter of the link.
    way_back = models.CharField(max_length=500, blank=True, default="")
    # People of these campaigns may not take part.
    excluded = models.ManyToManyField(Campaign, related_name="+")

    def __str__(self) -> str:
        return f"{self.platform.title} for {self.campaign_id}"

    @property
    def platform(self) -> Recruiter:
        """Where its people come from."""
        return recruiter_by(self.recruiter, self.parameter)


class Participant(models.Model):
    """A person, as a platform names them. Two owners never share one; one owner's campaigns do."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="participants")
    recruiter = models.CharField(max_length=20)
    external_id = models.CharField(max_length=LONGEST_ID)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("owner", "recruiter", "external_id"), name="participant_once_per_owner"),
        )

    def __str__(self) -> str:
        # No id: this text may come into a log.
        return f"participant {self.pk}"


class Participation(models.Model):
    """A participant in one campaign."""

    participant = models.ForeignKey(Participant, models.CASCADE, related_name="participations")
    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="+")
    annotator = models.OneToOneField(Annotator, models.CASCADE, related_name="+")
    # What the platform said at each visit, oldest first: `session_id` and the link's other `parameters`.
    visits = models.JSONField(default=list)
    arrived_at = models.DateTimeField(auto_now_add=True)
    # Settled once, together: how it ended, and the code that was shown for it.
    finished_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=20, choices=Outcome, blank=True, default="")
    code = models.CharField(max_length=100, blank=True, default="")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("participant", "campaign"), name="participation_once_per_campaign"),
        )

    def __str__(self) -> str:
        return f"participation {self.pk}"

    @property
    def last_visit(self) -> dict[str, Any]:
        """The visit that is paid: the last one."""
        found: dict[str, Any] = self.visits[-1] if self.visits else {}
        return found
