"""Early verdicts for small budgets, from a table and without arrays.

A(K) = min(1, r0 prod_i K_i / (N_i - K_i + 1)). The product does not depend on r0, and budgets never change within a
campaign. So the products of one campaign are one table, and each bound of a verdict is one number from it times r0.
Divisions, products and the exponential are those of `factors.accepted`, in the same order, so that all bits are the
same. The minimum with 1 is left out: it changes no comparison with U < 1.

There is no table where `factors.accepted` takes logarithms, or where budgets have more than `MOST_TALLIES`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from operator import mul
from typing import Final, NamedTuple, TypeGuard

import numpy as np

from sampler.acceptance.factors import EXP_IS_SAFE, product_of_factors

# Of (n, K), votes cast and votes for the proposal. A table then has at most 162 numbers, one for each K of all N votes.
MOST_TALLIES: Final = 4_096
_MOST_TABLES: Final = 256


class Table(NamedTuple):
    """The product at every K. One more vote of a judge stands that judge's stride further on."""

    products: tuple[float, ...]
    strides: tuple[int, ...]

    def place(self, counts: Sequence[int]) -> int:
        """Return where the product at K = `counts` stands; length m, 0 to N."""
        return sum(map(mul, counts, self.strides))


class Bounds(NamedTuple):
    """The lowest and the highest acceptance probability that missing votes leave: two places of the table, times r0."""

    table: Table
    r0: float
    uniform: float
    budgets: Sequence[int]
    cast: Sequence[int]
    lowest: int
    """The place of K: every missing vote goes against x'."""
    highest: int
    """The place of K + N - n: every missing vote goes for x'."""

    def accepts(self, place: int) -> bool:
        """True when U < A at this place."""
        return self.uniform < self.r0 * self.table.products[place]

    def askable(self, promised: object) -> tuple[bool, ...] | None:
        """Return what `acceptance.askable` returns; None if `promised` may be wrong.

        A settled verdict needs no look of its own: by monotonicity no vote can find it open.
        """
        if not _are_counts(promised, len(self.budgets)):
            return None
        left = [budget - cast - out for budget, cast, out in zip(self.budgets, self.cast, promised, strict=True)]
        if min(promised) < 0 or min(left) < 0:
            return None
        strides, out = self.table.strides, self.table.place(promised)
        may_be_last = [stride for stride, votes in zip(strides, promised, strict=True) if votes]
        return tuple(
            votes > 0 and all(self._is_open_after(out + stride - last) for last in (stride, *may_be_last))
            for votes, stride in zip(left, strides, strict=True)
        )

    def _is_open_after(self, others: int) -> bool:
        """True when votes that stand so far apart in the table, all for x' or all against, leave the verdict open."""
        return not self.accepts(self.lowest + others) and self.accepts(self.highest - others)


def bounds(log_r0: object, uniform: object, votes_for: object, votes_cast: object, budgets: object) -> Bounds | None:
    """Return the bounds of `acceptance.verdict`; None if there is no table, or an argument may be wrong."""
    if not (isinstance(log_r0, float) and isinstance(uniform, float) and isinstance(budgets, tuple)):
        return None
    judges = len(budgets)
    if not (-EXP_IS_SAFE <= log_r0 <= EXP_IS_SAFE and 0 <= uniform < 1 and _are_counts(budgets, judges)):
        return None
    table = table_for(budgets)
    if table is None or not (_are_counts(votes_cast, judges) and _are_counts(votes_for, judges)):
        return None
    for votes, cast, budget in zip(votes_for, votes_cast, budgets, strict=True):
        if not 0 <= votes <= cast <= budget:
            return None
    lowest = table.place(votes_for)
    highest = lowest + table.place(budgets) - table.place(votes_cast)
    # NumPy's exponential, as in `factors`: the last bit of Python's may differ.
    return Bounds(table, float(np.exp(log_r0)), float(uniform), budgets, votes_cast, lowest, highest)


@lru_cache(maxsize=_MOST_TABLES)
def table_for(budgets: tuple[int, ...]) -> Table | None:
    """Return the table for budgets N_i, length m; None if one is below 1, or they have too many tallies."""
    if min(budgets) < 1 or math.prod((budget + 1) * (budget + 2) // 2 for budget in budgets) > MOST_TALLIES:
        return None
    sizes = [budget + 1 for budget in budgets]
    every = np.array(list(itertools.product(*map(range, sizes))))
    strides = tuple(math.prod(sizes[judge + 1 :]) for judge in range(len(sizes)))
    return Table(tuple(product_of_factors(every, np.array(budgets)).tolist()), strides)


def _are_counts(values: object, judges: int) -> TypeGuard[Sequence[int]]:
    """True for Python's whole numbers, one for each judge, in a tuple or a list."""
    return isinstance(values, (tuple, list)) and len(values) == judges and set(map(type, values)) == {int}
