"""How many votes a comparison costs under a policy, exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from sampler.planning.policies import FixedOrder, JudgeByJudge, Policy, ahead, believed
from sampler.planning.tally_grid import (
    MOST_TALLIES,
    Counts,
    TallyGrid,
    after_a_vote,
    bounds,
    full_acceptance,
    tallies_of,
)
from sampler.rules.ballots import IntArray, average_over_votes, checked_budgets, judges_last

FloatArray = npt.NDArray[np.float64]


def expected_votes(
    policy: Policy,
    log_r0: float,
    preference: Sequence[float] | None,
    budgets: Sequence[int],
    uniform: float | None = None,
) -> float:
    """Return the mean number of votes until the verdict, asking one at a time.

    Asking min(a, c) votes of the chosen judge at once costs the same for one judge and for `JudgeByJudge`.

    Args:
        policy: who is asked next.
        log_r0: log base ratio.
        preference: p_i, length m; or None to average over independent p_i ~ Unif[0, 1], the belief of `FewestVotes`.
        budgets: N_i, length m.
        uniform: U; or None to average over U ~ Unif[0, 1), exactly: verdicts change only where U passes a value
            that the acceptance probability can take.

    Raises:
        ValueError: an argument is not what it says above, or the budgets leave too many tallies to plan on.
    """
    limits = checked_budgets(tuple(budgets))
    chances = None if preference is None else judges_last(preference, limits)
    if uniform is not None:
        points, weights = np.array([uniform]), np.ones(1)
    elif tallies_of(limits) > MOST_TALLIES:
        raise ValueError(f"budgets must leave at most {MOST_TALLIES:,} tallies to plan on, not {tallies_of(limits):,}")
    else:
        edges = np.unique(np.append(full_acceptance(log_r0, limits).ravel(), (0.0, 1.0)))
        points, weights = edges[:-1], np.diff(edges)
    at_once = max(1, MOST_TALLIES // (4 * tallies_of(limits)))
    total = 0.0
    for begin in range(0, len(points), at_once):
        grid = TallyGrid(log_r0, points[begin : begin + at_once], limits)
        total += float(weights[begin : begin + at_once] @ _votes_to_come(policy, grid, chances))
    return total


def mean_votes(
    log_r0: npt.ArrayLike,
    preference: npt.ArrayLike,
    budgets: Sequence[int],
    policy: FixedOrder | None = None,
) -> FloatArray:
    """Return the same averaged over U for a policy of fixed order, for many pairs at once.

    After n votes, k of them for x', the verdict is open with probability A(k + N - n) - A(k) over U; the mean is the
    sum of that along the order, averaged over k_i ~ Binomial(n_i, p_i).

    Args:
        log_r0: shape (...).
        preference: p_i, shape (..., m).
        budgets: N_i, length m.
        policy: `JudgeByJudge` (the default) or `RoundRobin`.

    Returns:
        Shape (...).
    """
    limits = checked_budgets(tuple(budgets))
    chances = judges_last(preference, limits)
    acceptance = full_acceptance(log_r0, limits)
    order = policy or JudgeByJudge()
    total: FloatArray = np.zeros(chances.shape[:-1])
    cast: Counts = (0,) * len(limits)
    while cast != limits:
        worst, best = bounds(acceptance, cast)
        total += average_over_votes(_looked_up(best - worst), chances, cast)
        cast = after_a_vote(cast, order.next_judge(cast, limits))
    return total


def _looked_up(table: FloatArray) -> Callable[[IntArray], FloatArray]:
    return lambda votes: np.asarray(table[tuple(votes)])


def _votes_to_come(policy: Policy, grid: TallyGrid, chances: FloatArray | None) -> FloatArray:
    """Return the mean number of votes under each uniform of the grid, shape (u,)."""
    choices = policy.choices(grid)
    to_come: dict[Counts, FloatArray] = {}
    for cast in reversed(list(grid.casts())):
        undecided = grid.open(cast)
        votes: FloatArray = np.zeros(undecided.shape)
        for judge in grid.judges_left(cast):
            chance = believed(cast, judge) if chances is None else float(chances[judge])
            after = 1 + ahead(to_come[after_a_vote(cast, judge)], judge, chance)
            votes = np.where(undecided & (choices[cast] == judge), after, votes)
        to_come[cast] = votes
    return to_come[(0,) * len(grid.budgets)].reshape(-1)
