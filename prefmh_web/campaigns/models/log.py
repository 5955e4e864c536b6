"""What happened in a campaign beside its steps and votes: events, what asking models has taken, trials of judges.

Of these the record has the events and the usage. What trials have taken counts against the site's caps, also once their
draft is deleted: the row stays, without its pairs.
"""

from __future__ import annotations

from typing import Any, TypedDict

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.fields.json import KT

from prefmh_web.campaigns.models.campaign import Campaign
from prefmh_web.campaigns.models.people import Voter
from prefmh_web.endpoints.models import Counts, Endpoint


class EndReason(models.TextChoices):
    """Why a researcher ended a part, in a word for the record: what they write may name people."""

    CARELESS = "careless", "careless answers"
    TWICE = "twice", "took part twice"
    TECHNICAL = "technical", "a technical problem"
    REQUEST = "request", "the person asked for it"
    LINK = "link", "everyone who joined with a link was removed"
    OTHER = "other", "another reason"


class ReportReason(models.TextChoices):
    """What somebody says is wrong with a pair."""

    NOT_SHOWN = "not-shown", "not shown, or broken"
    UPSETTING = "upsetting", "upsetting"
    UNDECIDED = "undecided", "cannot decide"
    OTHER = "other", "something else"


class Event(models.Model):
    """One thing that a researcher, a voter or the program did, by its kind, in the order of the primary key.

    `data` is what `campaigns/events.py` declares for the kind. It becomes part of the record and names nobody, but for
    its key `text`: of an event about a person that is free text, which events.csv leaves out and an erasure empties.
    """

    class Kind(models.TextChoices):
        PAUSED = "paused"
        RESUMED = "resumed"
        FINISHED_NOW = "finished-now"
        EXTENDED = "extended"
        CONFIG_CHANGED = "config-changed"
        STEP_SUSPENDED = "step-suspended"
        STEP_TRIED_AGAIN = "step-tried-again"
        CHAIN_ENDED = "chain-ended"
        REMINDED = "reminded"
        SCORERS_ASKED = "scorers-asked-again"
        MEMBER_SET = "member-set"
        MEMBER_REMOVED = "member-removed"
        PARTICIPATION_ENDED = "participation-ended"
        SIMULATED = "voter-simulated"
        REPORTED = "reported"
        ERASED = "erased"
        PAID = "paid"
        BONUS_SET = "bonus-set"
        CONSENT_ASKED = "consent-asked"
        MODEL_ACCEPTED = "model-accepted"
        ARCHIVED = "archived"
        UNARCHIVED = "unarchived"

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="events")
    kind = models.CharField(max_length=24, choices=Kind)
    at = models.DateTimeField(auto_now_add=True)
    # The researcher who did it, where one did and is known; the record has the role only.
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    # The person it is about, where it is about one.
    voter = models.ForeignKey(Voter, models.CASCADE, null=True, related_name="events")
    data = models.JSONField(default=dict)

    class Meta:
        ordering = ("pk",)
        indexes = (models.Index(fields=("campaign", "kind"), name="event_of_kind"),)
        constraints = (
            models.UniqueConstraint(
                fields=("voter",), condition=Q(kind="participation-ended"), name="part_ended_by_hand_once"
            ),
            models.UniqueConstraint(KT("data__key"), condition=Q(kind="reported"), name="pair_reported_once"),
            models.UniqueConstraint(
                "campaign", KT("data__version"), condition=Q(kind="consent-asked"), name="consent_text_once"
            ),
        )


class TrialPair(TypedDict):
    """Two objects as they were when they were shown, what the model replied, and which one the researcher prefers.

    `replies` are by the name of their slot (`lifecycle/judge_trials.py`); `preferred` is 0, 1 or None.
    """

    objects_shown: list[dict[str, Any]]
    replies: dict[str, Any]
    preferred: int | None


class JudgeTrial(Counts):
    """One trial of one judge of a draft. Written by `lifecycle/judge_trials.py`."""

    class Status(models.TextChoices):
        """How far it is."""

        ASKING = "asking"
        DONE = "done"
        STOPPED = "stopped"

    campaign = models.ForeignKey(Campaign, models.SET_NULL, null=True, related_name="judge_trials")
    # Of the judge in the config as it was then, which `judge` is.
    judge_index = models.PositiveSmallIntegerField()
    judge = models.JSONField()
    prompt_version = models.CharField(max_length=8)
    endpoint = models.ForeignKey(Endpoint, models.SET_NULL, null=True, related_name="+")
    # How many pairs, and how many replies for each of two orders, or of two objects where they are rated.
    wanted = models.PositiveSmallIntegerField()
    replies = models.PositiveSmallIntegerField()
    # Each a `TrialPair`; none before they are drawn. A pair is changed under the lock of the row: the researcher says
    # what they prefer while a worker stores replies.
    pairs = models.JSONField(default=list)
    status = models.CharField(max_length=8, choices=Status, default=Status.ASKING)
    reason = models.CharField(max_length=500, blank=True)
    # While somebody asks.
    until = models.DateTimeField(null=True)
    # What is set aside for the rest while it is asked.
    reserved_requests = models.PositiveBigIntegerField(default=0)
    reserved_cost = models.FloatField(default=0)

    @property
    def is_asking(self) -> bool:
        return self.status == self.Status.ASKING


class ModelUsage(Counts):
    """What one judge of a campaign has taken, or the writing of its proposals.

    `repeated` bounds the requests that were made again because whoever had claimed them died: see `engine/usage.py`.
    """

    # In `judge_index`, beside those of judges.
    PROPOSALS = -1

    # Null once it is deleted: what it has taken counts for the site all the same.
    campaign = models.ForeignKey(Campaign, models.SET_NULL, null=True, related_name="model_usage")
    judge_index = models.SmallIntegerField()
    repeated = models.PositiveBigIntegerField(default=0)
    # The largest of one request: by these, what the next one may cost.
    max_tokens_in = models.PositiveBigIntegerField(default=0)
    max_tokens_out = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ("judge_index",)
        constraints = (models.UniqueConstraint(fields=("campaign", "judge_index"), name="model_usage_once_per_judge"),)

    @property
    def is_of_proposals(self) -> bool:
        return self.judge_index == self.PROPOSALS
