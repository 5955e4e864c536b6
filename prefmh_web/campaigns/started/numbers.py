"""The numbers that scorers have given objects, where these decide."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from prefmh_web.campaigns.models import Campaign, Score
from prefmh_web.campaigns.started.campaign import started_campaign


def scores_of(campaign: Campaign, states: Collection[int]) -> dict[int, Mapping[str, float]]:
    """Return the numbers of the rule's scorers for some objects, by their keys; of each those that it has."""
    scorers = started_campaign(campaign).recipe.rule.scorers
    found = Score.objects.filter(
        state__in=states, scorer__campaign=campaign, scorer__name__in=scorers, value__isnull=False
    )
    given: dict[int, dict[str, float]] = {key: {} for key in states}
    for state, scorer, value in found.values_list("state_id", "scorer__name", "value"):
        if value is not None:
            given[state][scorer] = value
    return dict(given)
