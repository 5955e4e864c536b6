"""Do preferences run in circles? Bradley-Terry says that they do not: s_ab + s_bc + s_ca = 0 for log-odds s.

At the maximum-likelihood fit every item wins as often as the model expects, so what the votes have left over,
r_ab = wins of a over b - n_ab p_ab, flows into each item as much as out of it: it runs in cycles only. The
test measures it as Pearson's X^2 = sum_ab r_ab^2 / (n_ab p_ab (1 - p_ab)), which is Rao's score statistic against
log-odds that may add up to anything around each cycle. It has as many degrees of freedom as there are independent
cycles, pairs - items + 1. Where sides are known, p_ab is the mean over the sides shown, with the lean in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sampler.diagnostics.bradley_terry import fittable
from sampler.diagnostics.choices import Choices
from sampler.diagnostics.comparisons import Comparisons
from sampler.diagnostics.joint_fit import JointFit

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_CELLS = 4_000_000


@dataclass(frozen=True)
class CycleTest:
    """A small p-value: no scores explain these votes."""

    statistic: float
    cycles: int
    """Degrees of freedom."""
    p_value: float


def cycle_test(votes: Comparisons | Choices, rng: np.random.Generator, simulations: int = 9_999) -> CycleTest:
    """Test Bradley-Terry against cycles; from `Choices` the fit has the voters' lean in it as well.

    The p-value compares with votes simulated from the fit, as many for each pair, and on each side, as there are, each
    simulation refitted by one Newton step; so 0.05 means 0.05 where counts are too small for the chi-square law. Larger
    p-values come out too small where pairs have one or two votes each (on six items, 0.2 in 47 % and 29 % of data
    without cycles): such votes say little about cycles.

    Raises:
        NoFit: the votes have no finite fit.
        ValueError: the compared pairs form no cycle.
    """
    model = fittable(votes)
    wins, asked, p = model.votes_and_chances(model.solve())
    pair_of = _pair_sums(model.first, model.second)
    cycles = pair_of.shape[0] - len(model.parts) + 1
    if not cycles:
        raise ValueError("the compared pairs form no cycle, so there is nothing to test")
    variance = asked * p * (1 - p)
    of_pairs = abs(pair_of) @ variance
    statistic = float(((pair_of @ (wins - asked * p)) ** 2 / of_pairs).sum())
    project = _left_over(model, variance)
    reached, block = 0, max(1, _CELLS // len(asked))
    for done in range(0, simulations, block):
        surplus = rng.binomial(asked.astype(np.int64), p, size=(min(block, simulations - done), len(asked))) - asked * p
        left_over = pair_of @ project(surplus.T)
        # Votes on a lattice repeat values; a tie counts as reached whatever the rounding.
        reached += int(((left_over**2 / of_pairs[:, None]).sum(axis=0) >= statistic * (1 - 1e-9)).sum())
    return CycleTest(statistic, cycles, (reached + 1) / (simulations + 1))


def _pair_sums(first: IntArray, second: IntArray) -> Any:
    """Return the map from what was shown, (first, second), to unordered pairs: signs, sparse, shape (pairs, k).

    An item that met itself is in no pair.
    """
    from scipy.sparse import coo_array

    apart = np.flatnonzero(first != second)
    ends = np.sort(np.stack([first, second], axis=1)[apart], axis=1)
    pairs, at = np.unique(ends, axis=0, return_inverse=True)
    signs = np.where(first[apart] < second[apart], 1.0, -1.0)
    return coo_array((signs, (at.reshape(-1), apart)), shape=(len(pairs), len(first))).tocsr()


def _left_over(model: JointFit, variance: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return the map from surpluses, shape (k, simulations), to what one Newton step of the fit leaves of them."""
    design = model.design
    step = np.linalg.pinv((design.T @ (design * variance[:, None])).toarray(), hermitian=True)

    def project(surplus: FloatArray) -> FloatArray:
        fitted = step @ (design.T @ surplus)
        return np.asarray(surplus - variance[:, None] * (design @ fitted))

    return project
