"""Who people are, apart from their votes. Nothing in `campaigns` refers to these rows, so they can be deleted while the
record stays whole.

    Recruitment      how people come to a campaign, and what they get at its end
    Participant      a person, as a platform names them to one owner of campaigns
    Participation    a participant in one campaign, and the annotator that they are there
    ConsentText      a version of what they are asked to agree to
    Consent          what one of them answered
    Answer           what one of them answered to a question about the person
    PracticeAnswer   what one of them chose at a pair to practise on
    CommonPair       a decided pair that everybody is asked once more
    Check            a trial between their pairs that is no vote
    ErasedTrials     how many trials there were of people who have had who they are deleted
    Event            what a researcher did or noted about somebody who votes, sent by a platform or not
"""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from prefmh_web.campaigns.models import Annotator, Campaign, Comparison, Judge, Lease, Side
from prefmh_web.participants.protocol import Protocol
from prefmh_web.participants.recruiters import ANYBODY, OPEN, Recruiter, recruiter_by

LONGEST_ID = 100
MINUTES_TO_RETURN = 2
"""A part ends so long before the platform's own time is over."""


class Outcome(models.TextChoices):
    """How somebody's part ended. Each has its own code and its own pay."""

    COMPLETED = "completed", "completed"
    NOTHING_LEFT = "nothing-left", "nothing left to vote on"
    NO_CONSENT = "no-consent", "did not consent"
    NOT_ELIGIBLE = "not-eligible", "not eligible, or no place free"
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
    """How people come to a campaign and what it asks of them. All is fixed at Start, but for consent, codes, pay and
    the way back, which may change at any time.
    """

    campaign = models.OneToOneField(Campaign, models.CASCADE, related_name="+")
    recruiter = models.CharField(max_length=20, default=ANYBODY.name)
    # The name of the parameter with the person's id, where the researcher chooses it.
    parameter = models.CharField(max_length=64, blank=True, default="")
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
    # The same in the campaign's further languages, by language.
    consents = models.JSONField(default=dict)
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
    def cost_of_places(self) -> Decimal | None:
        """What all places cost together; None where their number or the pay is not known."""
        return None if self.places is None or self.place_pay is None else self.places * self.place_pay

    def consent_in(self, language: str) -> str:
        """What people agree to who read this language; empty for nothing."""
        return self.consents.get(language) or self.consent

    @property
    def consent_texts(self) -> tuple[str, ...]:
        """What people agree to, in every language; nothing where nobody is asked."""
        return (self.consent, *self.consents.values()) if self.consent else ()

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

    @property
    def given_id(self) -> str:
        """The id with which they came; empty where people come without one."""
        return "" if self.recruiter == OPEN.name else self.external_id


class Participation(models.Model):
    """A participant in one campaign."""

    participant = models.ForeignKey(Participant, models.CASCADE, related_name="participations")
    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="+")
    annotator = models.OneToOneField(Annotator, models.CASCADE, related_name="+")
    # What the platform said at each visit, oldest first: `session_id` and the link's other `parameters`.
    visits = models.JSONField(default=list)
    arrived_at = models.DateTimeField(auto_now_add=True)
    stage = models.CharField(max_length=20, choices=Stage, default=Stage.ARRIVAL)
    # How often they have answered the questions about the instructions.
    tries = models.PositiveSmallIntegerField(default=0)
    # Since when they hold a place; null before the stage that needs one, and once it is lost.
    placed_at = models.DateTimeField(null=True)
    # The last time they opened a page of theirs or answered on it; open pages tell by `Annotator.online_until`.
    seen_at = models.DateTimeField(default=timezone.now)
    # Since when no pair has been free for them; null while they have one. Noted where waits end a part.
    waits_since = models.DateTimeField(null=True)
    # Settled once, together: how it ended, and the code that was shown for it.
    finished_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=20, choices=Outcome, blank=True, default="")
    code = models.CharField(max_length=100, blank=True, default="")
    # What they are paid, where the researcher who ended the part has said so; empty for what the outcome is paid.
    pay = models.CharField(max_length=7, choices=Pay, blank=True, default="")
    # Beside the pay; null for none.
    bonus = models.DecimalField(max_digits=8, decimal_places=2, null=True)

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


class Answer(models.Model):
    """What a participant answered to a question about the person. Personal data: no part of the record."""

    participation = models.ForeignKey(Participation, models.CASCADE, related_name="answers")
    name = models.CharField(max_length=40)
    answer = models.TextField()
    answered_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("participation", "name"), name="answer_once_per_question"),)

    def __str__(self) -> str:
        return f"answer {self.pk}"


