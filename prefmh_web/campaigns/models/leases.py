"""What is under way: leases of people, turns of models, chains that are to open, and proposals drawn ahead."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone

from prefmh_web.campaigns.models.campaign import Campaign, Judge, State
from prefmh_web.campaigns.models.people import Annotator
from prefmh_web.campaigns.models.steps import Chain, Comparison, Side


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


# Chains that a campaign started with.
OF_THE_START = Q(opening__isnull=True)


class ChainOpening(models.Model):
    """Why a chain opened after the start: for this person, who would have waited, or soon would. Without a chain, it is
    still to be opened. Written only by `engine/openings.py`.
    """

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="openings")
    annotator = models.ForeignKey(Annotator, models.PROTECT, related_name="+")
    # For somebody who had no need of it yet: see `openings.look_ahead`.
    is_ahead = models.BooleanField(default=False)
    wanted_at = models.DateTimeField(auto_now_add=True)
    # Where a model makes the start: the chain's number, who draws its start until when, and what was drawn.
    place = models.PositiveIntegerField(null=True)
    claimed_until = models.DateTimeField(null=True)
    start_code = models.TextField(blank=True, default="")
    start_content = models.TextField(blank=True, default="")
    chain = models.OneToOneField(Chain, models.CASCADE, null=True, related_name="opening")
    opened_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("annotator",), condition=Q(chain__isnull=True), name="opening_one_wanted_per_annotator"
            ),
            models.UniqueConstraint(
                fields=("campaign", "place"), condition=Q(chain__isnull=True), name="opening_one_start_per_number"
            ),
            models.CheckConstraint(
                name="opening_whole",
                condition=Q(chain__isnull=True, opened_at__isnull=True)
                | Q(chain__isnull=False, opened_at__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"{self.chain or 'a chain'} for annotator {self.annotator_id}"


class Turn(models.Model):
    """A model's turn on a comparison, while its votes are asked for or wait to be. Written by `model_judges/turns.py`.

    While `asked` is above 0, so many votes are on their way; their `owner`, the process that asks for them, moves
    `until` ahead while it lives, and `state` is the object being rated, where the rule rates. Otherwise `reason` says
    why there are none: they are asked for again at `until`, or, where that is null, once somebody has seen to it.
    """

    comparison = models.ForeignKey(Comparison, models.CASCADE, related_name="turns")
    judge = models.ForeignKey(Judge, models.CASCADE, related_name="turns")
    asked = models.PositiveIntegerField(default=0)
    # What it may come to while it is under way, where there is a cap on that: reserved for it.
    reserved_requests = models.PositiveBigIntegerField(default=0)
    reserved_cost = models.FloatField(default=0)
    state = models.ForeignKey(State, models.CASCADE, null=True, related_name="+")
    until = models.DateTimeField(null=True)
    owner = models.UUIDField(null=True)
    reason = models.CharField(max_length=300, blank=True)
    since = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("comparison", "judge"), name="turn_once_per_judge"),
            models.CheckConstraint(
                name="turn_asks_or_says_why", condition=Q(asked=0) ^ Q(asked__gt=0, until__isnull=False, reason="")
            ),
        )

    def __str__(self) -> str:
        return f"turn of judge {self.judge_id} on {self.comparison_id}"

    @property
    def is_suspended(self) -> bool:
        return self.asked == 0 and self.until is None


class PrefetchedProposal(models.Model):
    """A proposal drawn ahead: what the kernel makes of `state` at `step`, should the chain stand there."""

    chain = models.ForeignKey(Chain, models.CASCADE, related_name="prefetched_proposals")
    step = models.PositiveIntegerField()
    state = models.ForeignKey(State, models.CASCADE, related_name="+")
    code = models.TextField()
    log_r0 = models.FloatField()
    drawn_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("chain", "step", "state"), name="prefetched_once_per_state"),)

    def __str__(self) -> str:
        return f"prefetched proposal of step {self.step} of {self.chain}"
