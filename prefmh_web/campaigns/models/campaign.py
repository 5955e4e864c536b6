"""A campaign and its judges."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.urls import reverse

import sampler
from prefmh_web.endpoints.local.models import model_names
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.objects import OBJECT_KINDS, ObjectKind


@lru_cache(maxsize=64)
def _parsed(config: str) -> sampler.ChainConfig:
    return sampler.parse_config(json.loads(config))


def backend_of_space(space: sampler.SpaceConfig) -> str:
    """Return where the proposals of a space come from: a name of `proposals/backends`."""
    if isinstance(space, sampler.ServedImagesConfig):
        return "rendered-images"
    if isinstance(space, sampler.ServedTextsConfig):
        return "own-texts" if space.model in model_names() else "served-texts"
    return "kernel"


class Campaign(models.Model):
    """A config being run, with its owner, people and record."""

    class Layout(models.TextChoices):
        """How the two objects stand."""

        BY_SCREEN = "by-screen", "Side by side where there is room, else one above the other"
        STACKED = "stacked", "One above the other on every screen"

    class Status(models.TextChoices):
        DRAFT = "draft"
        RUNNING = "running"
        PAUSED = "paused"
        FINISHED = "finished"
        DELETING = "deleting"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="campaigns")
    name = models.CharField(max_length=120)
    instructions = models.TextField(max_length=4000, blank=True)
    config_data = models.JSONField()
    # False where the start draws the seed (`lifecycle/sealing.py`). A file of the setup leaves out such a seed, so that
    # no second campaign has it.
    is_seed_typed = models.BooleanField(default=False)
    # Of a started campaign: the hash of its seed, the random bits that are hashed with it, and since when both are
    # told, where a campaign was extended after its end.
    seed_hash = models.CharField(max_length=64, blank=True, default="")
    seed_salt = models.CharField(max_length=32, blank=True, default="")
    seed_told_at = models.DateTimeField(null=True)
    lease_seconds = models.PositiveIntegerField(
        default=120, validators=[MinValueValidator(10), MaxValueValidator(3600)]
    )
    # After so many skips, or after so many people have reported that an object is not shown, nobody else is asked about
    # a step until the researcher has looked (`engine/suspension.py`). Null: skips suspend nothing.
    suspend_after_skips = models.PositiveIntegerField(null=True, validators=[MinValueValidator(1)])
    suspend_after_reports = models.PositiveIntegerField(default=2, validators=[MinValueValidator(1)])
    # Of the pages for voters; part of what people judge by, so it does not change after Start.
    language = models.CharField(max_length=12, default="en")
    # How a pair stands on voters' screens; empty for what the orders of its judges ask for (`shown_as`).
    layout = models.CharField(max_length=9, choices=Layout, blank=True, default="")

    # What asking models may cost, in the currency of the endpoints' prices, and how many requests it may take; null for
    # no cap. `lifecycle/caps.py` changes those of a started campaign.
    cost_cap = models.DecimalField(max_digits=12, decimal_places=2, null=True, validators=[MinValueValidator(0)])
    request_cap = models.PositiveBigIntegerField(null=True)
    # Why it is paused, or about to be, where that was no decision of a researcher's.
    paused_because = models.CharField(max_length=500, blank=True, default="")
    # Of the models that give each object a number, separated by spaces: which ones a start will take.
    scorer_names = models.CharField(max_length=1000, blank=True, default="")
    status = models.CharField(max_length=8, choices=Status, default=Status.DRAFT)
    # Why a draft could not be started where its model runs.
    start_trouble = models.CharField(max_length=500, blank=True)
    # While a draft is being started out of the request: since when, and what is being done.
    starting_since = models.DateTimeField(null=True)
    start_progress = models.CharField(max_length=200, blank=True, default="")

    # By which a program that creates campaigns finds this one again; empty for none.
    creation_key = models.CharField(max_length=100, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    # Since when it is not on the list; null while it is.
    archived_at = models.DateTimeField(null=True)
    # How many steps extensions have added (`lifecycle/extension.py`): configs in memory go by it.
    steps_added = models.PositiveIntegerField(default=0)
    # The steps of each chain's warm-up, 0 for none; how far the steps after it walk, null until that is chosen; and by
    # what it was chosen. See `lifecycle/warm_up.py`.
    warm_up = models.PositiveIntegerField(default=0)
    walk_length = models.PositiveIntegerField(null=True)
    tuning = models.JSONField(null=True)
    # The config that was parsed last, and what it is as the sampler's value.
    _kept: tuple[Any, sampler.ChainConfig] | None = None

    class Meta:
        ordering = ("-created_at", "-pk")
        constraints = (
            models.UniqueConstraint(
                fields=("owner", "creation_key"), condition=~Q(creation_key=""), name="campaign_once_per_creation_key"
            ),
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
    def is_warming_up(self) -> bool:
        """True until it is chosen how far the steps after the warm-up walk."""
        return self.warm_up > 0 and self.walk_length is None

    def shown_as(self, config: sampler.ChainConfig | None = None) -> dict[str, Any]:
        """Return how pages show a pair: whether one object stands above the other on every screen, since a bias that
        is to cancel between two orders must be that of one layout; and the language of the objects, where it is known.

        Args:
            config: its own, where that is in memory.
        """
        config = config or self.config
        has_orders = any(judge.order != "random" for judge in config.judges)
        is_stacked = self.layout == self.Layout.STACKED or (self.layout == "" and has_orders)
        # Of those that are generated, the story openings are written here.
        return {"is_stacked": is_stacked, "objects_lang": "en" if config.space.kind == "texts" else ""}

    @property
    def has_panel(self) -> bool:
        """True of a started campaign whose people are named, each a judge of their own."""
        return self.judges.filter(panelist__isnull=False).exists()

    @property
    def hides_seed(self) -> bool:
        """True while nobody may see the seed: from the start of a campaign to its end."""
        return bool(self.seed_hash) and self.status != self.Status.FINISHED and self.seed_told_at is None

    @property
    def told_config(self) -> dict[str, Any]:
        """The config as others may see it, in plain data: with numbers for a panel's names, and with the hash in the
        place of a seed that is not told yet; of a draft without its seed.
        """
        config = sampler.unnamed_config(self.config_data)
        if self.is_draft:
            return {name: value for name, value in config.items() if name != "seed"}
        if self.hides_seed:
            return sampler.sealed_config(config, self.seed_hash, was_typed=self.is_seed_typed)
        return sampler.opened_config(config, self.seed_hash, self.seed_salt, was_typed=self.is_seed_typed)

    @property
    def config(self) -> sampler.ChainConfig:
        """The config as the sampler's value; whoever changes a draft's writes plain data to `config_data`.

        Raises:
            sampler.ConfigError: it does not parse.
        """
        if self._kept is None or self._kept[0] is not self.config_data:
            self._kept = self.config_data, _parsed(json.dumps(self.config_data))
        return self._kept[1]

    @property
    def target_law(self) -> str:
        """The law that the chains sample, in plain text."""
        return self.config.target or self.config.law

    @property
    def backend(self) -> str:
        """Where the proposals come from: a name of `proposals/backends`."""
        return backend_of_space(self.config.space)

    @property
    def object_kind(self) -> ObjectKind:
        """How its objects are shown, given to models, and measured."""
        return OBJECT_KINDS[self.config.space.objects]


class Judge(models.Model):
    """One question of a campaign, with its budget N and who answers: people, or a model behind an endpoint."""

    class Order(models.TextChoices):
        RANDOM = "random"
        BALANCED = "balanced"
        PROPOSAL_FIRST = "proposal-first"
        PROPOSAL_SECOND = "proposal-second"

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="judges")
    place = models.PositiveSmallIntegerField()
    question = models.CharField(max_length=300)
    max_votes = models.PositiveIntegerField()
    order = models.CharField(max_length=15, choices=Order, default=Order.RANDOM)
    endpoint = models.ForeignKey(Endpoint, models.PROTECT, null=True, related_name="judges")
    # Of a panel: which panelist it is, by their number.
    panelist = models.PositiveSmallIntegerField(null=True)
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
    def is_of_people(self) -> bool:
        """True where people answer in a browser."""
        return not self.is_model

    @property
    def answered_by(self) -> str:
        """The name of its endpoint when the campaign started; nothing where people answer."""
        if self.frozen:
            return str(self.frozen["endpoint"])
        return "" if self.endpoint is None else self.endpoint.name


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
