"""The steps that were parked, as a file of the record; none without any."""

from __future__ import annotations

from collections.abc import Iterator

from prefmh_web.campaigns.models import Campaign, Parking
from prefmh_web.campaigns.record.rows import Row
from prefmh_web.campaigns.record.snapshot import Snapshot
from sampler import schema


def are_in(campaign: Campaign) -> bool:
    """True where a step was ever parked."""
    return Parking.objects.filter(comparison__chain__campaign=campaign).exists()


def rows(snapshot: Snapshot) -> Iterator[Row]:
    """Yield when and why each was parked, and what became of it."""
    yield schema.PARKED.header
    found = Parking.objects.filter(comparison__chain__campaign=snapshot.campaign).select_related("comparison__chain")
    for parking in found.order_by("comparison__chain__place", "comparison__step", "pk"):
        chain, step = parking.comparison.chain.place, parking.comparison.step
        if snapshot.has_step(chain, step):
            outcome = _outcome(snapshot, parking, (chain, step))
            is_settled = outcome in (schema.TRIED_AGAIN, schema.ENDED)
            yield schema.PARKED.row(
                chain=chain,
                step=step,
                cause=parking.cause,
                count=parking.count,
                parked_at=parking.parked_at,
                outcome=outcome,
                settled_at=parking.settled_at if is_settled else None,
                words=parking.words if is_settled else "",
            )


def _outcome(snapshot: Snapshot, parking: Parking, key: tuple[int, int]) -> str:
    """Return what had become of it by then: somebody who had the pair on their screen may have decided it."""
    if parking.outcome == Parking.Outcome.TRIED_AGAIN:
        return schema.TRIED_AGAIN
    if key in snapshot.ended:
        return schema.ENDED
    return schema.DECIDED if snapshot.is_decided(*key) else ""
