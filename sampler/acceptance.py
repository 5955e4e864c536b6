"""The N-vote acceptance rule and the bounds that let voting stop early.

Notation follows "When Metropolis and Hastings Meet Bradley and Terry" (the paper): judge i casts N_i votes, K_i of them
for the proposal x'; log r0 is the log of the base ratio p0(x') q(x|x') / (p0(x) q(x'|x)).

Every function takes one entry per judge, m in all, as its last axis. A judge's factor K / (N - K + 1) is computed with
one division and the factors with one product, so the rule is monotone in every K_i in floating point too: a verdict
reached early is, bit for bit, the verdict all N votes would give. Any number of judges and any N up to 2^62 will do.

The product of the factors, prod_i K_i / (N_i - K_i + 1). A factor lies between 1 / N and N, so that the product of many
leaves the range of doubles. Then it is kept as a double with an exponent of its own. Both the plain product and this
one multiply in the order of the judges and round each time to 53 bits; so they are equal bit for bit wherever the plain
one neither overflows nor underflows, and both are monotone in every K_i.

Early verdicts for small budgets, from a table and without arrays. The product does not depend on r0, and budgets never
change within a campaign. So the products of one campaign are one table, and each bound of a verdict is one number from
it times r0. Divisions, products and the exponential are those of `accepted`, in the same order, so that all bits are
the same. The minimum with 1 is left out: it changes no comparison with U < 1. There is no table where `accepted` takes
logarithms, or where budgets have more than `MOST_TALLIES`.

The law of K votes out of N, each for the proposal with probability p. C(N, K) p^K (1 - p)^(N - K) as it is written
overflows from N = 1,030 on. Loader's form does not, and loses no digits in the difference of large logarithms: C.
Loader, "Fast and accurate computation of binomial probabilities" (2000),

    log P(K) = d(N) - d(K) - d(N - K) - D(K, N p) - D(N - K, N (1 - p)) + log(N / (2 pi K (N - K))) / 2

with d(n) = log n! minus Stirling's formula and D(x, m) = x log(x / m) + m - x.

The acceptance averaged over K_i ~ Binomial(N_i, p_i). A few small judges: one term for each of the prod_i (N_i + 1)
tallies. Otherwise judge after judge, smallest budget first: all tallies whose factors have the same product, a rational
number, are one outcome, whose chance is the sum of theirs. 150 judges with N = 1 have two outcomes, not 2^150. The last
judge needs no sum, since

    K / (N - K + 1) P(K) = p / (1 - p) P(K - 1)    for K ~ Binomial(N, p),

so that the mean of min(1, c K / (N - K + 1)) is two tails of the law: c p / (1 - p) P(K < k) + P(K > k) with k the
largest K for which c K / (N - K + 1) is at most 1.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from operator import mul
from typing import Final, NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt

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


# Inside this range exp(log_r0) neither overflows nor loses digits to underflow.
EXP_IS_SAFE: Final = 700.0
# Products of factors are plain doubles as long as they surely lie between 2^-1000 and 2^1000.
_PLAIN_BITS: Final = 1000
# Of doubles that keep all their digits, with a mantissa in [1/2, 1).
_LEAST_EXPONENT: Final = -1021
_LARGEST_EXPONENT: Final = 1024
# log 2 in two parts: the first has so few bits that its product with any exponent is exact.
_LOG_2_HIGH: Final = 0.693147180369123816490
_LOG_2_LOW: Final = 1.90821492927058770002e-10


def accepted(ratio: FloatArray, votes: IntArray, limits: IntArray) -> FloatArray:
    """Return min(1, r0 prod_i K_i / (N_i - K_i + 1)), shape (...).

    Args:
        ratio: log r0, shape (...).
        votes, limits: K_i and N_i, shape (..., m).
    """
    # One path for all tallies of the same budgets: the rule must be monotone from one tally to the next.
    if limits.shape[-1] * int(limits.max(initial=1)).bit_length() <= _PLAIN_BITS:
        return _accepted_plainly(ratio, product_of_factors(votes, limits))
    return _accepted_scaled(ratio, *_scaled_product(votes / (limits - votes + 1)))


def product_of_factors(votes: IntArray, limits: IntArray) -> FloatArray:
    """Return prod_i K_i / (N_i - K_i + 1) as a double, shape (...); K_i and N_i of shape (..., m)."""
    return np.asarray(np.prod(votes / (limits - votes + 1), axis=-1))


def _scaled_product(factors: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the product over the last axis: a mantissa in [1/2, 1), or 0, and an exponent of 2."""
    mantissa: FloatArray = np.ones(factors.shape[:-1])
    exponent: IntArray = np.zeros(factors.shape[:-1], dtype=np.int64)
    for judge in range(factors.shape[-1]):
        mantissa, shift = np.frexp(mantissa * factors[..., judge])
        exponent = exponent + shift
    return mantissa, exponent


def _accepted_plainly(ratio: FloatArray, factor: FloatArray) -> FloatArray:
    # Where the product overflows the answer is 1; where it underflows there is no nearer double than 0.
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        plain = np.exp(np.clip(ratio, -EXP_IS_SAFE, EXP_IS_SAFE)) * factor
        logarithmic = np.exp(np.minimum(0.0, ratio + np.log(factor)))
    return np.where(np.abs(ratio) <= EXP_IS_SAFE, np.minimum(1.0, plain), logarithmic)


