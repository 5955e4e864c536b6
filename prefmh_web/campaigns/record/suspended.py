"""The steps that were suspended, as a file of the record; none without any."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from prefmh_web.campaigns.models import Campaign, Event
from prefmh_web.campaigns.record.rows import Row
from prefmh_web.campaigns.record.snapshot import Snapshot
from sampler import schema


def are_in(campaign: Campaign) -> bool:
    """True where a step was ever suspended."""
    return Event.objects.filter(campaign=campaign, kind=Event.Kind.STEP_SUSPENDED).exists()


def rows(snapshot: Snapshot) -> Iterator[Row]:
    """Yield when and why each was suspended, and what became of it."""
    yield schema.SUSPENDED.header
    for found in _suspensions(snapshot.campaign):
        key = found.data["chain"], found.data["step"]
        if snapshot.has_step(*key):
            outcome = _outcome(snapshot, found, key)
            is_settled = outcome in (schema.TRIED_AGAIN, schema.ENDED)
            yield schema.SUSPENDED.row(
                chain=key[0],
                step=key[1],
                cause=found.data["cause"],
                count=found.data["count"],
                suspended_at=found.at,
                outcome=outcome,
                settled_at=found.settled_at if is_settled else None,
                words=found.words if is_settled else "",
            )


@dataclass
class _Suspension:
    at: datetime
    data: dict[str, Any] = field(default_factory=dict)
    is_tried_again: bool = False
    settled_at: datetime | None = None
    words: str = ""


def _suspensions(campaign: Campaign) -> list[_Suspension]:
    """Return each suspension with what a researcher did about it, in the order of chains and steps."""
    kinds = (Event.Kind.STEP_SUSPENDED, Event.Kind.STEP_TRIED_AGAIN, Event.Kind.CHAIN_ENDED)
    last: dict[tuple[int, int], _Suspension] = {}
    found = []
    for kind, at, data in Event.objects.filter(campaign=campaign, kind__in=kinds).values_list("kind", "at", "data"):
        key = data["chain"], data["step"]
        if kind == Event.Kind.STEP_SUSPENDED:
            last[key] = _Suspension(at, data)
            found.append(last[key])
        else:
            last[key].settled_at, last[key].words = at, data.get("words", "")
            last[key].is_tried_again = kind == Event.Kind.STEP_TRIED_AGAIN
    return sorted(found, key=lambda each: (each.data["chain"], each.data["step"]))


def _outcome(snapshot: Snapshot, found: _Suspension, key: tuple[int, int]) -> str:
    """Return what had become of it by then: somebody who had the pair on their screen may have decided it."""
    if found.is_tried_again:
        return schema.TRIED_AGAIN
    if key in snapshot.ended:
        return schema.ENDED
    return schema.DECIDED if snapshot.is_decided(*key) else ""
