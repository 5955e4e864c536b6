"""Chains and their steps: what was asked, who answered what, what was decided, what scorers say of the objects; and
what is under way: leases of people, turns of models, chains that are to open, and proposals drawn ahead.
"""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

import sampler
from prefmh_web.campaigns.models.campaign import Campaign, Judge, ReplyIdentity, State
from prefmh_web.campaigns.models.people import Voter


def _both_or_neither(first: str, second: str) -> Q:
    return Q(**{f"{first}__isnull": True, f"{second}__isnull": True}) | Q(
        **{f"{first}__isnull": False, f"{second}__isnull": False}
    )


class Side(models.TextChoices):
    """Which of a pair an object is, in the order of the document, whatever the layout and the direction of the page."""

    FIRST = "first"
    SECOND = "second"

    @property
    def other(self) -> Side:
        return Side.SECOND if self is Side.FIRST else Side.FIRST


class Chain(models.Model):
    """A Markov chain of `length` steps: its head is the state after `step` decided steps.

    `moves`, `accepted`, `votes` and `votes_for` count over the decided steps, so that watching needs no look at the
    whole history: proposals that differed from the current state, how many of them were accepted, and the votes that
    counted.
    """

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="chains")
    index = models.PositiveIntegerField()
    start = models.ForeignKey(State, models.PROTECT, related_name="+")
    head = models.ForeignKey(State, models.PROTECT, related_name="+")
    length = models.PositiveIntegerField()
    step = models.PositiveIntegerField(default=0)
    moves = models.PositiveIntegerField(default=0)
    accepted = models.PositiveIntegerField(default=0)
    votes = models.PositiveIntegerField(default=0)
    # Of these, those for the proposal.
    votes_for = models.PositiveIntegerField(default=0)
    # Steps whose proposal was there before the step was reached: nobody waited for it.
    prefetched = models.PositiveIntegerField(default=0)
    # Until then no other worker tries: a model makes what comes next, or pauses after a failure. `texts_claimed` counts
    # the texts that it writes; 0 is a pause, which `waits_because` explains.
    claimed_until = models.DateTimeField(null=True)
    texts_claimed = models.PositiveSmallIntegerField(default=0)
    waits_because = models.CharField(max_length=300, blank=True)
    # A researcher has ended it at a suspended step: that one stays without a verdict, and no other follows.
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("index",)
        constraints = (
            models.UniqueConstraint(fields=("campaign", "index"), name="chain_once_per_index"),
            models.CheckConstraint(name="chain_within_length", condition=Q(step__lte=F("length"))),
        )

    def __str__(self) -> str:
        return f"chain {self.index} of {self.campaign_id}"

    @property
    def acceptance(self) -> sampler.diagnostics.Acceptance:
        """How it accepts, over its decided steps."""
        return sampler.diagnostics.Acceptance(self.accepted, self.moves)

    @property
    def percent(self) -> int:
        return 100 * self.step // self.length

    @property
    def waits_for_others(self) -> bool:
        """True when the next step comes after the warm-up, and it is not chosen yet how far it walks."""
        return self.campaign.is_warming_up and self.step >= self.campaign.warm_up


class Comparison(models.Model):
    """The question one step asks: proposal against current. `verdict` is null while votes are out."""

    class Verdict(models.TextChoices):
        ACCEPT = sampler.Verdict.ACCEPT.value
        REJECT = sampler.Verdict.REJECT.value

    class Suspended(models.TextChoices):
        """Why a step is suspended."""

        SKIPS = "skips", "it was skipped too often"
        NOT_SHOWN = "not-shown", "people report that an object is not shown"

    chain = models.ForeignKey(Chain, models.CASCADE, related_name="comparisons")
    # The chain's campaign and index once more, for the index `comparison_next`. What holds for the chain's campaign
    # holds for this one: the database need not look.
    chain_campaign = models.ForeignKey(
        Campaign, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    chain_index = models.PositiveIntegerField()
    step = models.PositiveIntegerField()
    current = models.ForeignKey(State, models.PROTECT, related_name="+")
    proposal = models.ForeignKey(State, models.PROTECT, related_name="+")
    log_r0 = models.FloatField()
    uniform = models.FloatField()
    opened_at = models.DateTimeField(auto_now_add=True)
    verdict = models.CharField(max_length=6, choices=Verdict, null=True)  # noqa: DJ001 - null is "not settled yet"
    decided_at = models.DateTimeField(null=True)
    # False while all votes that it can use are out: whoever looks for a pair passes over it (`transitions.note_room`).
    is_askable = models.BooleanField(default=True)
    # Since when nobody new is asked about it, and why (`engine/suspension.py`). Where its chain was ended at it, that
    # stays so. Null of almost all.
    suspended_at = models.DateTimeField(null=True)
    suspended_for = models.CharField(max_length=9, choices=Suspended, null=True)  # noqa: DJ001 - null as `suspended_at`

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("chain", "step"), name="comparison_once_per_step"),
            models.UniqueConstraint(
                fields=("chain",), condition=Q(verdict__isnull=True), name="comparison_one_open_per_chain"
            ),
            models.CheckConstraint(
                name="comparison_decision_whole", condition=_both_or_neither("verdict", "decided_at")
            ),
            models.CheckConstraint(
                name="comparison_suspension_whole", condition=_both_or_neither("suspended_at", "suspended_for")
            ),
            models.CheckConstraint(name="comparison_uniform_in_range", condition=Q(uniform__gte=0, uniform__lt=1)),
        )
        indexes = (
            models.Index(fields=("decided_at",)),
            # Whoever looks for a pair finds the chain furthest behind first.
            models.Index(
                fields=("chain_campaign", "step", "chain_index"),
                condition=Q(verdict__isnull=True, is_askable=True),
                name="comparison_next",
            ),
        )

    @property
    def is_identity(self) -> bool:
        return self.current_id == self.proposal_id

    @property
    def takes_votes(self) -> bool:
        """True until it has its verdict, or its chain was ended at it."""
        return self.verdict is None and (self.suspended_at is None or self.chain.ended_at is None)

    def state_on(self, side: str, proposal_side: str) -> State:
        """Return the object that is `side` of the pair when the proposal is `proposal_side`."""
        return self.proposal if side == proposal_side else self.current


