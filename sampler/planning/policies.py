"""Policies: who is asked next, at every tally a comparison can reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sampler.planning.tally_grid import Counts, TallyGrid, after_a_vote

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
# For each n, the judge to ask next at [k_1, ..., k_m, u], or something that broadcasts to it.
Choices = Mapping[Counts, IntArray]
NextJudge = Callable[[Counts, Counts], int]


class Policy(Protocol):
    """Decides from n, k, U, log r0 and the budgets, and from nothing a judge has not said yet."""

    def choices(self, grid: TallyGrid) -> Choices:
        """Return the judge to ask next, for every n but the last; read only where the verdict is open."""
        ...

    def follow(self, log_r0: float, uniform: float, budgets: Counts) -> NextJudge:
        """Return the same for one comparison, as a function of (k, n)."""
        ...


class FixedOrder(Protocol):
    """A policy that looks at n alone: judges are asked in one order until the verdict is settled."""

    def next_judge(self, cast: Counts, budgets: Counts) -> int:
        """Return the judge to ask after n votes."""
        ...


class RoundRobin:
    """Ask the judge with the fewest votes so far, the first of them on a tie."""

    def next_judge(self, cast: Counts, budgets: Counts) -> int:
        """Return the judge to ask after n votes."""
        return min((n, judge) for judge, n in enumerate(cast) if n < budgets[judge])[1]

    def choices(self, grid: TallyGrid) -> Choices:
        """Return the same judge whatever the votes said."""
        return _whatever_was_said(self, grid)

    def follow(self, log_r0: float, uniform: float, budgets: Counts) -> NextJudge:
        """Return the same judge whatever the votes said."""
        return lambda votes, cast: self.next_judge(cast, budgets)


class JudgeByJudge:
    """Ask the first judge for all of N_1, then the second, and so on; `simulate` does so."""

    def next_judge(self, cast: Counts, budgets: Counts) -> int:
        """Return the judge to ask after n votes."""
        return next(judge for judge, n in enumerate(cast) if n < budgets[judge])

    def choices(self, grid: TallyGrid) -> Choices:
        """Return the same judge whatever the votes said."""
        return _whatever_was_said(self, grid)

    def follow(self, log_r0: float, uniform: float, budgets: Counts) -> NextJudge:
        """Return the same judge whatever the votes said."""
        return lambda votes, cast: self.next_judge(cast, budgets)


class FewestVotes:
    """Ask the judge after whom the fewest votes are expected, under a Beta(1, 1) belief on each p_i.

    After k of n votes the belief is Beta(1 + k, 1 + n - k), and the next vote is for x' with probability
    (1 + k) / (2 + n). Backward induction on the votes still to come,

        V(n, k) = 1 + min_i E V(n + e_i, k + vote of i),    0 where the verdict is settled,

    asks fewest votes of all policies that ask one at a time, on average over that belief; on a tie the first
    judge. The belief only decides whom to ask: the verdict is the rule's.
    """

    def choices(self, grid: TallyGrid) -> Choices:
        """Return the minimising judge at every tally."""
        return _least(grid)[0]

    def follow(self, log_r0: float, uniform: float, budgets: Counts) -> NextJudge:
        """Work out every tally of this comparison once, and look the judge up.

        Raises:
            ValueError: the budgets leave too many tallies to plan on.
        """
        choices = self.choices(TallyGrid(log_r0, uniform, budgets))
        return lambda votes, cast: int(choices[cast][(*votes, 0)])

    def belief(self, grid: TallyGrid) -> FloatArray:
        """Return V(0, 0), the votes expected under the belief before the first vote, shape (u,)."""
        return _least(grid)[1]


def believed(cast: Counts, judge: int) -> FloatArray:
    """Return (1 + k) / (2 + n) of this judge on the grid of k, shape (1, ..., n + 1, ..., 1, 1)."""
    shape = [1] * (len(cast) + 1)
    shape[judge] = cast[judge] + 1
    return ((np.arange(cast[judge] + 1) + 1) / (cast[judge] + 2)).reshape(shape)


def ahead(later: FloatArray, judge: int, chance: FloatArray | float) -> FloatArray:
    """Return p V(n + e_i, k + e_i) + (1 - p) V(n + e_i, k): the mean of V after one vote of judge i."""
    size = later.shape[judge]
    against, in_favour = (np.take(later, range(begin, begin + size - 1), axis=judge) for begin in (0, 1))
    return np.asarray(chance * in_favour + (1 - chance) * against)


def _least(grid: TallyGrid) -> tuple[Choices, FloatArray]:
    choices: dict[Counts, IntArray] = {}
    to_come: dict[Counts, FloatArray] = {}
    for cast in reversed(list(grid.casts())):
        undecided = grid.open(cast)
        left = grid.judges_left(cast)
        if not left:
            to_come[cast] = np.zeros(undecided.shape)
            continue
        each = np.stack([ahead(to_come[after_a_vote(cast, i)], i, believed(cast, i)) for i in left])
        best = np.argmin(each, axis=0)
        choices[cast] = np.array(left)[best]
        to_come[cast] = np.where(undecided, 1 + np.min(each, axis=0), 0.0)
    return choices, to_come[(0,) * len(grid.budgets)].reshape(-1)


def _whatever_was_said(policy: FixedOrder, grid: TallyGrid) -> Choices:
    return {cast: np.array(policy.next_judge(cast, grid.budgets)) for cast in grid.casts() if cast != grid.budgets}
