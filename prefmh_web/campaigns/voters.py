"""Voters' numbers: each campaign's own, from 1, in the order in which people joined it.

They are what pages, the API and the record call people, and what the moments of attention checks are drawn by. Nobody
is ever removed from the table, and whoever a platform sends joins while the campaign's row is locked, so a number stays
what it is.
"""

from __future__ import annotations

from typing import Any, TypeVar

from django.db.models import Count, Model, OuterRef, QuerySet, Subquery

from prefmh_web.campaigns.models import Annotator, Campaign

# Beyond it, databases refuse to count; nobody is there.
_MOST = 2**31
Numbered = TypeVar("Numbered", bound=Model)


def number_of(annotator: Annotator) -> int:
    """Return somebody's number."""
    return Annotator.objects.filter(campaign=annotator.campaign_id, pk__lte=annotator.pk).count()


def numbers_in(campaign: Campaign) -> dict[int, int]:
    """Return everybody's number by their primary key."""
    return {pk: number for number, pk in enumerate(_everybody(campaign), start=1)}


def key_of(campaign: Campaign, number: int) -> int | None:
    """Return the primary key of the person of a number; None if there is nobody."""
    if not 0 < number < _MOST:
        return None
    return next(iter(_everybody(campaign)[number - 1 : number]), None)


def with_numbers(found: QuerySet[Numbered], path: str) -> QuerySet[Numbered, Any]:
    """Return rows with the number of whom each refers to by this path, as `voter_number`; None for nobody."""
    earlier = Annotator.objects.filter(campaign=OuterRef(f"{path}__campaign"), pk__lte=OuterRef(path)).order_by()
    numbered: QuerySet[Any, Any] = found.annotate(
        voter_number=Subquery(earlier.values("campaign").annotate(all=Count("pk")).values("all"))
    )
    return numbered


def _everybody(campaign: Campaign) -> QuerySet[Annotator, int]:
    return Annotator.objects.filter(campaign=campaign).order_by("pk").values_list("pk", flat=True)