class Vote(models.Model):
    """One answer to one judge's question, of a voter or of a model. `number` is null for one that came too late.

    Of a model: `slot` is which of its N votes this is; `preference` the probability of a vote for the proposal that it
    was drawn from, if it was; `attempts` how many replies it took, more than one where some could not be read;
    `identity` what the reply said it is from; `reason` the beginning of what the model thought, where that is kept. Of
    a person: how the pair stood, and whether the words around it were translated by the browser; both decide nothing,
    and go when the person is forgotten.
    """

    class Layout(models.TextChoices):
        """How the two objects stood while they were shown; empty where the page did not tell."""

        BESIDE = "beside"
        STACKED = "stacked"
        CHANGED = "changed"

    LONGEST_REASON = 2_000
    """Characters of a reason that are shown; one more is stored of a longer one, which tells that it is cut."""

    key = models.UUIDField(unique=True)
    comparison = models.ForeignKey(Comparison, models.PROTECT, related_name="votes")
    judge = models.ForeignKey(Judge, models.PROTECT, related_name="votes")
    voter = models.ForeignKey(Voter, models.PROTECT, null=True, related_name="votes")
    number = models.PositiveIntegerField(null=True)
    proposal_side = models.CharField(max_length=6, choices=Side)
    chosen_side = models.CharField(max_length=6, choices=Side)
    elapsed_ms = models.PositiveIntegerField(null=True)
    # Of that, how long the page was in a hidden tab; null where the page did not tell.
    hidden_ms = models.PositiveIntegerField(null=True)
    layout = models.CharField(max_length=7, choices=Layout, blank=True, default="")
    is_translated = models.BooleanField(null=True)
    slot = models.PositiveIntegerField(null=True)
    preference = models.FloatField(null=True)
    attempts = models.PositiveSmallIntegerField(null=True)
    # Without an index: nobody looks for votes by it, and each index costs every vote.
    identity = models.ForeignKey(ReplyIdentity, models.PROTECT, null=True, related_name="+", db_index=False)
    reason = models.TextField(blank=True, default="")
    cast_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("comparison", "judge", "voter"),
                condition=Q(number__isnull=False),
                name="vote_counted_once_per_voter",
            ),
            models.UniqueConstraint(fields=("comparison", "number"), name="vote_number_once"),
            models.UniqueConstraint(fields=("comparison", "judge", "slot"), name="vote_once_per_slot"),
            models.CheckConstraint(
                name="vote_of_person_or_model",
                condition=Q(voter__isnull=False, slot__isnull=True) | Q(voter__isnull=True, slot__isnull=False),
            ),
            models.CheckConstraint(
                name="vote_preference_in_range",
                condition=Q(preference__isnull=True) | Q(preference__gte=0, preference__lte=1),
            ),
        )
        indexes = (
            models.Index(fields=("cast_at",)),
            # The few that came too late, so that counting them passes over all the others.
            models.Index(fields=("number",), condition=Q(number__isnull=True), name="vote_too_late"),
        )

    @property
    def for_proposal(self) -> bool:
        return self.chosen_side == self.proposal_side

    @property
    def counted(self) -> bool:
        return self.number is not None

    @property
    def shown_reason(self) -> str:
        """What the model thought before it voted, for people to read: it is never read as the answer."""
        return self.reason[: self.LONGEST_REASON]

    @property
    def is_reason_cut(self) -> bool:
        return len(self.reason) > self.LONGEST_REASON

    @property
    def seconds(self) -> float | None:
        """How long it took; None where the page did not tell, and of models."""
        return None if self.elapsed_ms is None else self.elapsed_ms / 1000


