"""The N-vote acceptance rule and the bounds that let voting stop early.

Notation follows "When Metropolis and Hastings Meet Bradley and Terry" (the paper): judge i casts N_i votes, K_i of them
for the proposal x'; log r0 is the log of the base ratio p0(x') q(x|x') / (p0(x) q(x'|x)).

Every function takes one entry per judge, m in all, as its last axis. A judge's factor K / (N - K + 1) is computed with
one division and the factors with one product, so the rule is monotone in every K_i in floating point too: a verdict
reached early is, bit for bit, the verdict all N votes would give. Any number of judges and any N up to 2^62 will do.

A factor lies between 1 / N and N, so that the product of many leaves the range of doubles. Where it may, logarithms are
added instead, and their sum is rounded once: that is monotone in every K_i too.

The acceptance averaged over K_i ~ Binomial(N_i, p_i). A few small judges: one term for each of the prod_i (N_i + 1)
tallies. Otherwise judge after judge, fewest votes first: all tallies whose factors have the same product, a rational
number, are one outcome, whose chance is the sum of theirs. 150 judges with N = 1 have two outcomes, not 2^150.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from operator import add, le, sub
from typing import Any, Final, TypeGuard

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Counts = Sequence[int]
"""One whole number a judge."""

# Beyond this the whole numbers of the arithmetic would overflow.
_LARGEST_BUDGET = 2**62


class Verdict(enum.Enum):
    """What the votes cast so far say about a proposal."""

    ACCEPT = "accept"
    REJECT = "reject"
    UNDECIDED = "undecided"


def acceptance_probability(
    log_r0: npt.ArrayLike, votes_for: npt.ArrayLike, max_votes: npt.ArrayLike
) -> FloatArray | np.float64:
    """Return min(1, r0 * prod_i K_i / (N_i - K_i + 1)), equation 12 of the paper with one N per judge.

    Args:
        log_r0: log base ratio, shape (...).
        votes_for: K_i, integers, shape (..., m).
        max_votes: N_i, integers, shape (..., m).

    Returns:
        The acceptance probability, shape (...).

    Raises:
        ValueError: an argument is not what it says above (NaN, K > N, N < 1, lengths that differ); the message
            names it.
    """
    ratio = _log_ratio(log_r0)
    limits = _max_votes(max_votes)
    votes = _counts("votes_for", votes_for, limits, "max_votes")
    return accepted(ratio, votes, limits)[()]


def marginal_acceptance(
    log_r0: npt.ArrayLike, preference: npt.ArrayLike, max_votes: npt.ArrayLike
) -> FloatArray | np.float64:
    """Return the acceptance probability averaged over K_i ~ Binomial(N_i, p_i), the paper's alpha-bar.

    The average is a sum over all tallies, vectorised over the leading axes; with many judges, over all values that the
    product of their factors can take.

    Args:
        log_r0: log base ratio, shape (...).
        preference: p_i, each judge's probability to prefer the proposal, shape (..., m).
        max_votes: N_i, integers, shape (m,).

    Raises:
        ValueError: an argument is not what it says above, or max_votes leaves too many values to sum over; the
            message names it.
    """
    ratio = _log_ratio(log_r0)
    limits = _vector("max_votes", _max_votes(max_votes))
    return mean_acceptance(ratio, judges_last(preference, limits.tolist()), limits)[()]


def verdict(
    log_r0: float,
    uniform: float,
    votes_for: npt.ArrayLike,
    votes_cast: npt.ArrayLike,
    max_votes: npt.ArrayLike,
) -> Verdict:
    """Return what is settled already, whatever the missing votes will say.

    ACCEPT when U < A even if every missing vote goes against x'; REJECT when U >= A even if every missing
    vote goes for x'; UNDECIDED otherwise. With all votes cast it is the rule itself: accept iff U < A.

    Args:
        log_r0: log base ratio, a number.
        uniform: U, drawn from [0, 1) before the first vote.
        votes_for: K_i so far, integers, shape (m,).
        votes_cast: n_i so far, integers, shape (m,).
        max_votes: N_i, integers, shape (m,).

    Raises:
        ValueError: an argument is not what it says above; the message names it.
    """
    votes, missing, limits = _tally(votes_for, votes_cast, max_votes)
    accepts = _accepting(log_r0, uniform, limits)
    if accepts(votes):
        return Verdict.ACCEPT
    return Verdict.UNDECIDED if accepts(map(add, votes, missing)) else Verdict.REJECT


def askable(
    log_r0: float,
    uniform: float,
    votes_for: npt.ArrayLike,
    votes_cast: npt.ArrayLike,
    promised: npt.ArrayLike,
    max_votes: npt.ArrayLike,
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
        ValueError: as `verdict`; also when votes_cast + promised exceeds max_votes.
    """
    votes, missing, limits = _tally(votes_for, votes_cast, max_votes)
    out = _whole("promised", promised, missing, "the votes still to cast")
    accepts, best = _accepting(log_r0, uniform, limits), list(map(add, votes, missing))

    def is_open_after(asked: int, last: int) -> bool:
        """True when all that is promised and one vote of `asked` but the last of them leave the verdict open."""
        others = [count + (judge == asked) - (judge == last) for judge, count in enumerate(out)]
        return not accepts(map(add, votes, others)) and accepts(map(sub, best, others))

    may_be_last = [judge for judge, count in enumerate(out) if count]
    return tuple(
        out[judge] < missing[judge] and all(is_open_after(judge, last) for last in (judge, *may_be_last))
        for judge in range(len(limits))
    )


