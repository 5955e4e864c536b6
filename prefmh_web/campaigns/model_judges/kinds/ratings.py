"""A model's turn where the rule rates objects: the ratings an object still lacks, asked for and made ready to store.

An object is rated N times by each judge, once and for all: a chain carries the ratings of its state along, and of a
catalog's objects no chain asks for them again, and while one chain's turn asks, another that meets the object waits for
what it brings. One object a turn, the current state's before the proposal's.
"""

from collections.abc import Sequence

import numpy as np

from prefmh_web.campaigns import recipes, started
from prefmh_web.campaigns.exhibits import exhibit
from prefmh_web.campaigns.model_judges import frozen_judges
from prefmh_web.campaigns.models import Comparison, Judge, Rating, State
from prefmh_web.endpoints import judge_calls as asking
from prefmh_web.endpoints.errors import EndpointError
from prefmh_web.endpoints.identity import Admitted, Identity


def missing(comparison: Comparison, judge: Judge) -> tuple[State, list[int]] | None:
    """Return the object that a judge has to rate next, and the slots that are empty; None if there is none."""
    for state in (comparison.current, comparison.proposal):
        stored = set(Rating.objects.filter(state=state, judge=judge).values_list("slot", flat=True))
        if left := [slot for slot in range(judge.budget) if slot not in stored]:
            return state, left
    return None


def ask(
    comparison: Comparison, judge: Judge, state: State, slots: Sequence[int], admitted: Admitted
) -> tuple[list[tuple[Rating, Identity]], EndpointError | None]:
    """Ask a frozen judge for ratings of an object; return those that came, not stored yet, and why others did not."""
    campaign = comparison.chain.campaign
    endpoint = frozen_judges.asked_endpoint(judge)
    rated = asking.Rated(
        kind=campaign.objects_kind,
        criterion=judge.question,
        exhibit=exhibit(state, endpoint),
        scale=started.rule_of(campaign).scale,
        temperature=recipes.recipe_of(campaign).judges[judge.place].source.temperature,
        prompt=frozen_judges.prompt_of(judge),
    )
    # Nobody can ask a server for the same reply again: these seeds only keep replies apart.
    asked = asking.ratings(endpoint, rated, len(slots), np.random.default_rng(), admitted)
    # Fewer than were asked for, perhaps; the others are asked for another time.
    given = [
        (Rating(state=state, judge=judge, slot=slot, value=value, asks=asks), identity)
        for slot, value, asks, identity in zip(slots, asked.given, asked.asks, asked.identities, strict=False)
    ]
    return given, asked.failure