class PracticeAnswer(models.Model):
    """What a participant chose at a pair to practise on. The first answer holds."""

    participation = models.ForeignKey(Participation, models.CASCADE, related_name="practice")
    # The number of the pair in the protocol, from 0.
    pair = models.PositiveSmallIntegerField()
    chosen_side = models.CharField(max_length=5, choices=Side)
    answered_at = models.DateTimeField(auto_now_add=True)
    # When they went on from what they were told about it.
    read_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("participation", "pair"), name="practice_once_per_pair"),)

    def __str__(self) -> str:
        return f"answer {self.pk} at practice"


class CommonPair(models.Model):
    """A decided pair that everybody is asked once more. Written only by `common_pairs.py`."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="+")
    # Its place in the order, from 0.
    number = models.PositiveIntegerField()
    comparison = models.ForeignKey(Comparison, models.CASCADE, related_name="+")
    # Whose question stands above it.
    judge = models.ForeignKey(Judge, models.CASCADE, related_name="+")

    class Meta:
        constraints = (models.UniqueConstraint(fields=("campaign", "number"), name="common_pair_once_per_number"),)

    def __str__(self) -> str:
        return f"common pair {self.number} of {self.campaign_id}"


class Check(models.Model):
    """A trial between two pairs. Its answer is no vote. Written only by `checks.py`."""

    class Kind(models.TextChoices):
        """What is shown; see `sampler/judges/attention.py`."""

        INSTRUCTED = "instructed"
        GOLD = "gold"
        REPEAT = "repeat"
        COMMON = "common"

    # Stands in the place of a lease's key on the page.
    key = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    participation = models.ForeignKey(Participation, models.CASCADE, related_name="checks")
    # After how many votes it came.
    after_votes = models.PositiveIntegerField()
    # 0 for what is drawn by the number of votes; of repeats while somebody waits, the first is 1.
    turn = models.PositiveIntegerField(default=0)
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.INSTRUCTED)
    # Whose objects are shown: a pair that they have voted on. Null for a gold or a common pair.
    lease = models.ForeignKey(Lease, models.CASCADE, null=True, related_name="+")
    # The pair of one that everybody is asked; null for other kinds.
    common = models.ForeignKey(CommonPair, models.CASCADE, null=True, related_name="+")
    # The number of the gold pair in the protocol, from 0; null for other kinds.
    gold = models.PositiveSmallIntegerField(null=True)
    # The objects have changed places.
    is_swapped = models.BooleanField(default=False)
    # Empty of a repeat: its answer is neither right nor wrong.
    expected_side = models.CharField(max_length=5, choices=Side, blank=True, default="")
    # Empty of one that is not answered yet, or was skipped.
    chosen_side = models.CharField(max_length=5, choices=Side, blank=True, default="")
    elapsed_ms = models.PositiveIntegerField(null=True)
    shown_at = models.DateTimeField()
    answered_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("participation", "after_votes", "turn"), name="check_once_after_each_vote"),
        )

    def __str__(self) -> str:
        return f"check {self.key}"

    @property
    def is_passed(self) -> bool | None:
        """Whether the side was chosen that is right; None without an answer, and of a repeat."""
        return self.expected_side == self.chosen_side if self.expected_side and self.chosen_side else None

    def agrees_with(self, voted_side: str) -> bool | None:
        """Return whether a repeat was answered as the vote on its pair was; None without an answer."""
        if self.kind != self.Kind.REPEAT or not self.chosen_side:
            return None
        return (self.chosen_side == voted_side) != self.is_swapped


class ErasedTrials(models.Model):
    """Trials whose rows went with the person: what is spent of a budget stays spent. Written only by `erasure.py`."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="+")
    trials = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.trials} trials in {self.campaign_id}"


class Event(models.Model):
    """What a researcher did or noted about a person who votes. Written only by `exclusion.py` and `notes.py`.

    It belongs to the annotator, so it stays when the person has who they are deleted; its text does not.
    """

    class Kind(models.TextChoices):
        EXCLUSION = "exclusion", "part ended"
        NOTE = "note", "note"

    class Reason(models.TextChoices):
        """Why a part was ended, in a word for the record: what the researcher writes may name people."""

        CARELESS = "careless", "careless answers"
        TWICE = "twice", "took part twice"
        TECHNICAL = "technical", "a technical problem"
        REQUEST = "request", "the person asked for it"
        LINK = "link", "everyone who joined with a link was removed"
        OTHER = "other", "another reason"

    annotator = models.ForeignKey(Annotator, models.CASCADE, related_name="+")
    kind = models.CharField(max_length=9, choices=Kind)
    at = models.DateTimeField(auto_now_add=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    # Of an exclusion only.
    reason = models.CharField(max_length=9, choices=Reason, blank=True, default="")
    # Whether the person whose part it ended is paid; null of a note, and where the exclusion settled no pay.
    is_paid = models.BooleanField(null=True)
    text = models.TextField(blank=True, default="")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("annotator",), condition=Q(kind="exclusion"), name="event_one_exclusion"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"