def _tally(votes_for: object, votes_cast: object, max_votes: object) -> tuple[Counts, Counts, Counts]:
    """Return K_i, N_i - n_i and N_i, once they are what they should be."""
    limits = (
        max_votes
        if _are_whole(max_votes) and min(max_votes) >= 1
        else _vector("max_votes", _max_votes(max_votes)).tolist()
    )
    cast = _whole("votes_cast", votes_cast, limits, "max_votes")
    return _whole("votes_for", votes_for, cast, "votes_cast"), list(map(sub, limits, cast)), limits


def _whole(name: str, values: object, at_most: Counts, bound: str) -> Counts:
    """Return counts, one for each judge, once they are from 0 to what they may be at most."""
    if _are_whole(values) and len(values) == len(at_most) and min(values) >= 0 and all(map(le, values, at_most)):
        return values
    counts: list[int] = _vector(name, _counts(name, values, np.array(at_most), bound)).tolist()
    return counts


def _are_whole(values: object) -> TypeGuard[Counts]:
    """True for Python's whole numbers, as campaigns have them: there is nothing to convert."""
    return isinstance(values, tuple | list) and set(map(type, values)) == {int} and max(values) <= _LARGEST_BUDGET


def _accepting(log_r0: float, uniform: float, limits: Counts) -> Callable[[Iterable[int]], bool]:
    """Return what says of a full tally whether U < A.

    The operations are those of `accepted`, in their order, so that all bits are the same. For few votes they take no
    arrays, whose making would cost more. The minimum with 1 is left out: it changes no comparison with U < 1.
    """
    if not (isinstance(log_r0, float) and log_r0 < math.inf) and _log_ratio(log_r0).ndim:
        raise ValueError(f"log_r0 must be a single number, not of shape {np.shape(log_r0)}")
    ratio, threshold = float(log_r0), float(uniform)
    if not 0.0 <= threshold < 1.0:
        raise ValueError(f"uniform must lie in [0, 1), not {threshold}")
    if abs(ratio) > EXP_IS_SAFE or not _is_plain(len(limits), max(limits)):
        most = np.array(limits)
        return lambda votes: bool(threshold < accepted(np.array(ratio), np.array(list(votes)), most))
    # NumPy's exponential: the last bit of Python's may differ.
    r0 = float(np.exp(ratio))
    return lambda votes: threshold < r0 * math.prod(k / (n - k + 1) for k, n in zip(votes, limits, strict=True))


def _log_ratio(log_r0: npt.ArrayLike) -> FloatArray:
    ratio = np.asarray(log_r0, dtype=np.float64)
    # Minus infinity is a proposal outside the support of p0; plus infinity would mean the chain stands there.
    if np.any(np.isnan(ratio)) or np.any(np.isposinf(ratio)):
        raise ValueError("log_r0 must be a number below infinity, not NaN")
    return ratio


