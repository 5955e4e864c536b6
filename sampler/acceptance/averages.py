"""The acceptance averaged over K_i ~ Binomial(N_i, p_i), for any number of judges and any N.

A few small judges: one term for each of the prod_i (N_i + 1) tallies. Otherwise judge after judge, smallest budget
first: all tallies whose factors have the same product, a rational number, are one outcome, whose chance is the sum of
theirs. 150 judges with N = 1 have two outcomes, not 2^150. The last judge needs no sum, since

    K / (N - K + 1) P(K) = p / (1 - p) P(K - 1)    for K ~ Binomial(N, p),

so that the mean of min(1, c K / (N - K + 1)) is two tails of the law: c p / (1 - p) P(K < k) + P(K > k) with k the
largest K for which c K / (N - K + 1) is at most 1.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from sampler.acceptance.binomial import PLAIN_VOTES, binomial_law, law_of_tallies
from sampler.acceptance.factors import EXP_IS_SAFE, accepted

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_MOST_TERMS: Final = 10_000
# Outcomes times pairs held at once, 8 bytes each.
_MOST_OUTCOMES: Final = 10_000_000


def mean_acceptance(ratio: FloatArray, chances: FloatArray, limits: IntArray) -> FloatArray:
    """Return the mean of min(1, r0 prod_i K_i / (N_i - K_i + 1)), shape (...).

    Args:
        ratio: log r0, shape (...).
        chances: p_i, shape (..., m).
        limits: N_i, shape (m,).

    Raises:
        ValueError: the judges have too many different outcomes together.
    """
    budgets = tuple(int(limit) for limit in limits)
    if sum(budgets) <= PLAIN_VOTES and math.prod(budget + 1 for budget in budgets) <= _MOST_TERMS:
        return _term_by_term(ratio, chances, limits)
    order = sorted(range(len(budgets)), key=budgets.__getitem__)
    outcomes = {Fraction(1): np.ones(chances.shape[:-1])}
    for judge in order[:-1]:
        outcomes = _joined(outcomes, budgets[judge], chances[..., judge])
    mean: FloatArray = np.zeros(np.broadcast_shapes(ratio.shape, chances.shape[:-1]))
    for value, chance in outcomes.items():
        scale = ratio + (math.log(value.numerator) - math.log(value.denominator))
        mean = mean + chance * _of_one_judge(scale, chances[..., order[-1]], budgets[order[-1]])
    return mean


def _term_by_term(ratio: FloatArray, chances: FloatArray, limits: IntArray) -> FloatArray:
    law = law_of_tallies(chances, limits.tolist())
    mean: FloatArray = np.zeros(np.broadcast_shapes(ratio.shape, chances.shape[:-1]))
    for tally in itertools.product(*(range(int(limit) + 1) for limit in limits)):
        votes = np.array(tally, dtype=np.int64)
        mean = mean + law(tally) * accepted(ratio, votes, limits)
    return mean


def _joined(outcomes: dict[Fraction, FloatArray], budget: int, chance: FloatArray) -> dict[Fraction, FloatArray]:
    """Return the outcomes with one more judge. K = 0 is left out: its acceptance is 0."""
    found: dict[Fraction, FloatArray] = {}
    law = binomial_law(np.arange(1, budget + 1), budget, chance[..., None])
    for (value, so_far), votes in itertools.product(outcomes.items(), range(1, budget + 1)):
        product = value * Fraction(votes, budget - votes + 1)
        found[product] = found.get(product, 0.0) + so_far * law[..., votes - 1]
        if len(found) * max(1, chance.size) > _MOST_OUTCOMES:
            raise ValueError("budgets leave too many different outcomes to average over")
    return found


def _of_one_judge(log_scale: FloatArray, chance: FloatArray, budget: int) -> FloatArray:
    """Return the mean of min(1, c K / (N - K + 1)) over K ~ Binomial(N, p), log c = `log_scale`."""
    # Not with the module: SciPy takes a quarter of a second, and most commands never come here.
    from scipy import special

    scale, chances = np.broadcast_arrays(log_scale, chance)
    c = np.exp(np.clip(scale, -EXP_IS_SAFE, EXP_IS_SAFE))
    most = np.floor(np.clip((budget + 1) / (1 + c), 0, budget))
    # P(K < k) and P(K > k) as incomplete beta functions; the clips are where there is no such K.
    below = np.where(most > 0, special.betainc(budget - most + 1, np.maximum(most, 1), 1 - chances), 0.0)
    above = np.where(most < budget, special.betainc(most + 1, np.maximum(budget - most, 1), chances), 0.0)
    with np.errstate(divide="ignore", under="ignore"):
        log_odds = np.log(chances) - np.log1p(-np.where(chances < 1, chances, 0.0))
        tilted = np.exp(np.where(most > 0, np.minimum(scale + log_odds, EXP_IS_SAFE), -np.inf))
        always = np.exp(np.minimum(0.0, scale + math.log(budget)))
    return np.where(chances < 1, tilted * below + above, always)
