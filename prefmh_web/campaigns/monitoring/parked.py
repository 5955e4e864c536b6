"""The steps of a campaign that are parked now, with their objects. Reads only."""

from __future__ import annotations

from collections.abc import Sequence

from prefmh_web.campaigns.models import Campaign, Comparison, Parking


def parked_in(campaign: Campaign) -> Sequence[Parking]:
    """Return why each step is parked that waits for the researcher, the first one first."""
    waiting = Parking.objects.filter(outcome__isnull=True, comparison__verdict__isnull=True)
    found = waiting.filter(comparison__chain__campaign=campaign, comparison__parked=Comparison.Parked.PARKED)
    pairs = found.select_related("comparison__chain", "comparison__current", "comparison__proposal")
    return list(pairs.defer("comparison__current__code", "comparison__proposal__code"))
