"""Which of a person's own earlier pairs can be shown once more: a repeat describes them, and is never a vote.

Only decided pairs that are open in no chain: a pair that somebody may still vote on is not asked in any other way
(rule E3 of `docs/exactness.md`).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from prefmh_web.campaigns.models import Annotator, Comparison, Lease
from prefmh_web.participants.models import Check

Pair = frozenset[str]
"""The contents of two objects: two chains may make the same object under two numbers."""


def choose(annotator: Annotator, which: float) -> uuid.UUID | None:
    """Return the lease of the pair to repeat; None if there is none.

    Args:
        which: uniform on [0, 1): the place among those that can be repeated.
    """
    found = possible(annotator)
    return found[int(which * len(found))] if found else None


def possible(annotator: Annotator) -> Sequence[uuid.UUID]:
    """Return the leases of pairs that can be repeated, in the order of the answers: each pair once, and not the one
    that the person has just answered.
    """
    voted = Lease.objects.filter(annotator=annotator, ending=Lease.Ending.VOTED).order_by("ended_at", "key")
    pairs = voted.values_list(
        "key", "comparison__verdict", "comparison__current__content", "comparison__proposal__content"
    )
    repeats = Check.objects.filter(participation__annotator=annotator, kind=Check.Kind.REPEAT)
    repeated, undecided = set(repeats.values_list("lease", flat=True)), open_pairs(annotator.campaign_id)
    return [
        key
        for key, verdict, *pair in list(pairs)[:-1]
        if verdict and key not in repeated and frozenset(pair) not in undecided
    ]


def open_pairs(campaign_id: int) -> set[Pair]:
    """Return the pairs that somebody may still vote on."""
    asked = Comparison.objects.filter(chain__campaign=campaign_id, verdict=None)
    return {frozenset(pair) for pair in asked.values_list("current__content", "proposal__content")}
