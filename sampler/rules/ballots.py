"""Votes of m judges, K_i ~ Binomial(N_i, p_i): drawn, or averaged over."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sampler.acceptance.binomial import law_of_tallies
from sampler.rules.shape import FloatArray

IntArray = npt.NDArray[np.int64]


def draw_votes(rng: np.random.Generator, preference: npt.ArrayLike, budgets: tuple[int, ...]) -> IntArray:
    """Draw K_i, one uniform a vote.

    Args:
        preference: p_i, shape (..., m).
        budgets: N_i, length m.

    Returns:
        Votes for the proposal, shape (..., m).
    """
    chance = judges_last(preference, budgets)
    votes: IntArray = np.zeros(chance.shape, dtype=np.int64)
    for judge, budget in enumerate(budgets):
        for _ in range(budget):
            votes[..., judge] += rng.random(chance.shape[:-1]) < chance[..., judge]
    return votes


def average_over_votes(
    acceptance: Callable[[IntArray], FloatArray | np.float64], preference: npt.ArrayLike, budgets: tuple[int, ...]
) -> FloatArray:
    """Return the sum over all tallies K of prod_i C(N_i, K_i) p_i^K_i (1 - p_i)^(N_i - K_i) times acceptance(K).

    Args:
        acceptance: takes one tally, shape (m,); returns shape (...).
        preference: p_i, shape (..., m).
        budgets: N_i, length m.
    """
    chance = judges_last(preference, budgets)
    law = law_of_tallies(chance, budgets)
    mean: FloatArray = np.zeros(chance.shape[:-1])
    for tally in itertools.product(*(range(budget + 1) for budget in budgets)):
        votes = np.array(tally, dtype=np.int64)
        mean = mean + law(tally) * acceptance(votes)
    return mean


def judges_last(preference: npt.ArrayLike, budgets: tuple[int, ...]) -> FloatArray:
    """Return `preference` as an array whose last axis has one entry for each budget.

    Raises:
        ValueError: it has another length, or an entry outside [0, 1].
    """
    chance = np.atleast_1d(np.asarray(preference, dtype=np.float64))
    if chance.shape[-1] != len(budgets):
        raise ValueError(f"preference has {chance.shape[-1]} judges, budgets has {len(budgets)}")
    if not np.all((chance >= 0) & (chance <= 1)):
        raise ValueError("preference must lie in [0, 1]")
    return chance


def checked_budgets(budgets: tuple[int, ...]) -> tuple[int, ...]:
    """Return N_i as plain integers.

    Raises:
        ValueError: there is none, or one is not a whole number of at least 1.
    """
    if not budgets or any(budget != int(budget) or budget < 1 for budget in budgets):
        raise ValueError(f"budgets must be whole numbers of at least 1, one for each judge, not {budgets}")
    return tuple(int(budget) for budget in budgets)
