"""Leases: votes promised to people, written only by `engine/leases.py`."""

import uuid

from django.db import models
from django.db.models import Q

from prefmh_web.campaigns.models.campaign import Judge
from prefmh_web.campaigns.models.objects import State
from prefmh_web.campaigns.models.people import Annotator
from prefmh_web.campaigns.models.steps import Comparison, Side


class Lease(models.Model):
    """A vote promised to one annotator until a deadline, with the sides drawn for it.

    Its key is the idempotency key of the vote. Ended leases stay: they tell who was asked what, and skips.
    """

    class Ending(models.TextChoices):
        VOTED = "voted"
        SKIPPED = "skipped"
        EXPIRED = "expired"
        # Given back as if it had not been asked: the page did not show what was sent.
        UNASKED = "unasked"

    key = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    comparison = models.ForeignKey(Comparison, models.CASCADE, related_name="leases")
    judge = models.ForeignKey(Judge, models.CASCADE, related_name="leases")
    annotator = models.ForeignKey(Annotator, models.CASCADE, related_name="leases")
    proposal_side = models.CharField(max_length=6, choices=Side)
    issued_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    # Set while the person's page is gone: then `expires_at` is sooner than the campaign's setting says.
    is_orphan = models.BooleanField(default=False)
    ended_at = models.DateTimeField(null=True)
    ending = models.CharField(max_length=7, choices=Ending, null=True)  # noqa: DJ001 - null while it is live

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("annotator",), condition=Q(ended_at__isnull=True), name="lease_one_live_per_annotator"
            ),
            models.CheckConstraint(
                name="lease_ending_whole",
                condition=Q(ended_at__isnull=True, ending__isnull=True)
                | Q(ended_at__isnull=False, ending__isnull=False),
            ),
        )
        indexes = (
            models.Index(fields=("expires_at",), condition=Q(ended_at__isnull=True), name="lease_live"),
            # The few without a vote, so that counting them passes over all the others; a vote writes nothing here.
            models.Index(
                fields=("judge", "ending", "proposal_side"),
                condition=Q(ending__in=("skipped", "expired")),
                name="lease_unanswered",
            ),
        )

    def __str__(self) -> str:
        return f"lease of {self.annotator_id} on {self.comparison_id}"

    @property
    def is_live(self) -> bool:
        return self.ended_at is None

    @property
    def first(self) -> State:
        return self.comparison.standing(Side.FIRST, self.proposal_side)

    @property
    def second(self) -> State:
        return self.comparison.standing(Side.SECOND, self.proposal_side)
