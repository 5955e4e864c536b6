"""One comparison and everything its votes can still say: the grid of tallies that policies plan on."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from sampler.acceptance import acceptance_probability
from sampler.rules.ballots import checked_budgets

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Counts = tuple[int, ...]

# Tallies (k, n) times uniforms that one comparison may have: some 100 MiB of tables.
MOST_TALLIES: Final = 4_000_000


class TallyGrid:
    """log r0, some uniforms U to decide under side by side, and budgets N_i.

    Every verdict comes from one table, A(K) = min(1, r0 prod_i K_i / (N_i - K_i + 1)) at all full tallies K: with
    n_i votes cast and k_i of them for x', ACCEPT when U < A(k), REJECT when U >= A(k + N - n).

    Args:
        log_r0: log base ratio.
        uniforms: values in [0, 1), shape (u,).
        budgets: N_i, length m.

    Raises:
        ValueError: an argument is not what it says above, or there are more than `MOST_TALLIES` tallies.
    """

    def __init__(self, log_r0: float, uniforms: npt.ArrayLike, budgets: Sequence[int]) -> None:
        self.uniforms: FloatArray = np.atleast_1d(np.asarray(uniforms, dtype=np.float64))
        if self.uniforms.ndim != 1 or not np.all((self.uniforms >= 0) & (self.uniforms < 1)):
            raise ValueError("uniforms must lie in [0, 1)")
        self.budgets: Counts = checked_budgets(tuple(budgets))
        tallies = tallies_of(self.budgets) * len(self.uniforms)
        if tallies > MOST_TALLIES:
            raise ValueError(f"budgets must leave at most {MOST_TALLIES:,} tallies to plan on, not {tallies:,}")
        self.acceptance = full_acceptance(log_r0, self.budgets)

    def casts(self) -> Iterator[Counts]:
        """Yield every n from nothing to N; each comes after all it can follow."""
        return itertools.product(*(range(budget + 1) for budget in self.budgets))

    def judges_left(self, cast: Counts) -> list[int]:
        """Return the judges who have votes left after `cast`."""
        return [judge for judge, budget in enumerate(self.budgets) if cast[judge] < budget]

    def open(self, cast: Counts) -> BoolArray:
        """Return where the verdict is UNDECIDED after n votes: at [k_1, ..., k_m, u], shape (n_1 + 1, ..., u)."""
        worst, best = bounds(self.acceptance, cast)
        return np.asarray((self.uniforms >= worst[..., None]) & (self.uniforms < best[..., None]))


def full_acceptance(log_r0: npt.ArrayLike, budgets: Sequence[int]) -> FloatArray:
    """Return A(K) at [K_1, ..., K_m], shape (N_1 + 1, ..., N_m + 1); the shape of log_r0 comes after these axes."""
    ratio = np.asarray(log_r0, dtype=np.float64)
    full = np.stack(np.meshgrid(*(np.arange(budget + 1) for budget in budgets), indexing="ij"), axis=-1)
    full = full.reshape(*full.shape[:-1], *(1,) * ratio.ndim, len(budgets))
    return np.asarray(acceptance_probability(ratio, full, list(budgets)))


def bounds(acceptance: FloatArray, cast: Counts) -> tuple[FloatArray, FloatArray]:
    """Return A(k) and A(k + N - n), the lowest and the highest that can still come, at every k <= n."""
    worst = acceptance[tuple(slice(n + 1) for n in cast)]
    best = acceptance[tuple(slice(size - 1 - n, size) for size, n in zip(acceptance.shape, cast, strict=False))]
    return worst, best


def tallies_of(budgets: Counts) -> int:
    """Return the number of (k, n): prod_i (N_i + 1)(N_i + 2) / 2."""
    return math.prod((budget + 1) * (budget + 2) // 2 for budget in budgets)


def after_a_vote(cast: Counts, judge: int) -> Counts:
    """Return n with one more vote of this judge."""
    return (*cast[:judge], cast[judge] + 1, *cast[judge + 1 :])
