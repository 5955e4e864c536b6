"""What a campaign will take, in closed form, before it starts: votes, hours, people and money.

A step costs sum_i N_i votes at most. Voting on a pair stops once its verdict is settled, so most steps cost fewer. How
many depends on what voters think, which nobody knows yet: the estimate takes them to be indifferent (p_i = 1/2) and
the base ratio to be 1, and averages over U and the votes exactly (`exact.mean_votes`). Voters who agree, and base
ratios far from 1, settle a pair sooner.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from sampler.exact import mean_votes
from sampler.rules.n_vote import checked_budgets

SECONDS_A_VOTE: Final = 10.0
"""Of somebody in the middle, who compares two short objects: a round number, to be replaced by what a pilot takes."""
# Tallies times votes of a step: beyond these the mean would take a second.
_MOST_WORK: Final = 150_000


@dataclass(frozen=True)
class Estimate:
    """What the declared steps of all chains take.

    Args:
        most_votes: if every pair needs all of its votes.
        votes: if voters are indifferent; None where that would take too long to work out.
        burn_in_votes: those among `votes` that go into the burn-in.
        hours: of people, for `votes`, or for `most_votes` where these are not known.
        people: who are needed for that; None where it is not said how many votes each gives.
        money: what their places are paid; None where their number or the pay is not known.
    """

    most_votes: int
    votes: float | None
    burn_in_votes: float | None
    hours: float
    people: int | None
    money: float | None


def step_votes(budgets: Sequence[int]) -> float | None:
    """Return the mean number of votes of a step if voters are indifferent; None where budgets are too large.

    Args:
        budgets: N_i of each judge.

    Raises:
        ValueError: a budget is not a whole number of at least 1.
    """
    limits = checked_budgets(tuple(budgets))
    work = sum(limits) * math.prod(budget + 1 for budget in limits)
    return None if work > _MOST_WORK else _step_votes(limits)


def estimate(
    chains: int,
    steps: int,
    budgets: Sequence[int],
    *,
    burn_in: int = 0,
    votes_each: int | None = None,
    place_pay: float | None = None,
    seconds_a_vote: float = SECONDS_A_VOTE,
) -> Estimate:
    """Return what a campaign takes whose questions people answer.

    Args:
        chains, steps, burn_in: as in the setup; `chains` at most.
        budgets: N_i of each judge. Each of its votes on a pair is another person's, so at least max N_i people are
            needed.
        votes_each: after so many votes somebody's part is complete; None for no limit.
        place_pay: for each part that is complete; None where it is not known.
        seconds_a_vote: of somebody in the middle.

    Raises:
        ValueError: a number is not what it can be.
    """
    for name, number in (("chains", chains), ("steps", steps)):
        if number < 1:
            raise ValueError(f"{name} must be 1 or more, not {number}")
    if not 0 < seconds_a_vote < math.inf:
        raise ValueError(f"seconds_a_vote must be more than 0, not {seconds_a_vote}")
    limits, a_step = checked_budgets(tuple(budgets)), step_votes(budgets)
    most = chains * steps * sum(limits)
    votes = None if a_step is None else chains * steps * a_step
    wanted = most if votes is None else votes
    people = None if votes_each is None else max(max(limits), math.ceil(wanted / votes_each))
    return Estimate(
        most_votes=most,
        votes=votes,
        burn_in_votes=None if a_step is None else chains * min(burn_in, steps) * a_step,
        hours=wanted * seconds_a_vote / 3600,
        people=people,
        money=None if people is None or place_pay is None else people * place_pay,
    )


@lru_cache(maxsize=256)
def _step_votes(budgets: tuple[int, ...]) -> float:
    return float(mean_votes(0.0, np.full(len(budgets), 0.5), budgets))
