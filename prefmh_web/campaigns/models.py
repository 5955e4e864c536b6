"""The record: what was asked, who answered what, and what was decided.

State changes have one door each: `loop.py` for comparisons, votes, ratings and the chains' steps, `setup.py` for
drafts, `lifecycle.py` for starting (which creates judges and chains), pausing and resuming, `catalogs.py` for files and
their objects, `states.py` for the objects that chains make; annotators are written by the annotation pages. What must
never happen stands as a constraint here, whatever the code above does.
"""

import secrets

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.urls import reverse

import sampler
from prefmh_web.endpoints.models import Endpoint


def _both_or_neither(first: str, second: str) -> Q:
    return Q(**{f"{first}__isnull": True, f"{second}__isnull": True}) | Q(
        **{f"{first}__isnull": False, f"{second}__isnull": False}
    )


class Side(models.TextChoices):
    """Where on the screen an object stands."""

    LEFT = "left"
    RIGHT = "right"

    @property
    def other(self) -> "Side":
        return Side.RIGHT if self is Side.LEFT else Side.LEFT


class Campaign(models.Model):
    """A recipe being run, with its owner, people and record."""

    class Status(models.TextChoices):
        DRAFT = "draft"
        RUNNING = "running"
        PAUSED = "paused"
        FINISHED = "finished"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="campaigns")
    name = models.CharField(max_length=120)
    instructions = models.TextField(max_length=4000, blank=True)
    recipe = models.JSONField()
    lease_seconds = models.PositiveIntegerField(
        default=120, validators=[MinValueValidator(10), MaxValueValidator(3600)]
    )
    status = models.CharField(max_length=8, choices=Status, default=Status.DRAFT)
    # Why a draft could not be started where its model runs.
    start_trouble = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-created_at", "-pk")
        constraints = (
            models.CheckConstraint(
                name="campaign_started_unless_draft",
                condition=Q(status="draft", started_at__isnull=True)
                | (~Q(status="draft") & Q(started_at__isnull=False)),
            ),
        )

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("console:campaign", args=[self.pk])

    @property
    def is_draft(self) -> bool:
        return self.status == self.Status.DRAFT

    @property
    def is_running(self) -> bool:
        return self.status == self.Status.RUNNING

    @property
    def space_kind(self) -> str:
        """catalog, or the kind of a space whose objects the chains make."""
        return self.recipe["space"]["kind"]

    @property
    def has_catalog(self) -> bool:
        """True when the objects come from a file."""
        return self.space_kind == "catalog"

    @property
    def is_written_by_a_model(self) -> bool:
        """True when a model outside the sampler makes the proposals, which may take it seconds."""
        return self.space_kind == "model-texts"

    @property
    def is_rated(self) -> bool:
        """True when models rate each object alone: a baseline, which samples another law than votes do."""
        return self.recipe.get("rule", {"kind": "n-vote"})["kind"] == "pointwise"

    @property
    def objects_kind(self) -> str:
        """texts, molecules or images."""
        return sampler.objects_of(self.recipe["space"])


class Catalog(models.Model):
    """The file a campaign's objects come from, and how far its reading is."""

    class Status(models.TextChoices):
        READING = "reading"
        READY = "ready"
        REFUSED = "refused"

    campaign = models.OneToOneField(Campaign, models.CASCADE, related_name="catalog")
    file = models.FileField(upload_to="uploads/")
    filename = models.CharField(max_length=255)
    status = models.CharField(max_length=8, choices=Status, default=Status.READING)
    # A new file or a new neighbour count raises it, so that a reading begun before can tell that it is stale.
    revision = models.PositiveIntegerField(default=1)
    # A file whose reading takes the process down must not do so at every start.
    attempts = models.PositiveSmallIntegerField(default=0)
    rows_read = models.PositiveIntegerField(default=0)
    rows_total = models.PositiveIntegerField(null=True)
    error = models.TextField(blank=True)
    # [[where, reason], ...]
    refusals = models.JSONField(default=list)

    def __str__(self) -> str:
        return self.filename


class State(models.Model):
    """One object of a campaign's space, by its number: the place in the catalog, or `sampler.state_number`."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="states")
    place = models.PositiveIntegerField()
    content = models.TextField()
    # Of an object that a chain has made: what the space decodes the state from.
    code = models.TextField(blank=True)
    # Of a catalog's objects only, as all that follows.
    weight = models.FloatField(null=True, validators=[MinValueValidator(0)])
    neighbours = models.JSONField(default=list)
    picture = models.FileField(upload_to="pictures/", blank=True)
    media_type = models.CharField(max_length=40, blank=True)

    class Meta:
        ordering = ("place",)
        constraints = (
            models.UniqueConstraint(fields=("campaign", "place"), name="state_once_per_place"),
            models.CheckConstraint(name="state_weight_positive", condition=Q(weight__gt=0)),
        )

    def __str__(self) -> str:
        return self.content[:80]


class Membership(models.Model):
    """A researcher who may see somebody else's campaign, and perhaps run it."""

    class Role(models.TextChoices):
        VIEWER = "viewer", "may watch and download"
        MANAGER = "manager", "may also start, pause and invite"

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=7, choices=Role, default=Role.VIEWER)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("campaign", "user"), name="member_once_per_campaign"),)

    def __str__(self) -> str:
        return f"{self.user} in {self.campaign_id}"


