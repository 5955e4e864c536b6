"""Programs of researchers that judge: their tokens, and the votes promised to them."""

import uuid

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from prefmh_web.campaigns.models.campaign import Judge
from prefmh_web.campaigns.models.objects import State
from prefmh_web.campaigns.models.steps import Comparison, Side


class JudgeToken(models.Model):
    """What a program shows to answer for one judge. Only a hash of it is stored. Written by `lifecycle/programs.py`."""

    judge = models.ForeignKey(Judge, models.CASCADE, related_name="tokens")
    # SHA-256 of the token, in hexadecimal digits.
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True, db_default=Now())
    # To the minute: a program may call ten times a second.
    used_at = models.DateTimeField(null=True)
    withdrawn_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("judge",), condition=Q(withdrawn_at__isnull=True), name="judge_token_one_live"
            ),
        )

    def __str__(self) -> str:
        return f"token of judge {self.judge_id}"


class ProgramLease(models.Model):
    """A vote promised to a program until a deadline: which of the judge's N votes, and where the proposal stands.

    Its key is the idempotency key of the vote. Written only by `engine/programs.py`.
    """

    class Ending(models.TextChoices):
        VOTED = "voted"
        SKIPPED = "skipped"
        EXPIRED = "expired"

    MOST_WORKER = 60

    key = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    comparison = models.ForeignKey(Comparison, models.CASCADE, related_name="program_leases")
    judge = models.ForeignKey(Judge, models.CASCADE, related_name="program_leases")
    slot = models.PositiveIntegerField()
    proposal_side = models.CharField(max_length=5, choices=Side)
    # What the program calls the process that asked; the same one gets the same question again. May be empty.
    worker = models.CharField(max_length=MOST_WORKER, blank=True, default="")
    issued_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    ending = models.CharField(max_length=7, choices=Ending, null=True)  # noqa: DJ001 - null until it has ended

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("comparison", "judge", "slot"),
                condition=Q(ended_at__isnull=True),
                name="program_lease_once_per_slot",
            ),
            models.CheckConstraint(
                name="program_lease_ending_whole",
                condition=Q(ended_at__isnull=True, ending__isnull=True)
                | Q(ended_at__isnull=False, ending__isnull=False),
            ),
        )
        indexes = (
            # Few are live at a time; how many a judge holds is counted each time that one is taken.
            models.Index(fields=("judge", "expires_at"), condition=Q(ended_at__isnull=True), name="program_lease_live"),
        )

    def __str__(self) -> str:
        return f"lease of judge {self.judge_id} on {self.comparison_id}"

    @classmethod
    def held_by(cls, judge_id: int) -> "models.QuerySet[ProgramLease]":
        """Return the questions that a judge holds now."""
        return cls.objects.filter(judge=judge_id, ended_at__isnull=True, expires_at__gt=timezone.now())

    @property
    def first(self) -> State:
        """The object that stands first, which people would see on the left."""
        return self.comparison.standing(Side.LEFT, self.proposal_side)

    @property
    def second(self) -> State:
        """The other one."""
        return self.comparison.standing(Side.RIGHT, self.proposal_side)
