"""Steps that wait for scores: found once both of their objects have the numbers that the rule goes by, or that judges
are shown.

Numbers come to objects and not to steps, and one object may be in the steps of many chains. So whoever has stored
numbers, or has nothing to ask any more, looks through the open steps of the campaign: at most one a chain.
"""

from __future__ import annotations

from collections.abc import Iterator

from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.engine import reading, transitions
from prefmh_web.campaigns.models import Campaign, Comparison
from prefmh_web.campaigns.started import plans, started_campaign
from prefmh_web.campaigns.started.objects import scores_of


def go_on(campaign: Campaign) -> None:
    """Decide every open step of a campaign whose objects have all their numbers, or have it judged where numbers are
    only shown; nothing where no step waits for any.
    """
    keys = list(ready(campaign))
    if keys and started_campaign(campaign).config.estimate:
        for comparison in Comparison.objects.filter(pk__in=keys).select_related("chain__campaign"):
            dispatch.judge(comparison)
        return
    if keys:
        plans.prepare(campaign)
    for key in keys:
        with reading.locked(key) as comparison:
            transitions.decide_by_scores(comparison)


def ready(campaign: Campaign) -> Iterator[int]:
    """Yield the keys of a campaign's open steps whose objects have all their numbers."""
    scorers = started_campaign(campaign).config.awaited_scorers
    if not scorers:
        return
    open_ones = Comparison.objects.filter(chain__campaign=campaign, verdict__isnull=True, chain__ended_at=None)
    pairs = list(open_ones.order_by("pk").values_list("pk", "current_id", "proposal_id"))
    given = scores_of(campaign, {key for _, *pair in pairs for key in pair})
    for key, *pair in pairs:
        if all(len(given[state]) == len(scorers) for state in pair):
            yield key


def are_ready(campaign: Campaign) -> bool:
    """Return whether a campaign has steps to decide. Of those to be judged, the sweep finds the turns."""
    return bool(started_campaign(campaign).config.rule.scorers) and next(ready(campaign), None) is not None