def _integers(name: str, values: Any) -> IntArray:
    array = np.atleast_1d(np.asarray(values))
    is_whole = array.dtype.kind in "iu" or (
        array.dtype.kind == "f" and np.all(np.isfinite(array)) and np.all(array == np.floor(array))
    )
    if not is_whole or np.any(array > _LARGEST_BUDGET):
        raise ValueError(f"{name} must be whole numbers of at most 2^62")
    return array.astype(np.int64)


def _max_votes(max_votes: Any) -> IntArray:
    limits = _integers("max_votes", max_votes)
    if limits.shape[-1] < 1:
        raise ValueError("max_votes must name at least one judge")
    if np.any(limits < 1):
        raise ValueError("max_votes must be at least 1")
    return limits


def _vector(name: str, values: IntArray) -> IntArray:
    if values.ndim != 1:
        raise ValueError(f"{name} must be one vector of length m, not of shape {values.shape}")
    return values


def _counts(name: str, values: Any, at_most: IntArray, bound: str) -> IntArray:
    counts = _integers(name, values)
    if counts.shape[-1] != at_most.shape[-1]:
        raise ValueError(f"{name} has {counts.shape[-1]} judges, {bound} has {at_most.shape[-1]}")
    if np.any(counts < 0):
        raise ValueError(f"{name} must not be negative")
    if np.any(counts > at_most):
        raise ValueError(f"{name} must not exceed {bound}")
    return counts


# Inside this range exp(log_r0) neither overflows nor loses digits to underflow.
EXP_IS_SAFE: Final = 700.0
# Products of factors are plain doubles as long as they surely lie between 2^-1000 and 2^1000.
_PLAIN_BITS: Final = 1000


def accepted(ratio: FloatArray, votes: IntArray, limits: IntArray) -> FloatArray:
    """Return min(1, r0 prod_i K_i / (N_i - K_i + 1)), shape (...).

    Args:
        ratio: log r0, shape (...).
        votes, limits: K_i and N_i, shape (..., m).
    """
    # One path for all tallies of the same max_votes: the rule must be monotone from one tally to the next.
    if _is_plain(limits.shape[-1], int(limits.max(initial=1))):
        return _accepted_plainly(ratio, np.asarray(np.prod(votes / (limits - votes + 1), axis=-1)))
    with np.errstate(divide="ignore", under="ignore"):
        factors = np.log(votes) - np.log(limits - votes + 1)
        # Rounded once, so that it is monotone in every K_i and keeps its digits where logarithms cancel.
        log = np.apply_along_axis(math.fsum, -1, factors)
        return np.asarray(np.exp(np.minimum(0.0, ratio + log)))


def _is_plain(judges: int, most: int) -> bool:
    return judges * most.bit_length() <= _PLAIN_BITS


def _accepted_plainly(ratio: FloatArray, factor: FloatArray) -> FloatArray:
    # Where the product overflows the answer is 1; where it underflows there is no nearer double than 0.
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        plain = np.exp(np.clip(ratio, -EXP_IS_SAFE, EXP_IS_SAFE)) * factor
        logarithmic = np.exp(np.minimum(0.0, ratio + np.log(factor)))
    return np.where(np.abs(ratio) <= EXP_IS_SAFE, np.minimum(1.0, plain), logarithmic)


# With so many votes in all, no term of the distribution as it is written overflows or loses digits that matter.
PLAIN_VOTES: Final = 500


def distribution_of_tallies(chance: FloatArray, max_votes: Sequence[int]) -> Callable[[Sequence[int]], FloatArray]:
    """Return the function of a tally K, length m, that gives prod_i P(K_i), shape (...).

    Args:
        chance: p_i in [0, 1], shape (..., m).
        max_votes: N_i, length m.
    """
    if sum(max_votes) <= PLAIN_VOTES:
        limits = np.array(max_votes)

        def as_written(votes: Sequence[int]) -> FloatArray:
            ways = math.prod(math.comb(int(n), int(k)) for n, k in zip(max_votes, votes, strict=True))
            counts = np.array(votes, dtype=np.int64)
            return np.asarray(ways * np.prod(chance**counts * (1 - chance) ** (limits - counts), axis=-1))

        return as_written
    tables = [binomial_distribution(np.arange(n + 1), n, chance[..., i, None]) for i, n in enumerate(max_votes)]
    return lambda votes: np.asarray(math.prod(table[..., k] for table, k in zip(tables, votes, strict=True)))


