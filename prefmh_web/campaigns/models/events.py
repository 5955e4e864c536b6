"""What happened in a started campaign beside its steps and votes. Written only by `campaigns/events.py`."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.fields.json import KT

from prefmh_web.campaigns.models.campaign import Campaign
from prefmh_web.campaigns.models.people import Annotator


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
    voter = models.ForeignKey(Annotator, models.CASCADE, null=True, related_name="events")
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
                "campaign", KT("data__version"), condition=Q(kind="consent-text"), name="consent_text_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} in {self.campaign_id}"
