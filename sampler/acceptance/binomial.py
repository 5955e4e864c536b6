"""The law of K votes out of N, each for the proposal with probability p, right for any N.

C(N, K) p^K (1 - p)^(N - K) as it is written overflows from N = 1,030 on. Loader's form does not, and loses no digits in
the difference of large logarithms: C. Loader, "Fast and accurate computation of binomial probabilities" (2000),

    log P(K) = d(N) - d(K) - d(N - K) - D(K, N p) - D(N - K, N (1 - p)) + log(N / (2 pi K (N - K))) / 2

with d(n) = log n! minus Stirling's formula and D(x, m) = x log(x / m) + m - x.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# With so many votes in all, no term of the law as it is written overflows or loses digits that matter.
PLAIN_VOTES: Final = 500
_EXACT_FACTORIALS: Final = 16
_HALF_LOG_2PI: Final = 0.5 * math.log(2 * math.pi)
_ERRORS: Final = np.array(
    [0.0]
    + [math.log(math.factorial(n)) - (n + 0.5) * math.log(n) + n - _HALF_LOG_2PI for n in range(1, _EXACT_FACTORIALS)]
)
# Of Stirling's series, in powers of 1/n^2.
_SERIES: Final = (1 / 1188, 1 / 1680, 1 / 1260, 1 / 360, 1 / 12)
_TERMS: Final = 12


def law_of_tallies(chance: FloatArray, budgets: Sequence[int]) -> Callable[[Sequence[int]], FloatArray]:
    """Return the function of a tally K, length m, that gives prod_i P(K_i), shape (...).

    Args:
        chance: p_i in [0, 1], shape (..., m).
        budgets: N_i, length m.
    """
    if sum(budgets) <= PLAIN_VOTES:
        limits = np.array(budgets)

        def as_written(votes: Sequence[int]) -> FloatArray:
            ways = math.prod(math.comb(int(n), int(k)) for n, k in zip(budgets, votes, strict=True))
            counts = np.array(votes, dtype=np.int64)
            return np.asarray(ways * np.prod(chance**counts * (1 - chance) ** (limits - counts), axis=-1))

        return as_written
    tables = [binomial_law(np.arange(n + 1), n, chance[..., i, None]) for i, n in enumerate(budgets)]
    return lambda votes: np.asarray(math.prod(table[..., k] for table, k in zip(tables, votes, strict=True)))


def binomial_law(votes: npt.ArrayLike, budget: int, chance: npt.ArrayLike) -> FloatArray:
    """Return P(K) for one judge, to about 1e-13 relative; `votes` (0 to N) and `chance` broadcast."""
    k, p = np.broadcast_arrays(np.asarray(votes, dtype=np.float64), np.asarray(chance, dtype=np.float64))
    n = float(budget)
    law = np.zeros(k.shape)
    inside = (p > 0) & (p < 1)
    law[(p == 0) & (k == 0)] = 1.0
    law[(p == 1) & (k == n)] = 1.0
    none, all_of_them, some = (inside & each for each in (k == 0, k == n, (k > 0) & (k < n)))
    law[none] = np.exp(n * np.log1p(-p[none]))
    law[all_of_them] = np.exp(n * np.log(p[all_of_them]))
    law[some] = np.exp(_log_law(k[some], n, p[some]))
    return law


def _log_law(k: FloatArray, n: float, p: FloatArray) -> FloatArray:
    against = n - k
    errors = _stirling_error(np.full(k.shape, n)) - _stirling_error(k) - _stirling_error(against)
    deviance = _deviance(k, n * p) + _deviance(against, n * (1 - p))
    return np.asarray(errors - deviance + 0.5 * (np.log(n / k) - np.log(against)) - _HALF_LOG_2PI)


def _stirling_error(n: FloatArray) -> FloatArray:
    """Return log n! - ((n + 1/2) log n - n + log(2 pi) / 2)."""
    series: FloatArray = np.zeros(n.shape)
    for coefficient in _SERIES:
        series = coefficient - series / (n * n)
    return np.where(n < _EXACT_FACTORIALS, _ERRORS[np.minimum(n, _EXACT_FACTORIALS - 1).astype(np.int64)], series / n)


def _deviance(x: FloatArray, mean: FloatArray) -> FloatArray:
    """Return x log(x / m) + m - x; by a series where the two terms nearly cancel."""
    far = np.asarray(x * (np.log(x) - np.log(mean)) + mean - x)
    share = (x - mean) / (x + mean)
    near = (x - mean) * share
    power = 2 * x * share
    for term in range(1, _TERMS):
        power = power * share * share
        near = near + power / (2 * term + 1)
    return np.where(np.abs(share) < 0.1, near, far)
