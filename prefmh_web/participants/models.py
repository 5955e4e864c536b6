"""Who people are, apart from their votes. Nothing in `campaigns` refers to these rows, so they can be deleted while the
record stays whole.

    Participant      a person, as a platform names them to one owner of campaigns
    Participation    a participant in one campaign, and the voter that they are there
    AttentionCheck   a trial between their pairs that is no vote
"""

from __future__ import annotations

import uuid
from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone

from prefmh_web.campaigns.models import Campaign, Lease, Side, Voter
from prefmh_web.config import Outcome, Pay
from prefmh_web.recruiters import OPEN

LONGEST_ID = 100


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
    """A participant in one campaign. Its checks and consents are the voter's and stay when the person is forgotten:
    then it has no participant, and nothing that they or a platform wrote.
    """

    participant = models.ForeignKey(Participant, models.CASCADE, null=True, related_name="participations")
    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="+")
    voter = models.OneToOneField(Voter, models.CASCADE, related_name="+")
    # What the platform said at each visit, oldest first: `session_id`, the link's other `parameters`, and when (`at`).
    visits = models.JSONField(default=list)
    arrived_at = models.DateTimeField(auto_now_add=True)
    stage = models.CharField(max_length=20, choices=Stage, default=Stage.ARRIVAL)
    # How often they have answered the questions about the instructions.
    tries = models.PositiveSmallIntegerField(default=0)
    # What they answered when asked to agree, oldest first: to which `version` of the text, whether they `agreed`, and
    # when (`at`). The last answer holds.
    consents = models.JSONField(default=list)
    # By a question's name, what they answered about themselves (`answer`), and when (`at`). No part of the record.
    answers = models.JSONField(default=dict)
    # What they chose at each pair to practise on (`chosen_side`), when (`answered_at`), and when they went on from what
    # they were told about it (`read_at`). Written under the lock of the row, so the first answer to a pair holds.
    practice = models.JSONField(default=list)
    # Since when they hold a place; null before the stage that needs one, and once it is lost.
    placed_at = models.DateTimeField(null=True)
    # The last time they opened a page of theirs or answered on it; open pages tell by `Voter.online_until`.
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
    # Since when the researcher says that all of it is paid; null before.
    paid_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("participant", "campaign"), name="participation_once_per_campaign"),
        )

    def __str__(self) -> str:
        return f"participation {self.pk}"

    @property
    def given_id(self) -> str:
        """The id with which they came; empty where people come without one, and once it is erased."""
        someone = self.participant
        return "" if someone is None or someone.recruiter == OPEN.name else someone.external_id

    @property
    def paid_visit(self) -> dict[str, Any]:
        """The visit that is paid: the last one before the part ended. Whoever comes again later only sees the code."""
        until = None if self.finished_at is None else self.finished_at.isoformat()
        before = [visit for visit in self.visits if until is None or visit["at"] <= until]
        found: dict[str, Any] = (before or self.visits or [{}])[-1]
        return found


class AttentionCheck(models.Model):
    """A trial between two pairs. Its answer is no vote. Written only by `attention.py`."""

    class Kind(models.TextChoices):
        """What is shown; see `sampler/judges/presentation.py`."""

        INSTRUCTED = "instructed"
        GOLD = "gold"
        REPEAT = "repeat"

    # Stands in the place of a lease's key on the page.
    key = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    participation = models.ForeignKey(Participation, models.CASCADE, related_name="checks")
    # After how many votes it came.
    after_votes = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.INSTRUCTED)
    # Whose objects are shown: a pair that they have voted on. Null for a gold pair.
    lease = models.ForeignKey(Lease, models.CASCADE, null=True, related_name="+")
    # The number of the gold pair in the protocol, from 0; null for other kinds.
    gold = models.PositiveSmallIntegerField(null=True)
    # The objects have changed places.
    is_swapped = models.BooleanField(default=False)
    # Empty of a repeat: its answer is neither right nor wrong.
    expected_side = models.CharField(max_length=6, choices=Side, blank=True, default="")
    # Empty of one that is not answered yet, or was skipped.
    chosen_side = models.CharField(max_length=6, choices=Side, blank=True, default="")
    elapsed_ms = models.PositiveIntegerField(null=True)
    shown_at = models.DateTimeField()
    answered_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("participation", "after_votes"), name="check_once_after_each_vote"),
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
