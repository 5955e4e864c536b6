"""A campaign and its judges."""

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.urls import reverse

import sampler
from prefmh_web.endpoints.models import Endpoint


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
    # While a draft is being started out of the request: since when, and what is being done.
    starting_since = models.DateTimeField(null=True)
    start_progress = models.CharField(max_length=200, blank=True, default="")
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
    def is_under_way(self) -> bool:
        """True from its start to its last step: running or paused."""
        return self.status in (self.Status.RUNNING, self.Status.PAUSED)

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
        """True when a model outside the sampler writes the objects."""
        return self.space_kind == "model-texts"

    @property
    def is_painted_by_a_model(self) -> bool:
        """True when a model outside the sampler makes the pictures of what the chains draw."""
        return self.space_kind == "model-images"

    @property
    def waits_for_a_model(self) -> bool:
        """True when a proposal takes a model outside the sampler, and so perhaps seconds."""
        return self.is_written_by_a_model or self.is_painted_by_a_model

    @property
    def is_rated(self) -> bool:
        """True when models rate each object alone: a baseline, which samples another law than votes do."""
        return self.recipe.get("rule", {"kind": "n-vote"})["kind"] == "pointwise"

    @property
    def objects_kind(self) -> str:
        """texts, molecules or images."""
        return sampler.objects_of(self.recipe["space"])


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
    # Of a model: what it is asked, where and how, as the campaign started with it; see `frozen_judges.py`.
    frozen = models.JSONField(null=True)
    # Why it is asked no more, until somebody has seen to it; empty while it is asked.
    stopped_because = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        ordering = ("place",)
        constraints = (models.UniqueConstraint(fields=("campaign", "place"), name="judge_once_per_place"),)

    def __str__(self) -> str:
        return self.question

    @property
    def is_model(self) -> bool:
        return self.endpoint_id is not None

    @property
    def answered_by(self) -> str:
        """The name of its endpoint when the campaign started; nothing where people answer."""
        if not self.is_model:
            return ""
        return self.frozen["endpoint"] if self.frozen else self.endpoint.name


class ReplyIdentity(models.Model):
    """Which model the replies to a judge said that they are from. Votes and ratings name the one of theirs.

    Replies of an identity that is not accepted are dropped.
    """

    judge = models.ForeignKey(Judge, models.CASCADE, related_name="identities")
    model = models.CharField(max_length=200, blank=True)
    system_fingerprint = models.CharField(max_length=200, blank=True)
    first_seen_at = models.DateTimeField(auto_now_add=True)
    accepted_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(fields=("judge", "model", "system_fingerprint"), name="reply_identity_once"),
        )

    def __str__(self) -> str:
        return f"{self.model} {self.system_fingerprint}".strip()
