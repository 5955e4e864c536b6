"""A campaign and its judges; the file that its objects come from, the objects, and what was measured of them."""

from __future__ import annotations

import json
import secrets
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse

import sampler
from prefmh_web import config as configs
from prefmh_web.config.study import LONGEST_NAME
from prefmh_web.endpoints.local import model_names
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.objects import OBJECT_KINDS, ObjectKind


class NotPossible(Exception):  # noqa: N818 - reads as the sentence it starts
    """The change is not possible now; the message says why and what would make it so."""


class Deleted(NotPossible):
    """Somebody deleted the campaign, perhaps in this very moment: there is nothing left to change."""

    def __init__(self) -> None:
        super().__init__("The campaign was deleted, perhaps in another window.")


@lru_cache(maxsize=64)
def _parsed(stored: str) -> configs.CampaignConfig:
    return configs.CampaignConfig.model_validate_json(stored)


def draw_seed() -> int:
    """Return a seed that nobody has seen."""
    return secrets.randbelow(configs.LARGEST_SEED + 1)


def backend_of_space(space: sampler.SpaceConfig) -> str:
    """Return where the proposals of a space come from: the kernel alone, texts that a model writes behind an endpoint
    or here, or pictures that an image model makes here.
    """
    if isinstance(space, sampler.ServedImagesConfig):
        return "rendered-images"
    if isinstance(space, sampler.ServedTextsConfig):
        return "own-texts" if space.model in model_names() else "served-texts"
    return "kernel"


class Campaign(models.Model):
    """A config being run, with its owner, people and record."""

    class Status(models.TextChoices):
        DRAFT = "draft"
        RUNNING = "running"
        PAUSED = "paused"
        FINISHED = "finished"
        DELETING = "deleting"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="campaigns")
    # Of the configuration, what is listed and filtered has columns: name and caps. The rest is `config_data`.
    name = models.CharField(max_length=LONGEST_NAME)
    # In the currency of the endpoints' prices; null for no cap.
    cost_cap = models.DecimalField(max_digits=12, decimal_places=2, null=True)
    request_cap = models.PositiveBigIntegerField(null=True)
    config_data = models.JSONField()
    # Of the random numbers: the one that was typed, which the configuration has, or the one that the start draws
    # (`lifecycle/status.py`).
    seed = models.BigIntegerField(default=draw_seed)
    # Of a started campaign: the hash of its seed, the random bits that are hashed with it, and since when both are
    # told, where a campaign was extended after its end.
    seed_hash = models.CharField(max_length=64, blank=True, default="")
    seed_salt = models.CharField(max_length=32, blank=True, default="")
    seed_revealed_at = models.DateTimeField(null=True)
    # Why it is paused, or about to be, where that was no decision of a researcher's.
    paused_because = models.CharField(max_length=500, blank=True, default="")
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
    # How many steps extensions have added (`lifecycle/changes.py`): configs in memory go by it.
    steps_added = models.PositiveIntegerField(default=0)
    # The steps of each chain's warm-up, 0 for none; how far the steps after it walk, null until that is chosen; and by
    # what it was chosen. See `lifecycle/changes.py`.
    warm_up = models.PositiveIntegerField(default=0)
    walk_length = models.PositiveIntegerField(null=True)
    tuning = models.JSONField(null=True)
    # The configuration that was parsed last, and what it was parsed from.
    _kept: tuple[tuple[Any, ...], configs.CampaignConfig] | None = None

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

    @property
    def has_panel(self) -> bool:
        """True of a started campaign whose people are named, each a judge of their own. One query."""
        return self.judges.filter(panelist__isnull=False).exists()

    @property
    def hides_seed(self) -> bool:
        """True while nobody may see the seed: from the start of a campaign to its end."""
        return bool(self.seed_hash) and self.status != self.Status.FINISHED and self.seed_revealed_at is None

    @property
    def is_seed_typed(self) -> bool:
        """False where the start draws the seed: no second campaign from the same file has it."""
        return self.config_data.get("seed") is not None

    @property
    def public_config(self) -> dict[str, Any]:
        """The configuration as others may see it, in plain data: see `prefmh_web.config.public`. Its seed has its hash
        in its place until it is revealed; of a draft it is left out.
        """
        config = configs.public(self.config, is_over=self.status == self.Status.FINISHED)
        if self.is_draft:
            return {name: value for name, value in config.items() if name != "seed"}
        # For whoever reads the record: it follows from the rest.
        config["target"] = self.config.target_distribution
        if self.hides_seed:
            return sampler.sealed_config(config, self.seed_hash, was_typed=self.is_seed_typed)
        opened = config | {"seed": self.seed}
        return sampler.opened_config(opened, self.seed_hash, self.seed_salt, was_typed=self.is_seed_typed)

    @property
    def config(self) -> configs.CampaignConfig:
        """The configuration, under the seed that the chains have whether it was typed or drawn. Whoever changes it sets
        `columns_of` another one.
        """
        found = self.config_data, self.name, self.cost_cap, self.request_cap, self.seed
        if self._kept is None or self._kept[0][0] is not self.config_data or self._kept[0][1:] != found[1:]:
            caps = {"cost": None if self.cost_cap is None else float(self.cost_cap), "requests": self.request_cap}
            whole = self.config_data | {"name": self.name, "seed": self.seed, "caps": caps}
            self._kept = found, _parsed(json.dumps(whole))
        return self._kept[1]

    @property
    def typed_config(self) -> configs.CampaignConfig:
        """The configuration as its owner has it: with a seed only where one was typed."""
        return self.config.model_copy(update={"seed": self.config_data.get("seed")})

    @property
    def backend(self) -> str:
        """Where the proposals come from, as `backend_of_space` names it."""
        return backend_of_space(self.config.space)

    @property
    def is_made_by_a_model(self) -> bool:
        """Whether a proposal may take seconds: a worker of another queue has a model make it, and ahead of time."""
        return self.backend != "kernel"

    @property
    def object_kind(self) -> ObjectKind:
        """How its objects are shown, given to models, and measured."""
        return OBJECT_KINDS[self.config.space.objects]


