"""Votes of m judges, K_i ~ Binomial(N_i, p_i): drawn, or averaged over.

The plug-in rule, INVALID: min(1, r0 prod_i K_i / (N_i - K_i)), the odds estimated by the share of votes.

Exact for nothing: its chain has another law than p0(x) exp(sum_i s_i(x)), by a total-variation distance of
0.52, 0.37 and 0.22 on the paper's synthetic target with 1, 2 and 4 votes. It is kept as the negative control that
every test of exactness must catch.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sampler.acceptance import law_of_tallies
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


@dataclass(frozen=True)
class InvalidPlugIn:
    """A wrong rule. A judge without a vote for x' rejects; else a judge with no vote against accepts.

    Args:
        budgets: N_i, length m.

    Raises:
        ValueError: a budget is not a whole number of at least 1.
    """

    budgets: tuple[int, ...]
    name: ClassVar[str] = "invalid_plug_in"

    def __post_init__(self) -> None:
        object.__setattr__(self, "budgets", checked_budgets(self.budgets))

    def acceptance(self, log_r0: npt.ArrayLike, votes_for: npt.ArrayLike) -> FloatArray:
        """Return min(1, r0 prod_i K_i / (N_i - K_i)); K_i of shape (..., m)."""
        votes: IntArray = np.atleast_1d(np.asarray(votes_for))
        ratio = np.asarray(log_r0, dtype=np.float64)
        impossible = np.any(votes == 0, axis=-1) | np.isneginf(ratio)
        with np.errstate(divide="ignore"):
            gaps = np.log(np.maximum(votes, 1)) - np.log(np.array(self.budgets) - votes)
        total = np.sum(gaps, axis=-1) + np.where(impossible, 0.0, ratio)
        return np.where(impossible, 0.0, np.exp(np.minimum(0.0, total)))

    def mean_acceptance(self, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Return the average over K_i ~ Binomial(N_i, p_i); p_i of shape (..., m)."""
        return average_over_votes(lambda votes: self.acceptance(log_r0, votes), preference, self.budgets)

    def draw_acceptance(self, rng: np.random.Generator, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Draw the votes of each pair; return the acceptance probability they give."""
        return self.acceptance(log_r0, draw_votes(rng, preference, self.budgets))