class Judge(models.Model):
    """One question of a campaign, with its budget N and who answers: people, or the model behind an endpoint."""

    class Order(models.TextChoices):
        RANDOM = "random"
        BALANCED = "balanced"
        PROPOSAL_FIRST = "proposal-first"
        PROPOSAL_SECOND = "proposal-second"

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="judges")
    place = models.PositiveSmallIntegerField()
    question = models.CharField(max_length=300)
    budget = models.PositiveIntegerField()
    order = models.CharField(max_length=15, choices=Order, default=Order.RANDOM)
    endpoint = models.ForeignKey(Endpoint, models.PROTECT, null=True, related_name="judges")
    # People are asked about a pair only once this judge's votes are in.
    is_asked_first = models.BooleanField(default=False)

    class Meta:
        ordering = ("place",)
        constraints = (models.UniqueConstraint(fields=("campaign", "place"), name="judge_once_per_place"),)

    def __str__(self) -> str:
        return self.question

    @property
    def is_model(self) -> bool:
        return self.endpoint_id is not None


class Chain(models.Model):
    """A Markov chain of `length` steps: its head is the state after `step` decided steps.

    `moves`, `accepted` and `votes` count over the decided steps, so that watching needs no look at the whole history:
    proposals that differed from the current state, how many of them were accepted, and the votes that counted.
    """

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="chains")
    place = models.PositiveIntegerField()
    start = models.ForeignKey(State, models.PROTECT, related_name="+")
    head = models.ForeignKey(State, models.PROTECT, related_name="+")
    length = models.PositiveIntegerField()
    step = models.PositiveIntegerField(default=0)
    moves = models.PositiveIntegerField(default=0)
    accepted = models.PositiveIntegerField(default=0)
    votes = models.PositiveIntegerField(default=0)
    # Steps whose proposal was there before the step was reached: nobody waited for it.
    foreseen = models.PositiveIntegerField(default=0)
    # While a model is writing the next proposal, or rests after a failure: until when nobody else need try.
    waits_until = models.DateTimeField(null=True)
    waits_because = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ("place",)
        constraints = (
            models.UniqueConstraint(fields=("campaign", "place"), name="chain_once_per_place"),
            models.CheckConstraint(name="chain_within_length", condition=Q(step__lte=F("length"))),
        )

    def __str__(self) -> str:
        return f"chain {self.place} of {self.campaign_id}"


class Comparison(models.Model):
    """The question one step asks: proposal against current. `verdict` is null while votes are out."""

    class Verdict(models.TextChoices):
        ACCEPT = sampler.Verdict.ACCEPT.value
        REJECT = sampler.Verdict.REJECT.value

    chain = models.ForeignKey(Chain, models.CASCADE, related_name="comparisons")
    step = models.PositiveIntegerField()
    current = models.ForeignKey(State, models.PROTECT, related_name="+")
    proposal = models.ForeignKey(State, models.PROTECT, related_name="+")
    log_r0 = models.FloatField()
    uniform = models.FloatField()
    opened_at = models.DateTimeField(auto_now_add=True)
    verdict = models.CharField(max_length=6, choices=Verdict, null=True)  # noqa: DJ001 - null is "not settled yet"
    decided_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("chain", "step"), name="comparison_once_per_step"),
            models.UniqueConstraint(
                fields=("chain",), condition=Q(verdict__isnull=True), name="comparison_one_open_per_chain"
            ),
            models.CheckConstraint(
                name="comparison_decision_whole", condition=_both_or_neither("verdict", "decided_at")
            ),
            models.CheckConstraint(name="comparison_uniform_in_range", condition=Q(uniform__gte=0, uniform__lt=1)),
        )
        indexes = (models.Index(fields=("decided_at",)),)

    def __str__(self) -> str:
        return f"step {self.step} of {self.chain}"

    @property
    def is_identity(self) -> bool:
        return self.current_id == self.proposal_id

    def standing(self, side: str, proposal_side: str) -> State:
        """Return the object on `side` of the screen when the proposal stands on `proposal_side`."""
        return self.proposal if side == proposal_side else self.current


class Turn(models.Model):
    """A model's turn on a comparison, while its votes are asked for or wait to be. Written by `judging.py`.

    While `asked` is above 0, so many votes are on their way, until `until` at the latest. Otherwise `reason` says why
    there are none: they are asked for again at `until`, or, where that is null, once somebody has seen to it.
    """

    comparison = models.ForeignKey(Comparison, models.CASCADE, related_name="turns")
    judge = models.ForeignKey(Judge, models.CASCADE, related_name="turns")
    asked = models.PositiveIntegerField(default=0)
    until = models.DateTimeField(null=True)
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
    def is_parked(self) -> bool:
        return self.asked == 0 and self.until is None


