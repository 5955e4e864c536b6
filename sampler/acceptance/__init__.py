"""The N-vote acceptance rule and the bounds that let voting stop early.

Notation follows "When Metropolis and Hastings Meet Bradley and Terry" (the paper): judge i casts N_i votes,
K_i of them for the proposal x'; log r0 is the log of the base ratio p0(x') q(x|x') / (p0(x) q(x'|x)).

Every function takes one entry per judge, m in all, as its last axis. A judge's factor K / (N - K + 1) is computed
with one division and the factors with one product (`factors`), so the rule is monotone in every K_i in floating point
too: a verdict reached early is, bit for bit, the verdict all N votes would give. Any number of judges and any N up to
2^62 will do: products and binomial coefficients that a double cannot hold are kept with an exponent of their own.
Verdicts on small budgets come from a table of the same numbers, and need no arrays (`small_budgets`).
"""

from __future__ import annotations

import enum

import numpy as np
import numpy.typing as npt

from sampler.acceptance.averages import mean_acceptance
from sampler.acceptance.factors import accepted
from sampler.acceptance.small_budgets import bounds

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Beyond this the whole numbers of the arithmetic would overflow.
_LARGEST_BUDGET = 2**62


class Verdict(enum.Enum):
    """What the votes cast so far say about a proposal."""

    ACCEPT = "accept"
    REJECT = "reject"
    UNDECIDED = "undecided"


def acceptance_probability(
    log_r0: npt.ArrayLike, votes_for: npt.ArrayLike, budgets: npt.ArrayLike
) -> FloatArray | np.float64:
    """Return min(1, r0 * prod_i K_i / (N_i - K_i + 1)), equation 12 of the paper with one N per judge.

    Args:
        log_r0: log base ratio, shape (...).
        votes_for: K_i, integers, shape (..., m).
        budgets: N_i, integers, shape (..., m).

    Returns:
        The acceptance probability, shape (...).

    Raises:
        ValueError: an argument is not what it says above (NaN, K > N, N < 1, lengths that differ); the message
            names it.
    """
    ratio = _log_ratio(log_r0)
    limits = _budgets(budgets)
    votes = _counts("votes_for", votes_for, limits, "budgets")
    return _acceptance(ratio, votes, limits)


def marginal_acceptance(
    log_r0: npt.ArrayLike, preference: npt.ArrayLike, budgets: npt.ArrayLike
) -> FloatArray | np.float64:
    """Return the acceptance probability averaged over K_i ~ Binomial(N_i, p_i), the paper's alpha-bar.

    The average is a sum over all tallies, vectorised over the leading axes; with many judges, over all values that the
    product of their factors can take.

    Args:
        log_r0: log base ratio, shape (...).
        preference: p_i, each judge's probability to prefer the proposal, shape (..., m).
        budgets: N_i, integers, shape (m,).

    Raises:
        ValueError: an argument is not what it says above, or the budgets leave too many values to sum over; the
            message names it.
    """
    ratio = _log_ratio(log_r0)
    limits = _vector("budgets", _budgets(budgets))
    chances = np.atleast_1d(np.asarray(preference, dtype=np.float64))
    if chances.shape[-1] != limits.shape[-1]:
        raise ValueError(f"preference has {chances.shape[-1]} judges, budgets has {limits.shape[-1]}")
    if not np.all((chances >= 0) & (chances <= 1)):
        raise ValueError("preference must lie in [0, 1]")
    return mean_acceptance(ratio, chances, limits)[()]


def verdict(
    log_r0: float,
    uniform: float,
    votes_for: npt.ArrayLike,
    votes_cast: npt.ArrayLike,
    budgets: npt.ArrayLike,
) -> Verdict:
    """Return what is settled already, whatever the missing votes will say.

    ACCEPT when U < A even if every missing vote goes against x'; REJECT when U >= A even if every missing
    vote goes for x'; UNDECIDED otherwise. With all votes cast it is the rule itself: accept iff U < A.

    Args:
        log_r0: log base ratio, a number.
        uniform: U, drawn from [0, 1) before the first vote.
        votes_for: K_i so far, integers, shape (m,).
        votes_cast: n_i so far, integers, shape (m,).
        budgets: N_i, integers, shape (m,).

    Raises:
        ValueError: an argument is not what it says above; the message names it.
    """
    small = bounds(log_r0, uniform, votes_for, votes_cast, budgets)
    if small is not None:
        if small.accepts(small.lowest):
            return Verdict.ACCEPT
        return Verdict.UNDECIDED if small.accepts(small.highest) else Verdict.REJECT
    ratio = _scalar_log_ratio(log_r0)
    threshold = _uniform(uniform)
    limits = _vector("budgets", _budgets(budgets))
    cast = _vector("votes_cast", _counts("votes_cast", votes_cast, limits, "budgets"))
    votes = _vector("votes_for", _counts("votes_for", votes_for, cast, "votes_cast"))
    return _verdict(ratio, threshold, votes, cast, limits)


