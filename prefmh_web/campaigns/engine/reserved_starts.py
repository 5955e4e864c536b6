"""Numbers of chains that are to open, given out before their starts are drawn, each to one worker at a time.

    reserved     the openings that this worker is to draw starts for, claimed while it does
    store        keeps what was drawn

A model takes seconds over a start, and may be paid for it, so no two workers draw the same one. A number stays with its
opening: if the worker dies or the model fails, the next one draws for the same number. So chains open in the order of
their numbers, whichever is drawn first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from prefmh_web.campaigns.engine import openings
from prefmh_web.campaigns.engine.renewal import claim_end, renewed
from prefmh_web.campaigns.models import Campaign, ChainOpening, State


@contextmanager
def reserved(campaign: Campaign, most: int) -> Iterator[Mapping[int, ChainOpening]]:
    """Claim up to so many openings whose starts are to be drawn; yield them by their numbers, and free them after."""
    until = claim_end()
    claim = _Claim(_claimed(campaign, most, until), until)
    if not claim.openings:
        yield {}
        return
    try:
        with renewed(claim):
            yield claim.openings
    finally:
        claim.free()


def store(opening: ChainOpening, start: State) -> None:
    """Keep what was drawn for an opening, unless another worker has done so after this one was given up."""
    ChainOpening.objects.filter(pk=opening.pk, chain__isnull=True, start_code="").update(
        start_code=start.code, start_content=start.content
    )


class _Claim:
    def __init__(self, openings: Mapping[int, ChainOpening], until: datetime) -> None:
        self.openings = openings
        self._until = until

    def __str__(self) -> str:
        return f"the starts of {len(self.openings)} chains"

    def renew(self) -> None:
        until = claim_end()
        self._mine().update(claimed_until=until)
        self._until = until

    def free(self) -> None:
        self._mine().update(claimed_until=None)

    def _mine(self) -> QuerySet[ChainOpening]:
        # Only as they were taken: one that ran out may be somebody else's by now.
        return ChainOpening.objects.filter(
            pk__in=[each.pk for each in self.openings.values()], claimed_until=self._until
        )


def _claimed(campaign: Campaign, most: int, until: datetime) -> dict[int, ChainOpening]:
    with transaction.atomic():
        # Two workers would give the same number twice.
        Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
        wanted = openings.wanted().filter(campaign=campaign)
        following = campaign.chains.count() + wanted.filter(place__isnull=False).count()
        is_free = Q(claimed_until=None) | Q(claimed_until__lte=timezone.now())
        # Numbers that were given out come first: no later chain opens before them.
        first = wanted.filter(is_free, start_code="").order_by(F("place").asc(nulls_last=True), "pk")[:most]
        found: dict[int, ChainOpening] = {}
        for opening in first:
            if opening.place is None:
                opening.place, following = following, following + 1
            opening.claimed_until = until
            found[opening.place] = opening
        ChainOpening.objects.bulk_update(found.values(), ["place", "claimed_until"])
    return found
