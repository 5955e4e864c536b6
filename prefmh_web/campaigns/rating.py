"""A model's turn where the rule rates objects: the ratings an object still lacks, asked for and made ready to store.

An object is rated N times by each judge, once and for all: a chain carries the ratings of its state along, and of a
catalog's objects no chain asks for them again; of two that meet an object at the same moment both may ask, and what is
stored first stays. One object a turn, the current state's before the proposal's.
"""

from collections.abc import Sequence

import numpy as np

from prefmh_web.campaigns import plans, recipes
from prefmh_web.campaigns.exhibits import exhibit
from prefmh_web.campaigns.models import Comparison, Judge, Rating, State
from prefmh_web.endpoints import judging as asking
from prefmh_web.endpoints.errors import EndpointError


def missing(comparison: Comparison, judge: Judge) -> tuple[State, list[int]] | None:
    """Return the object that a judge has to rate next, and the slots that are empty; None if there is none."""
    for state in (comparison.current, comparison.proposal):
        stored = set(Rating.objects.filter(state=state, judge=judge).values_list("slot", flat=True))
        if left := [slot for slot in range(judge.budget) if slot not in stored]:
            return state, left
    return None


def ask(
    comparison: Comparison, judge: Judge, state: State, slots: Sequence[int]
) -> tuple[list[Rating], EndpointError | None]:
    """Ask for ratings of an object; return those that came, not stored yet, and why the others did not."""
    campaign = comparison.chain.campaign
    rated = asking.Rated(
        kind=campaign.objects_kind,
        criterion=judge.question,
        exhibit=exhibit(state, judge.endpoint),
        scale=plans.rule_of(campaign).scale,
        temperature=recipes.recipe_of(campaign).judges[judge.place].source.temperature,
    )
    # Nobody can ask a server for the same reply again: these seeds only keep replies apart.
    asked = asking.ratings(judge.endpoint, rated, len(slots), np.random.default_rng())
    # Fewer than were asked for, perhaps; the others are asked for another time.
    given = [
        Rating(state=state, judge=judge, slot=slot, value=value, asks=asks)
        for slot, value, asks in zip(slots, asked.given, asked.asks, strict=False)
    ]
    return given, asked.failure
