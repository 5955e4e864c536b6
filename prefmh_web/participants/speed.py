"""Votes that came fast. A flag for the researcher: nobody is refused or shown out for it."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from django.db.models import F, QuerySet, Window
from django.db.models.functions import Lag

from prefmh_web.campaigns.models import Annotator, Campaign, Vote

_MINUTE = timedelta(minutes=1)


def most_a_minute(campaign: Campaign) -> int | None:
    """Return how many votes within a minute are no flag; None where the campaign has not set it."""
    return campaign.config.study.most_a_minute


def fast_votes(annotators: QuerySet[Annotator], most: int | None) -> Counter[int]:
    """Return how many votes of each annotator were fast: in the minute that ended with one, they gave more than `most`.

    Whoever gave none that fast is not in it.
    """
    return Counter() if most is None else Counter(_fast(annotators, most).values_list("annotator_id", flat=True))


def _fast(annotators: QuerySet[Annotator], most: int) -> QuerySet[Vote]:
    # The vote that came `most` votes earlier is less than a minute older.
    earlier = Window(Lag("cast_at", offset=most), partition_by="annotator", order_by=("cast_at", "pk"))
    votes = Vote.objects.filter(annotator__in=annotators).annotate(earlier=earlier)
    return votes.filter(earlier__gt=F("cast_at") - _MINUTE)
