"""Measures of the objects that chains have been at, stored once for each object, for the pages that follow them.

    measure    measure some of them, store what was found, and hint that there are more
    unmeasured the objects that chains have been at and that nobody has measured

A measure is a function of its object alone, so it does not matter who stores it first, or that two measure the same.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db.models import Exists, OuterRef, QuerySet

from prefmh_web.campaigns import dispatch, objects
from prefmh_web.campaigns.models import Campaign, Chain, Comparison, Measured, State
from prefmh_web.transport import sockets

# As many as are lost with a process, and as many as one task takes: the others have their turn in between.
_AT_ONCE, _A_TASK = 100, 2_000
_here: set[int] = set()
_here_lock = threading.Lock()


def unmeasured(campaign: Campaign) -> QuerySet[State]:
    """Return the objects that chains have been at and that nobody has measured."""
    started = Chain.objects.filter(campaign=campaign, start=OuterRef("pk"))
    accepted = Comparison.objects.filter(
        chain__campaign=campaign, proposal=OuterRef("pk"), verdict=Comparison.Verdict.ACCEPT
    )
    found = State.objects.filter(~Exists(Measured.objects.filter(state=OuterRef("pk"))), campaign=campaign)
    return found.filter(Exists(started) | Exists(accepted))


def measure(campaign_id: int) -> None:
    """Measure some objects of a campaign unless this process does so already; hint that there are more."""
    campaign = Campaign.objects.filter(pk=campaign_id).first()
    if campaign is None or campaign.is_draft:
        return
    with _alone(campaign_id) as is_alone:
        is_more = is_alone and _measure_some(campaign)
    if is_more:
        dispatch.measure(campaign)


def _measure_some(campaign: Campaign) -> bool:
    """Measure as many objects as a task does; True where there were as many, so that there may be more."""
    waiting = list(unmeasured(campaign).order_by("pk").values_list("pk", flat=True)[:_A_TASK])
    # Another process may be at the same work: in an order of its own, it seldom is at the same objects.
    random.shuffle(waiting)
    for first in range(0, len(waiting), _AT_ONCE):
        # Asked again: what another one has stored since is not measured twice.
        states = unmeasured(campaign).filter(pk__in=waiting[first : first + _AT_ONCE])
        rows = [Measured(state=state, numbers=objects.numbers_of(campaign, state)) for state in _with_campaign(states)]
        Measured.objects.bulk_create(rows, ignore_conflicts=True)
        sockets.nudge(sockets.watchers(campaign.pk))
    return len(waiting) == _A_TASK


def _with_campaign(states: QuerySet[State]) -> QuerySet[State]:
    return states.select_related("campaign").defer("campaign__tuning")


@contextmanager
def _alone(campaign_id: int) -> Iterator[bool]:
    """Tell whether nobody else in this process measures for a campaign, and keep others from it meanwhile."""
    with _here_lock:
        is_free = campaign_id not in _here
        _here.add(campaign_id)
    try:
        yield is_free
    finally:
        if is_free:
            with _here_lock:
                _here.discard(campaign_id)