def binomial_distribution(votes: npt.ArrayLike, limit: int, chance: npt.ArrayLike) -> FloatArray:
    """Return P(K) for one judge; `votes` (0 to N) and `chance` broadcast."""
    # Not with the module: it takes a second, and few come here.
    from scipy.stats import binom

    return np.asarray(binom.pmf(votes, limit, chance))


def judges_last(preference: npt.ArrayLike, max_votes: Sequence[int]) -> FloatArray:
    """Return `preference` as an array whose last axis has one entry for each judge.

    Raises:
        ValueError: it has another length, or an entry outside [0, 1].
    """
    chance = np.atleast_1d(np.asarray(preference, dtype=np.float64))
    if chance.shape[-1] != len(max_votes):
        raise ValueError(f"preference has {chance.shape[-1]} judges, max_votes has {len(max_votes)}")
    if not np.all((chance >= 0) & (chance <= 1)):
        raise ValueError("preference must lie in [0, 1]")
    return chance


def average_over_votes(
    acceptance: Callable[[IntArray], FloatArray | np.float64], preference: npt.ArrayLike, max_votes: tuple[int, ...]
) -> FloatArray:
    """Return the sum over all tallies K of prod_i C(N_i, K_i) p_i^K_i (1 - p_i)^(N_i - K_i) times acceptance(K).

    Args:
        acceptance: takes one tally, shape (m,); returns shape (...).
        preference: p_i, shape (..., m).
        max_votes: N_i, length m.
    """
    chance = judges_last(preference, max_votes)
    distribution = distribution_of_tallies(chance, max_votes)
    mean: FloatArray = np.zeros(chance.shape[:-1])
    for tally in itertools.product(*(range(limit + 1) for limit in max_votes)):
        mean = mean + distribution(tally) * acceptance(np.array(tally, dtype=np.int64))
    return mean


_MAX_TERMS: Final = 10_000
# Outcomes times pairs held at once, 8 bytes each.
_MAX_OUTCOMES: Final = 10_000_000


def mean_acceptance(ratio: FloatArray, chances: FloatArray, limits: IntArray) -> FloatArray:
    """Return the mean of min(1, r0 prod_i K_i / (N_i - K_i + 1)), shape (...).

    Args:
        ratio: log r0, shape (...).
        chances: p_i, shape (..., m).
        limits: N_i, shape (m,).

    Raises:
        ValueError: the judges have too many different outcomes together.
    """
    max_votes = tuple(int(limit) for limit in limits)
    if sum(max_votes) <= PLAIN_VOTES and math.prod(limit + 1 for limit in max_votes) <= _MAX_TERMS:
        return average_over_votes(lambda votes: accepted(ratio, votes, limits), chances, max_votes)
    outcomes = {Fraction(1): np.ones(chances.shape[:-1])}
    for judge in sorted(range(len(max_votes)), key=max_votes.__getitem__):
        outcomes = _joined(outcomes, max_votes[judge], chances[..., judge])
    mean: FloatArray = np.zeros(np.broadcast_shapes(ratio.shape, chances.shape[:-1]))
    for value, chance in outcomes.items():
        scale = ratio + (math.log(value.numerator) - math.log(value.denominator))
        mean = mean + chance * np.exp(np.minimum(0.0, scale))
    return mean


def _joined(outcomes: dict[Fraction, FloatArray], limit: int, chance: FloatArray) -> dict[Fraction, FloatArray]:
    """Return the outcomes with one more judge. K = 0 is left out: its acceptance is 0."""
    found: dict[Fraction, FloatArray] = {}
    distribution = binomial_distribution(np.arange(1, limit + 1), limit, chance[..., None])
    for (value, so_far), votes in itertools.product(outcomes.items(), range(1, limit + 1)):
        product = value * Fraction(votes, limit - votes + 1)
        found[product] = found.get(product, 0.0) + so_far * distribution[..., votes - 1]
        if len(found) * max(1, chance.size) > _MAX_OUTCOMES:
            raise ValueError("max_votes leaves too many different outcomes to average over")
    return found
