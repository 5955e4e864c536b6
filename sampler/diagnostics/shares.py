"""How much of the target distribution each object has: its share of the steps, with an interval.

Chains are independent of each other, and the steps of one are not. So with four chains or more the interval comes from
how the chains differ: Student's t for a ratio of sums (Cochran, "Sampling Techniques", 1977, section 6.3). With fewer
it comes from the Monte Carlo standard error, with the effective number of draws of the object's indicator (Vehtari et
al., Bayesian Analysis 16, 2021). Both are taken on the logit scale, on which a share near 0 or 1 has room.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sampler.objects.convergence import convergence

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

LEVEL = 0.9
FEWEST_CHAINS = 4
"""Of a target, for an interval from how its chains differ."""
# Of so many objects, those that are visited most, the indicators say how many draws are independent.
MOST_VISITED = 5
# Of so many objects, those that are visited most, the effective draws are computed one by one: that takes a while.
_ONE_BY_ONE = 200


@dataclass(frozen=True)
class Walked:
    """At which object one chain was after each step of the sampling phase.

    Args:
        target: what tells the distribution that it samples from those of other chains, such as a prompt.
        first: the number of the first of these steps.
        objects: numbers of objects, shape (T,), at least one.
    """

    target: str
    first: int
    objects: IntArray


@dataclass(frozen=True)
class Share:
    """An object's share of the steps of one target's chains, from 0 to 1.

    Args:
        steps: after how many of them a chain was at the object.
        low, high: of the interval at `LEVEL`; for an object that no chain was at, `high` is an upper bound at the same
            error on that side.
        first_step, last_step: the first and the last step after which a chain was there; None of none.
    """

    target: str
    object: int
    steps: int
    share: float
    low: float
    high: float
    first_step: int | None
    last_step: int | None


def shares(chains: Sequence[Walked], listed: Iterable[int] = ()) -> list[Share]:
    """Return the share of each object, by target and from the largest to the smallest.

    Args:
        listed: further objects that could have been visited, such as those of an uploaded list.
    """
    listed = list(listed)
    found: list[Share] = []
    for target in dict.fromkeys(each.target for each in chains):
        found += _of_target([each for each in chains if each.target == target], listed)
    return found


def independent_draws(chains: Sequence[Walked]) -> float:
    """Return how many independent draws the chains of one target are worth: the smallest effective sample size of the
    indicators of the objects that are visited most. Of chains that never move, one each.
    """
    visited, steps = np.unique(np.concatenate([each.objects for each in chains]), return_counts=True)
    most = visited[np.argsort(-steps, kind="stable")][:MOST_VISITED]
    return min((_effective_draws(chains, number) for number in most), default=float(len(chains)))


def _effective_draws(chains: Sequence[Walked], number: int) -> float:
    try:
        return convergence([each.objects == number for each in chains]).bulk_ess
    except ValueError:
        # Too few draws, or all of them at the object.
        return float(len(chains))


def _of_target(chains: Sequence[Walked], listed: list[int]) -> list[Share]:
    lengths = np.array([len(each.objects) for each in chains], dtype=np.float64)
    visits = _visits(chains)
    draws = independent_draws(chains)
    bound = 1 - ((1 - LEVEL) / 2) ** (1 / draws)
    found = []
    in_order = sorted(visits.items(), key=lambda item: -item[1][0].sum())
    for rank, (number, (steps, first, last)) in enumerate(in_order):
        share = float(steps.sum() / lengths.sum())
        if share == 1:
            low, high = 1 - bound, 1.0
        elif len(chains) >= FEWEST_CHAINS and (error := _between(steps, lengths, share)):
            low, high = _on_the_logit_scale(share, error, freedom=len(chains) - 1)
        else:
            effective = _effective_draws(chains, number) if rank < _ONE_BY_ONE else draws
            error = math.sqrt(share * (1 - share) / effective)
            low, high = _on_the_logit_scale(share, error, freedom=math.inf)
        found.append(Share(chains[0].target, number, int(steps.sum()), share, low, high, first, last))
    found += [
        Share(chains[0].target, number, 0, 0.0, 0.0, bound, None, None) for number in listed if number not in visits
    ]
    return sorted(found, key=lambda each: (-each.steps, each.object))


def _visits(chains: Sequence[Walked]) -> dict[int, tuple[FloatArray, int, int]]:
    """Return of each object how many steps each chain was there, shape (C,), and the first and last of these steps."""
    found: dict[int, tuple[FloatArray, int, int]] = {}
    for index, chain in enumerate(chains):
        numbers, first, steps = np.unique(chain.objects, return_index=True, return_counts=True)
        last = len(chain.objects) - 1 - np.unique(chain.objects[::-1], return_index=True)[1]
        for number, begins, ends, count in zip(*(each.tolist() for each in (numbers, first, last, steps)), strict=True):
            counts, earliest, latest = found.get(number, (np.zeros(len(chains)), begins + chain.first, 0))
            counts[index] = count
            found[number] = counts, min(earliest, begins + chain.first), max(latest, ends + chain.first)
    return found


def _between(steps: FloatArray, lengths: FloatArray, share: float) -> float:
    """Return the standard error of a ratio of sums over chains, each a cluster."""
    chains = len(lengths)
    squares = float(((steps - share * lengths) ** 2).sum())
    return math.sqrt(chains / (chains - 1) * squares) / float(lengths.sum())


def _on_the_logit_scale(share: float, error: float, freedom: float) -> tuple[float, float]:
    from scipy.special import expit, logit, ndtri, stdtrit

    tail = (1 + LEVEL) / 2
    quantile = ndtri(tail) if math.isinf(freedom) else stdtrit(freedom, tail)
    reach = quantile * error / (share * (1 - share))
    return float(expit(logit(share) - reach)), float(expit(logit(share) + reach))
