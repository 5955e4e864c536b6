"""Who people are, apart from their votes. Nothing in `campaigns` refers to these rows, so they can be deleted while the
record stays whole.

    Recruitment      how people come to a campaign, and what they get at its end
    Participant      a person, as a platform names them to one owner of campaigns
    Participation    a participant in one campaign, and the annotator that they are there
    ConsentText      a version of what they are asked to agree to
    Consent          what one of them answered
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models

from prefmh_web.campaigns.models import Annotator, Campaign
from prefmh_web.participants.recruiters import ANYBODY, Recruiter, recruiter_by

LONGEST_ID = 100


class Outcome(models.TextChoices):
    """How somebody's part ended. Each has its own code and its own pay."""

    COMPLETED = "completed", "completed"
    NOTHING_LEFT = "nothing-left", "nothing left to vote on"
    NO_CONSENT = "no-consent", "did not consent"
    WITHDRAWN = "withdrawn", "withdrew"
    ENDED = "ended", "ended by the researcher"


class Pay(models.TextChoices):
    """What an outcome is paid."""

    FULL = "full", "in full"
    PART = "part", "in part"
    NOTHING = "nothing", "not"


USUAL_PAY = {
    Outcome.COMPLETED: Pay.FULL,
    Outcome.NOTHING_LEFT: Pay.FULL,
    Outcome.NO_CONSENT: Pay.NOTHING,
    Outcome.WITHDRAWN: Pay.PART,
    Outcome.ENDED: Pay.NOTHING,
}


class Recruitment(models.Model):
    """How people come to a campaign. The recruiter, the number of votes and the campaigns whose people may not come
    are fixed at Start; consent, codes, pay and the way back may change at any time.
    """

    campaign = models.OneToOneField(Campaign, models.CASCADE, related_name="+")
    recruiter = models.CharField(max_length=20, default=ANYBODY.name)
    # The name of the parameter with the person's id, where the researcher chooses it.
    parameter = models.CharField(max_length=64, blank=True, default="")
    # After so many votes somebody's part is complete; null for no limit.
    votes_each = models.PositiveIntegerField(null=True)
    # What people agree to first, in Markdown; empty for nothing.
    consent = models.TextField(blank=True, default="")
    # By outcome.
    codes = models.JSONField(default=dict)
    pay = models.JSONField(default=dict)
    # The address to return to, with {code}, {external_id}, {session_id} or a parameter of the link; empty for the
    # platform's own.
    way_back = models.CharField(max_length=500, blank=True, default="")
    # People of these campaigns may not take part.
    excluded = models.ManyToManyField(Campaign, related_name="+")

    def __str__(self) -> str:
        return f"{self.platform.title} for {self.campaign_id}"

    @property
    def platform(self) -> Recruiter:
        """Where its people come from."""
        return recruiter_by(self.recruiter, self.parameter)

    @property
    def address_back(self) -> str:
        """The address to return to: the researcher's, or the platform's own."""
        return self.way_back or self.platform.way_back

    def pay_for(self, outcome: str) -> Pay:
        """Return what an outcome is paid."""
        return Pay(self.pay.get(outcome) or USUAL_PAY[Outcome(outcome)])


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


class ConsentText(models.Model):
    """A version of what the people of a campaign are asked to agree to."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="+")
    # SHA-256 of the text.
    version = models.CharField(max_length=64)
    text = models.TextField()
    first_used_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("campaign", "version"), name="consent_text_once_per_campaign"),)

    def __str__(self) -> str:
        return f"consent text {self.version[:8]} of {self.campaign_id}"


class Consent(models.Model):
    """What a participant answered when asked to agree. The last answer holds."""

    participation = models.ForeignKey(Participation, models.CASCADE, related_name="consents")
    version = models.CharField(max_length=64)
    agreed = models.BooleanField()
    answered_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"consent {self.pk}"
