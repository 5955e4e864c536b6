"""The numbers that scorers have given objects, where steps wait for these."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from prefmh_web.campaigns.models import Campaign, Comparison, Score
from prefmh_web.campaigns.started.campaign import started_campaign


def scores_of(campaign: Campaign, states: Collection[int]) -> dict[int, Mapping[str, float]]:
    """Return the numbers of the config's scorers for some objects, by their keys; of each those that it has."""
    scorers = started_campaign(campaign).config.awaited_scorers
    found = Score.objects.filter(
        state__in=states, scorer__campaign=campaign, scorer__name__in=scorers, value__isnull=False
    )
    given: dict[int, dict[str, float]] = {key: {} for key in states}
    for state, scorer, value in found.values_list("state_id", "scorer__name", "value"):
        if value is not None:
            given[state][scorer] = value
    return dict(given)


def may_be_judged(comparison: Comparison) -> bool:
    """Return whether judges may be asked: the estimates that they are shown are there, if they are shown any."""
    campaign = comparison.chain.campaign
    if not started_campaign(campaign).config.estimate:
        return True
    pair = (comparison.current_id, comparison.proposal_id)
    return all(scores_of(campaign, pair).values())