def columns_of(config: configs.CampaignConfig) -> dict[str, Any]:
    """Return the columns of a campaign with a configuration as its owner has it."""
    stored = config.model_dump(mode="json", exclude_none=True, exclude={"name", "caps", "target"})
    columns = {
        "name": config.name,
        "cost_cap": config.caps.cost,
        "request_cap": config.caps.requests,
        "config_data": stored,
    }
    return columns | ({} if config.seed is None else {"seed": config.seed})


class Judge(models.Model):
    """One question of a campaign, with its N votes and who answers: people, or a model behind an endpoint."""

    class Order(models.TextChoices):
        RANDOM = "random"
        BALANCED = "balanced"
        PROPOSAL_FIRST = "proposal-first"
        PROPOSAL_SECOND = "proposal-second"

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="judges")
    index = models.PositiveSmallIntegerField()
    question = models.CharField(max_length=300)
    max_votes = models.PositiveIntegerField()
    order = models.CharField(max_length=15, choices=Order, default=Order.RANDOM)
    endpoint = models.ForeignKey(Endpoint, models.PROTECT, null=True, related_name="judges")
    # Of a panel: which panelist it is, by their number.
    panelist = models.PositiveSmallIntegerField(null=True)
    # People are asked about a pair only once this judge's votes are in.
    is_asked_first = models.BooleanField(default=False)
    # Of a model: what it is asked, where and how, as the campaign started with it; see `model_judges/judges.py`.
    frozen = models.JSONField(null=True)
    # Why it is asked no more, until somebody has seen to it; empty while it is asked.
    stopped_because = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        ordering = ("index",)
        constraints = (models.UniqueConstraint(fields=("campaign", "index"), name="judge_once_per_index"),)

    def __str__(self) -> str:
        return self.question

    @property
    def is_model(self) -> bool:
        return self.endpoint_id is not None

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
    # While somebody reads it: until when nobody else need try.
    claimed_until = models.DateTimeField(null=True)
    rows_read = models.PositiveIntegerField(default=0)
    rows_total = models.PositiveIntegerField(null=True)
    error = models.TextField(blank=True)
    # [[where, reason], ...]; beyond what is kept, [words, words, how many more]
    refusals = models.JSONField(default=list)
    # The names of the further columns that were kept, in the order of the file.
    columns = models.JSONField(default=list)

    def __str__(self) -> str:
        return self.filename


class State(models.Model):
    """One object of a campaign's space, by its number: the index in the catalog, or `sampler.state_number`."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="states")
    index = models.PositiveIntegerField()
    content = models.TextField()
    # Of an object that a chain has made: what the space decodes the state from.
    code = models.TextField(blank=True)
    # Of a catalog's objects only.
    weight = models.FloatField(null=True)
    neighbours = models.JSONField(default=list)
    # Of a catalog's objects: what the file has in its further columns, by their names.
    columns = models.JSONField(default=dict)
    # Of images, unless they are quickly made from their code.
    picture = models.FileField(upload_to="pictures/", blank=True)
    media_type = models.CharField(max_length=40, blank=True)

    class Meta:
        ordering = ("index",)
        constraints = (
            models.UniqueConstraint(fields=("campaign", "index"), name="state_once_per_index"),
            models.CheckConstraint(name="state_weight_positive", condition=Q(weight__gt=0)),
        )


class Measured(models.Model):
    """The numbers that were measured of one object, by name; none where it could not be measured. Written by
    `proposals/scoring.py`. Not part of the record: anybody can measure the objects again.
    """

    state = models.OneToOneField(State, models.CASCADE, primary_key=True, related_name="measured")
    numbers = models.JSONField()