class Draft(models.Model):
    """A proposal drawn ahead: what the kernel makes of `state` at `step`, should the chain stand there."""

    chain = models.ForeignKey(Chain, models.CASCADE, related_name="drafts")
    step = models.PositiveIntegerField()
    state = models.ForeignKey(State, models.CASCADE, related_name="+")
    code = models.TextField()
    log_r0 = models.FloatField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("chain", "step", "state"), name="draft_once_per_state"),)

    def __str__(self) -> str:
        return f"draft of step {self.step} of {self.chain}"


class Annotator(models.Model):
    """A person who votes in one campaign, known by their session only."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="annotators")
    # The link they came by; null for those who joined before links were noted.
    invitation = models.ForeignKey("Invitation", models.PROTECT, null=True, related_name="annotators")
    joined_at = models.DateTimeField(auto_now_add=True)
    # Set when access is withdrawn: no more pairs, no more votes; what they voted stays.
    removed_at = models.DateTimeField(null=True)
    # A page renews this every half minute while its socket is open.
    online_until = models.DateTimeField(null=True)
    # Set when a lease ran out unanswered: no more pairs until the person shows that they are there.
    resting = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"annotator {self.pk}"


def new_invitation_token() -> str:
    return secrets.token_urlsafe(16)


class Invitation(models.Model):
    """A link that lets people join a campaign as annotators."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="invitations")
    token = models.CharField(max_length=43, unique=True, default=new_invitation_token)
    created_at = models.DateTimeField(auto_now_add=True)
    # One person only, if set; whoever opens it next is turned away.
    is_single_use = models.BooleanField(default=False)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"invitation to {self.campaign_id}"

    def get_absolute_url(self) -> str:
        return reverse("annotate:welcome", args=[self.token])


class Vote(models.Model):
    """One answer to one judge's question, of an annotator or of a model. `number` is null for one that came too late.

    Of a model: `slot` is which of its N votes this is; `preference` the probability of a vote for the proposal that it
    was drawn from, if it was; `asks` how many replies it took, more than one where some could not be read.
    """

    key = models.UUIDField(unique=True)
    comparison = models.ForeignKey(Comparison, models.PROTECT, related_name="votes")
    judge = models.ForeignKey(Judge, models.PROTECT, related_name="votes")
    annotator = models.ForeignKey(Annotator, models.PROTECT, null=True, related_name="votes")
    number = models.PositiveIntegerField(null=True)
    proposal_side = models.CharField(max_length=5, choices=Side)
    chosen_side = models.CharField(max_length=5, choices=Side)
    elapsed_ms = models.PositiveIntegerField(null=True)
    slot = models.PositiveIntegerField(null=True)
    preference = models.FloatField(null=True)
    asks = models.PositiveSmallIntegerField(null=True)
    cast_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("comparison", "judge", "annotator"),
                condition=Q(number__isnull=False),
                name="vote_counted_once_per_annotator",
            ),
            models.UniqueConstraint(fields=("comparison", "number"), name="vote_number_once"),
            models.UniqueConstraint(fields=("comparison", "judge", "slot"), name="vote_once_per_slot"),
            models.CheckConstraint(
                name="vote_of_person_or_model",
                condition=Q(annotator__isnull=False, slot__isnull=True) | Q(annotator__isnull=True, slot__isnull=False),
            ),
            models.CheckConstraint(
                name="vote_preference_in_range",
                condition=Q(preference__isnull=True) | Q(preference__gte=0, preference__lte=1),
            ),
        )
        indexes = (models.Index(fields=("cast_at",)),)

    def __str__(self) -> str:
        return f"vote {self.number} on {self.comparison_id}"

    @property
    def for_proposal(self) -> bool:
        return self.chosen_side == self.proposal_side

    @property
    def counted(self) -> bool:
        return self.number is not None


class Rating(models.Model):
    """One whole number that a model gave an object by one question; whoever needs it again finds it here.

    `slot` is which of the judge's N ratings of the object this is; `asks` how many replies it took, null where the
    turn that brought it had some that could not be read, and nobody can say for which of its ratings.
    """

    state = models.ForeignKey(State, models.PROTECT, related_name="ratings")
    judge = models.ForeignKey(Judge, models.PROTECT, related_name="ratings")
    slot = models.PositiveIntegerField()
    value = models.PositiveSmallIntegerField()
    asks = models.PositiveSmallIntegerField(null=True)
    rated_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("state", "judge", "slot"), name="rating_once_per_slot"),)
        indexes = (models.Index(fields=("rated_at",)),)

    def __str__(self) -> str:
        return f"{self.value} for state {self.state_id} by judge {self.judge_id}"
