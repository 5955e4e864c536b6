"""Which chains a model is at work for. Nobody else has it write for these meanwhile.

    waits_until       the next proposal of a chain that waits; with `waits_because`, a rest after a failure
    prefetches_until  what the step after the open one may propose

A claim is a lease that its holder renews while it works, however long the model takes over it. So a process that dies
keeps its chains from the others for `CLAIM_S` and no longer. As with `endpoints.slots`, clocks must agree to within
that time, and no holder may be stopped for longer than it. Work here holds its thread, so another one renews.
"""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Literal

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from prefmh_web.campaigns.engine import caps, spending
from prefmh_web.campaigns.engine.renewal import claim_end, renewed
from prefmh_web.campaigns.models import Chain

logger = logging.getLogger(__name__)

Purpose = Literal["waits_until", "prefetches_until"]


def are_free() -> Q:
    """What holds for chains that nobody is at work for, and that do not rest."""
    return _is_past("waits_until") & _is_past("prefetches_until")


def are_claimed() -> Q:
    """What holds for chains that somebody is at work for."""
    now = timezone.now()
    return Q(waits_until__gt=now, waits_because="") | Q(prefetches_until__gt=now)


@contextmanager
def held(purpose: Purpose, chains: Iterable[Chain]) -> Iterator[list[int]]:
    """Claim those of the chains that are free and have not moved; yield their keys, and free them at the end.

    What is to be done for them is read once they are claimed: somebody may have done it just before.
    """
    until = claim_end()
    claim = _Claim(purpose, [chain.pk for chain in chains if _take(chain, purpose, until)], until)
    if not claim.chains:
        yield []
        return
    try:
        with renewed(claim):
            yield claim.chains
    finally:
        claim.free()


class _Claim:
    def __init__(self, purpose: Purpose, chains: list[int], until: datetime) -> None:
        self.chains = chains
        self._purpose, self._until = purpose, until

    def __str__(self) -> str:
        return f"{len(self.chains)} chains"

    def renew(self) -> None:
        until = claim_end()
        self._mine().update(**{self._purpose: until})
        self._until = until

    def free(self) -> None:
        self._mine().update(**{self._purpose: None})

    def _mine(self) -> QuerySet[Chain]:
        # Only as they were taken: one that was given up, or that ran out, may be somebody else's by now.
        return Chain.objects.filter(pk__in=self.chains, **{self._purpose: self._until})


def _take(chain: Chain, purpose: Purpose, until: datetime) -> bool:
    # A guarded update: of two processes that see the same chain free, one gets it.
    found = Chain.objects.filter(are_free(), pk=chain.pk, step=chain.step)
    if lost := _texts_lost(chain):
        with transaction.atomic():
            as_seen = {name: getattr(chain, name) for name in ("waits_until", "waits_because", "prefetches_until")}
            cleared = {"waits_until": None, "prefetches_until": None, "waits_because": ""}
            if found.filter(**as_seen).update(**{**cleared, purpose: until}):
                spending.note_repeated(chain.campaign_id, spending.PROPOSALS, lost * spending.REQUESTS_OF_A_FIRST_TEXT)
                return True
    return bool(found.update(**{purpose: until}, waits_because=""))


def _texts_lost(chain: Chain) -> int:
    """Return how many texts whoever claimed a chain and did not end the claim may have had under way: one for a chain
    that waits, two ahead of time.
    """
    was_at_work = chain.waits_until is not None and not chain.waits_because
    lost = was_at_work + 2 * (chain.prefetches_until is not None)
    # Pictures are made here, and take no requests.
    return lost if lost and caps.writer_of(chain.campaign) is not None else 0


def _is_past(moment: str) -> Q:
    return Q(**{f"{moment}__isnull": True}) | Q(**{f"{moment}__lte": timezone.now()})