def askable(
    log_r0: float,
    uniform: float,
    votes_for: npt.ArrayLike,
    votes_cast: npt.ArrayLike,
    promised: npt.ArrayLike,
    budgets: npt.ArrayLike,
) -> tuple[bool, ...]:
    """Say, for each judge, whether one more vote may be asked for without any vote ever coming too late.

    `promised` votes are out already (leased to people, sent to a model). A further one is safe when, in
    whatever order and with whatever answers the promised votes and this one arrive, the last to arrive still
    finds the verdict open. By monotonicity two cases suffice for each vote that could be the last: all others
    for x', and all others against. For one judge this is promised + 1 <= min(a, c), where a more votes for x'
    would accept and c more against would reject.

    Args:
        promised: votes asked for and not yet cast, integers, shape (m,).

    Raises:
        ValueError: as `verdict`; also when votes_cast + promised exceeds budgets.
    """
    small = bounds(log_r0, uniform, votes_for, votes_cast, budgets)
    found = None if small is None else small.askable(promised)
    if found is not None:
        return found
    ratio = _scalar_log_ratio(log_r0)
    threshold = _uniform(uniform)
    limits = _vector("budgets", _budgets(budgets))
    cast = _vector("votes_cast", _counts("votes_cast", votes_cast, limits, "budgets"))
    votes = _vector("votes_for", _counts("votes_for", votes_for, cast, "votes_cast"))
    out = _vector("promised", _counts("promised", promised, limits - cast, "the votes still to cast"))
    if _verdict(ratio, threshold, votes, cast, limits) is not Verdict.UNDECIDED:
        return (False,) * len(limits)

    unit = np.eye(len(limits), dtype=np.int64)
    within = cast + out < limits
    return tuple(
        bool(within[i]) and _is_open_for_the_last(ratio, threshold, votes, cast, limits, out + unit[i])
        for i in range(len(limits))
    )


def _is_open_for_the_last(
    ratio: FloatArray, uniform: float, votes: IntArray, cast: IntArray, limits: IntArray, asked: IntArray
) -> bool:
    """True when whichever asked vote is the last finds the verdict open, the others being all for x' or all against."""
    others = asked - np.eye(len(limits), dtype=np.int64)[asked > 0]
    votes_then, cast_then = np.concatenate([votes + others, others * 0 + votes]), np.tile(cast + others, (2, 1))
    worst = _acceptance(ratio, votes_then, limits)
    best = _acceptance(ratio, votes_then + limits - cast_then, limits)
    return bool(np.all((uniform >= worst) & (uniform < best)))


def _acceptance(ratio: FloatArray, votes: IntArray, limits: IntArray) -> FloatArray | np.float64:
    return accepted(ratio, votes, limits)[()]


def _verdict(ratio: FloatArray, uniform: float, votes: IntArray, cast: IntArray, limits: IntArray) -> Verdict:
    if uniform < _acceptance(ratio, votes, limits):
        return Verdict.ACCEPT
    if uniform >= _acceptance(ratio, votes + limits - cast, limits):
        return Verdict.REJECT
    return Verdict.UNDECIDED


def _log_ratio(log_r0: npt.ArrayLike) -> FloatArray:
    ratio = np.asarray(log_r0, dtype=np.float64)
    # Minus infinity is a proposal outside the support of p0; plus infinity would mean the chain stands there.
    if np.any(np.isnan(ratio)) or np.any(np.isposinf(ratio)):
        raise ValueError("log_r0 must be a number below infinity, not NaN")
    return ratio


def _scalar_log_ratio(log_r0: float) -> FloatArray:
    ratio = _log_ratio(log_r0)
    if ratio.ndim:
        raise ValueError(f"log_r0 must be a single number, not of shape {ratio.shape}")
    return ratio


def _uniform(uniform: float) -> float:
    threshold = float(uniform)
    if not 0.0 <= threshold < 1.0:
        raise ValueError(f"uniform must lie in [0, 1), not {threshold}")
    return threshold


def _integers(name: str, values: npt.ArrayLike) -> IntArray:
    array = np.atleast_1d(np.asarray(values))
    is_whole = array.dtype.kind in "iu" or (
        array.dtype.kind == "f" and np.all(np.isfinite(array)) and np.all(array == np.floor(array))
    )
    if not is_whole or np.any(array > _LARGEST_BUDGET):
        raise ValueError(f"{name} must be whole numbers of at most 2^62")
    return array.astype(np.int64)


def _budgets(budgets: npt.ArrayLike) -> IntArray:
    limits = _integers("budgets", budgets)
    if limits.shape[-1] < 1:
        raise ValueError("budgets must name at least one judge")
    if np.any(limits < 1):
        raise ValueError("budgets must be at least 1")
    return limits


def _vector(name: str, values: IntArray) -> IntArray:
    if values.ndim != 1:
        raise ValueError(f"{name} must be one vector of length m, not of shape {values.shape}")
    return values


def _counts(name: str, values: npt.ArrayLike, at_most: IntArray, bound: str) -> IntArray:
    counts = _integers(name, values)
    if counts.shape[-1] != at_most.shape[-1]:
        raise ValueError(f"{name} has {counts.shape[-1]} judges, {bound} has {at_most.shape[-1]}")
    if np.any(counts < 0):
        raise ValueError(f"{name} must not be negative")
    if np.any(counts > at_most):
        raise ValueError(f"{name} must not exceed {bound}")
    return counts
