"""What every kernel must pass, and a deliberately wrong one must not.

`check_rows` and `check_balance` are exact, on a small instance whose states can be listed; `check_long_run` compares a
chain driven by the kernel with the law on the same instance; `check_means` is its counterpart where states cannot be
listed. All raise AssertionError. Shapes: n states.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

from sampler import Kernel
from sampler.exact import log_base_ratio, transitions_of
from tests.support.exact import visits_p_value

Matrix = npt.NDArray[np.float64]
TOLERANCE = 1e-12
# Of p-values: a correct kernel is turned away once in 10,000 seeds, and tests have a fixed one.
LEAST_P_VALUE = 1e-4
_BATCHES = 50


def matrix_of(states: Sequence[Hashable], rows: Sequence[Mapping[Hashable, float]], empty: float = 0.0) -> Matrix:
    """Return mappings from states to numbers as a matrix, shape (n, n); KeyError for a state that is not listed."""
    place = {state: i for i, state in enumerate(states)}
    matrix = np.full((len(states), len(states)), empty)
    for i, row in enumerate(rows):
        for state, number in row.items():
            matrix[i, place[state]] = number
    return matrix


def check_rows(q: Matrix) -> None:
    """Check that q(.|x) sums to 1 for each x, and that a move is possible both ways or neither."""
    assert np.all(q >= 0)
    worst = float(np.abs(q.sum(axis=1) - 1).max())
    assert worst < TOLERANCE, f"a row of q sums to 1 only within {worst:.1e}"
    assert np.array_equal(q > 0, q.T > 0), "some move has no way back"


def check_balance(log_p0: Matrix, q: Matrix, log_r0: Matrix) -> None:
    """Check log p0(x) + log q(x'|x) + log r0(x, x') = log p0(x') + log q(x|x') for every possible move.

    Then min(1, r0) gives detailed balance with p0, and any rule built on r0 with its own target.

    Args:
        log_p0: shape (n,), up to a constant.
        q: q(x'|x) at [x, x'], shape (n, n).
        log_r0: what the kernel claims, shape (n, n); read only where q > 0.
    """
    moves = (q > 0) & (q.T > 0)
    worst = float(np.abs(log_r0[moves] - log_base_ratio(log_p0, q)[moves]).max())
    assert worst < TOLERANCE, f"a claimed log r0 is off by {worst:.1e}"


def walk(rng: np.random.Generator, kernel: Kernel, state: Hashable, steps: int) -> Iterator[Hashable]:
    """Yield the states of a chain that accepts with probability min(1, r0): one without judges, whose law is p0."""
    for _ in range(steps):
        proposal = kernel.propose(rng, state)
        if rng.random() < math.exp(min(0.0, proposal.log_r0)):
            state = proposal.state
        yield state


def check_long_run(
    rng: np.random.Generator, kernel: Kernel, start: Hashable, law: Mapping[Hashable, float], q: Matrix, steps: int
) -> None:
    """Check that a chain's visits follow the law, by the central limit theorem for Markov chains.

    The exact chain made of q and the exact ratio gives the visits' covariance: see `visits_p_value`.

    Args:
        law: p0 of each state, in the order of q, summing to 1.
        q: q(x'|x), shape (n, n).
        steps: enough that each state is visited some tens of times.
    """
    states, p0 = list(law), np.array(list(law.values()))
    exact = transitions_of(q, np.exp(np.minimum(0.0, log_base_ratio(np.log(p0), q))))
    visits = Counter(walk(rng, kernel, start, steps))
    assert visits.keys() <= law.keys(), "the chain left the support of p0"
    p_value = visits_p_value([visits[state] for state in states], exact, p0)
    assert p_value > LEAST_P_VALUE, f"visits do not follow the law: p = {p_value:.1e}"


def check_means(
    rng: np.random.Generator,
    kernel: Kernel,
    start: Hashable,
    functions: Callable[[Hashable], npt.ArrayLike],
    means: npt.ArrayLike,
    steps: int,
) -> None:
    """Check that averages along a chain agree with their means under p0, by batch means.

    The averages of 50 long batches are nearly independent and normal, so that each average's t-statistic has 49
    degrees of freedom; the smallest p-value is corrected for their number k (Bonferroni).

    Args:
        functions: gives k numbers of a state.
        means: their expectations under p0, shape (k,).
        steps: some hundreds of times the autocorrelation time of any of them, times 50.
    """
    values = np.array([functions(state) for state in walk(rng, kernel, start, steps)], dtype=np.float64)
    batches = values[: len(values) // _BATCHES * _BATCHES].reshape(_BATCHES, -1, values.shape[1]).mean(axis=1)
    spread = batches.std(axis=0, ddof=1) / math.sqrt(_BATCHES)
    p_values = 2 * stats.t.sf(np.abs(batches.mean(axis=0) - means) / spread, _BATCHES - 1)
    p_value = float(p_values.min() * len(p_values))
    assert p_value > LEAST_P_VALUE, f"averages do not agree with p0: p = {p_value:.1e}"
