"""How people come to a campaign, how their parts can end, and what they get then."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import models

from prefmh_web.campaigns.models import Campaign
from prefmh_web.participants.protocol import Protocol
from prefmh_web.recruiters import ANYBODY, Recruiter, recruiter_by

if TYPE_CHECKING:
    from prefmh_web.participants.models.people import Participation

LONGEST_ID = 100
_CENT = Decimal("0.01")
USUAL_WAIT_MINUTES = 5
"""Who is paid waits for a pair no longer, unless the protocol says otherwise."""
MINUTES_TO_RETURN = 2
"""A part ends so long before the platform's own time is over."""


class Outcome(models.TextChoices):
    """How somebody's part ended. Each has its own code and its own pay."""

    COMPLETED = "completed", "completed"
    NOTHING_LEFT = "nothing-left", "nothing left to vote on"
    NO_CONSENT = "no-consent", "did not consent"
    NOT_ELIGIBLE = "not-eligible", "not eligible"
    FULL = "full", "no place free"
    NOT_UNDERSTOOD = "not-understood", "comprehension failed"
    CHECKS_FAILED = "checks-failed", "checks failed"
    TIME_OVER = "time-over", "time over"
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
    Outcome.NOT_ELIGIBLE: Pay.NOTHING,
    Outcome.FULL: Pay.NOTHING,
    Outcome.NOT_UNDERSTOOD: Pay.NOTHING,
    Outcome.CHECKS_FAILED: Pay.NOTHING,
    Outcome.TIME_OVER: Pay.PART,
    Outcome.WITHDRAWN: Pay.PART,
    Outcome.ENDED: Pay.NOTHING,
}


class Stage(models.TextChoices):
    """Where somebody is on their way through a study. `participants/stages` says what comes after what."""

    ARRIVAL = "arrival", "arrival"
    QUESTIONS = "questions", "questions"
    INSTRUCTIONS = "instructions", "instructions"
    PRACTICE = "practice", "practice"
    COMPREHENSION = "comprehension", "comprehension"
    VOTES = "votes", "votes"
    LAST_QUESTIONS = "last-questions", "last questions"
    END = "end", "end"


class Recruitment(models.Model):
    """How people come to a campaign and what it asks of them. All is fixed at Start, but for what
    `recruiting.AFTER_START` names and the debriefing.
    """

    campaign = models.OneToOneField(Campaign, models.CASCADE, related_name="+")
    recruiter = models.CharField(max_length=20, default=ANYBODY.name)
    # The name of the parameter with the person's id, where the researcher chooses it.
    parameter = models.CharField(max_length=64, blank=True, default="")
    # An id that is none of the recruiter's is not let in.
    checks_ids = models.BooleanField(default=True)
    # After so many votes somebody's part is complete; null for no limit.
    votes_each = models.PositiveIntegerField(null=True)
    # So many people can take part at most; null for no limit.
    places = models.PositiveIntegerField(null=True)
    # All that people can answer, votes and trials: see `budget.py`. Null for no limit.
    budget = models.PositiveIntegerField(null=True)
    # What the platform pays for a place, only to work out what all of them can cost; null if it is not known.
    place_pay = models.DecimalField(max_digits=8, decimal_places=2, null=True)
    currency = models.CharField(max_length=8, blank=True, default="")
    # How long the platform gives somebody, in minutes; their part ends two minutes before. Null for no limit.
    most_minutes = models.PositiveIntegerField(null=True)
    # After so many minutes before pairs somebody's part is complete, see `activity.py`; null for no limit.
    most_active_minutes = models.PositiveIntegerField(null=True)
    # Somebody who is away for so many minutes loses their place; null for the platform's time, or never.
    absent_minutes = models.PositiveIntegerField(null=True)
    # More votes than this within a minute are a flag, see `speed.py`; null for none.
    most_a_minute = models.PositiveIntegerField(null=True)
    # What a `Protocol` is made of.
    protocol = models.JSONField(default=dict)
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

    @property
    def minutes_each(self) -> int | None:
        """After so many minutes somebody's part is over, in time to enter the code on the platform."""
        return None if self.most_minutes is None else self.most_minutes - MINUTES_TO_RETURN

    @property
    def parsed_protocol(self) -> Protocol:
        """What is asked of people beside their votes."""
        return Protocol.model_validate(self.protocol)

    @property
    def longest_wait(self) -> int | None:
        """After so many minutes without a pair a part ends; None for never."""
        chosen = self.parsed_protocol.wait_minutes
        if chosen is None and self.platform.person:
            return USUAL_WAIT_MINUTES
        return chosen or None

    @property
    def cost_of_places(self) -> Decimal | None:
        """What all places cost together; None where their number or the pay is not known."""
        return None if self.places is None or self.place_pay is None else self.places * self.place_pay

    def priced(self, amount: Decimal | None) -> str:
        """Return an amount of money as pages show it: £5.00 or 5.00 EUR; empty for None."""
        if amount is None:
            return ""
        written = f"{amount.quantize(_CENT):,}"
        return f"{self.currency}{written}" if len(self.currency) == 1 else f"{written} {self.currency}".strip()

    def pay_for(self, outcome: str) -> Pay:
        """Return what an outcome is paid; in part, only to people who have voted: see `paid`."""
        return Pay(self.pay.get(outcome) or USUAL_PAY[Outcome(outcome)])

    def paid(self, outcome: str, votes: int) -> Pay:
        """Return what somebody is paid. Who gave no vote has no part that could be paid."""
        pay = self.pay_for(outcome)
        return Pay.NOTHING if pay is Pay.PART and not votes else pay

    def paid_to(self, part: Participation, votes: int) -> Pay:
        """Return what somebody is paid whose part has ended: what was decided of them by hand, or as `paid` says."""
        return Pay(part.pay) if part.pay else self.paid(part.outcome, votes)