def _accepted_scaled(ratio: FloatArray, mantissa: FloatArray, exponent: IntArray) -> FloatArray:
    base, shift = np.frexp(np.exp(np.clip(ratio, -EXP_IS_SAFE, EXP_IS_SAFE)))
    product, carry = np.frexp(base * mantissa)
    # Beyond these exponents the answer is 1, or 0, whatever the mantissa.
    power = np.clip(exponent + shift + carry, -2000, 2)
    with np.errstate(under="ignore"):
        plain = np.minimum(1.0, np.ldexp(product, power.astype(np.int32)))
    return np.where(np.abs(ratio) <= EXP_IS_SAFE, plain, _accepted_by_logarithms(ratio, mantissa, exponent))


def _accepted_by_logarithms(ratio: FloatArray, mantissa: FloatArray, exponent: IntArray) -> FloatArray:
    with np.errstate(divide="ignore", under="ignore"):
        is_double = (mantissa == 0) | ((exponent >= _LEAST_EXPONENT) & (exponent <= _LARGEST_EXPONENT))
        double = np.ldexp(mantissa, np.where(is_double, exponent, 0).astype(np.int32))
        log = np.where(is_double, ratio + np.log(double), 0.0)
        # The large parts first: they may cancel, and what is left keeps its digits.
        rest = exponent * _LOG_2_LOW + np.log(mantissa)
        log = np.where(is_double, log, (ratio + exponent * _LOG_2_HIGH) + rest)
        return np.asarray(np.exp(np.minimum(0.0, log)))


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
        """Return what `askable` returns; None if `promised` may be wrong.

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
    """Return the bounds of `verdict`; None if there is no table, or an argument may be wrong."""
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
    # NumPy's exponential, as in `accepted`: the last bit of Python's may differ.
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


_MOST_TERMS: Final = 10_000
# Outcomes times pairs held at once, 8 bytes each.
_MOST_OUTCOMES: Final = 10_000_000


def mean_acceptance(ratio: FloatArray, chances: FloatArray, limits: IntArray) -> FloatArray:
    """Return the mean of min(1, r0 prod_i K_i / (N_i - K_i + 1)), shape (...).

    Args:
        ratio: log r0, shape (...).
        chances: p_i, shape (..., m).
        limits: N_i, shape (m,).

    Raises:
        ValueError: the judges have too many different outcomes together.
    """
    budgets = tuple(int(limit) for limit in limits)
    if sum(budgets) <= PLAIN_VOTES and math.prod(budget + 1 for budget in budgets) <= _MOST_TERMS:
        return _term_by_term(ratio, chances, limits)
    order = sorted(range(len(budgets)), key=budgets.__getitem__)
    outcomes = {Fraction(1): np.ones(chances.shape[:-1])}
    for judge in order[:-1]:
        outcomes = _joined(outcomes, budgets[judge], chances[..., judge])
    mean: FloatArray = np.zeros(np.broadcast_shapes(ratio.shape, chances.shape[:-1]))
    for value, chance in outcomes.items():
        scale = ratio + (math.log(value.numerator) - math.log(value.denominator))
        mean = mean + chance * _of_one_judge(scale, chances[..., order[-1]], budgets[order[-1]])
    return mean


def _term_by_term(ratio: FloatArray, chances: FloatArray, limits: IntArray) -> FloatArray:
    law = law_of_tallies(chances, limits.tolist())
    mean: FloatArray = np.zeros(np.broadcast_shapes(ratio.shape, chances.shape[:-1]))
    for tally in itertools.product(*(range(int(limit) + 1) for limit in limits)):
        votes = np.array(tally, dtype=np.int64)
        mean = mean + law(tally) * accepted(ratio, votes, limits)
    return mean


def _joined(outcomes: dict[Fraction, FloatArray], budget: int, chance: FloatArray) -> dict[Fraction, FloatArray]:
    """Return the outcomes with one more judge. K = 0 is left out: its acceptance is 0."""
    found: dict[Fraction, FloatArray] = {}
    law = binomial_law(np.arange(1, budget + 1), budget, chance[..., None])
    for (value, so_far), votes in itertools.product(outcomes.items(), range(1, budget + 1)):
        product = value * Fraction(votes, budget - votes + 1)
        found[product] = found.get(product, 0.0) + so_far * law[..., votes - 1]
        if len(found) * max(1, chance.size) > _MOST_OUTCOMES:
            raise ValueError("budgets leave too many different outcomes to average over")
    return found


def _of_one_judge(log_scale: FloatArray, chance: FloatArray, budget: int) -> FloatArray:
    """Return the mean of min(1, c K / (N - K + 1)) over K ~ Binomial(N, p), log c = `log_scale`."""
    # Not with the module: SciPy takes a quarter of a second, and most commands never come here.
    from scipy import special

    scale, chances = np.broadcast_arrays(log_scale, chance)
    c = np.exp(np.clip(scale, -EXP_IS_SAFE, EXP_IS_SAFE))
    most = np.floor(np.clip((budget + 1) / (1 + c), 0, budget))
    # P(K < k) and P(K > k) as incomplete beta functions; the clips are where there is no such K.
    below = np.where(most > 0, special.betainc(budget - most + 1, np.maximum(most, 1), 1 - chances), 0.0)
    above = np.where(most < budget, special.betainc(most + 1, np.maximum(budget - most, 1), chances), 0.0)
    with np.errstate(divide="ignore", under="ignore"):
        log_odds = np.log(chances) - np.log1p(-np.where(chances < 1, chances, 0.0))
        tilted = np.exp(np.where(most > 0, np.minimum(scale + log_odds, EXP_IS_SAFE), -np.inf))
        always = np.exp(np.minimum(0.0, scale + math.log(budget)))
    return np.where(chances < 1, tilted * below + above, always)
