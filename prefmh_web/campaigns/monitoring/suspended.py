"""The steps of a campaign that are suspended now, with their objects. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prefmh_web.campaigns.models import Campaign, Comparison, Event


@dataclass(frozen=True)
class SuspendedStep:
    """A step that waits for the researcher.

    Args:
        count: after how many skips, or after reports of how many people.
    """

    comparison: Comparison
    count: int


def suspended_in(campaign: Campaign) -> Sequence[SuspendedStep]:
    """Return the steps that are suspended, the one that has waited longest first."""
    found = Comparison.objects.filter(chain__campaign=campaign, verdict=None, suspended_at__isnull=False)
    pairs = found.filter(chain__ended_at=None).select_related("chain", "current", "proposal").order_by("suspended_at")
    steps = list(pairs.defer("current__code", "proposal__code"))
    counts: dict[tuple[int, int], int] = {}
    if steps:
        # The last one of a step holds.
        for data in Event.objects.filter(campaign=campaign, kind=Event.Kind.STEP_SUSPENDED).values_list(
            "data", flat=True
        ):
            counts[data["chain_index"], data["step"]] = data["count"]
    return [SuspendedStep(each, counts[each.chain.place, each.step]) for each in steps]