class Rating(models.Model):
    """One whole number that a model gave an object by one question; whoever needs it again finds it here.

    `slot` is which of the judge's N ratings of the object this is; `attempts` how many replies it took, null where the
    turn that brought it had some that could not be read, and nobody can say for which of its ratings.
    """

    state = models.ForeignKey(State, models.PROTECT, related_name="ratings")
    judge = models.ForeignKey(Judge, models.PROTECT, related_name="ratings")
    slot = models.PositiveIntegerField()
    value = models.PositiveSmallIntegerField()
    attempts = models.PositiveSmallIntegerField(null=True)
    identity = models.ForeignKey(ReplyIdentity, models.PROTECT, null=True, related_name="+", db_index=False)
    rated_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("state", "judge", "slot"), name="rating_once_per_slot"),)
        indexes = (models.Index(fields=("rated_at",)),)


class CampaignScorer(models.Model):
    """A scorer that a campaign has started with. Written by `proposals/scoring.py` and `lifecycle/model_start.py`."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="scorers")
    index = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=40)
    # What the scorer said of itself at the start: its kind, and what tells versions apart.
    frozen = models.JSONField()
    # Why it is asked no more, until somebody has seen to it; empty while it is asked.
    stopped_because = models.CharField(max_length=500, blank=True, default="")
    # While somebody asks it about a batch: until when nobody else need try.
    claimed_until = models.DateTimeField(null=True)
    # The campaign has finished and every object has its score, or a reason.
    is_complete = models.BooleanField(default=False)

    class Meta:
        ordering = ("index",)
        constraints = (models.UniqueConstraint(fields=("campaign", "name"), name="scorer_once_per_name"),)

    def __str__(self) -> str:
        return self.name


class Score(models.Model):
    """One number that a scorer gave an object, or why it has none."""

    state = models.ForeignKey(State, models.CASCADE, related_name="scores")
    scorer = models.ForeignKey(CampaignScorer, models.CASCADE, related_name="scores")
    value = models.FloatField(null=True)
    reason = models.CharField(max_length=300, blank=True, default="")
    scored_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("state", "scorer"), name="score_once_per_scorer"),
            models.CheckConstraint(
                name="score_or_reason",
                condition=Q(value__isnull=False, reason="") | (Q(value__isnull=True) & ~Q(reason="")),
            ),
        )


class Lease(models.Model):
    """A vote promised to one voter until a deadline, with the sides drawn for it.

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
    voter = models.ForeignKey(Voter, models.CASCADE, related_name="leases")
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
                fields=("voter",), condition=Q(ended_at__isnull=True), name="lease_one_live_per_voter"
            ),
            models.CheckConstraint(name="lease_ending_whole", condition=_both_or_neither("ended_at", "ending")),
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

    @property
    def is_live(self) -> bool:
        return self.ended_at is None

    @property
    def first(self) -> State:
        return self.comparison.state_on(Side.FIRST, self.proposal_side)

    @property
    def second(self) -> State:
        return self.comparison.state_on(Side.SECOND, self.proposal_side)


# Chains that a campaign started with.
OF_THE_START = Q(demand__isnull=True)


class ChainOnDemand(models.Model):
    """Why a chain opened after the start: for this person, who would have waited, or soon would. Without a chain, it is
    still to be opened. Written only by `engine/on_demand.py`.
    """

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="chain_demands")
    voter = models.ForeignKey(Voter, models.PROTECT, related_name="+")
    # For somebody who had no need of it yet: see `on_demand.open_spare`.
    is_ahead = models.BooleanField(default=False)
    # Where a model makes the start: the chain's number; until when it is being drawn, or left alone, and why that is;
    # what was drawn.
    index = models.PositiveIntegerField(null=True)
    claimed_until = models.DateTimeField(null=True)
    waits_because = models.CharField(max_length=300, blank=True)
    start_code = models.TextField(blank=True, default="")
    start_content = models.TextField(blank=True, default="")
    chain = models.OneToOneField(Chain, models.CASCADE, null=True, related_name="demand")
    opened_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("voter",), condition=Q(chain__isnull=True), name="demand_one_wanted_per_voter"
            ),
            models.UniqueConstraint(
                fields=("campaign", "index"), condition=Q(chain__isnull=True), name="demand_one_start_per_number"
            ),
            models.CheckConstraint(name="demand_whole", condition=_both_or_neither("chain", "opened_at")),
        )


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

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("comparison", "judge"), name="turn_once_per_judge"),
            models.CheckConstraint(
                name="turn_asks_or_says_why", condition=Q(asked=0) ^ Q(asked__gt=0, until__isnull=False, reason="")
            ),
        )

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
