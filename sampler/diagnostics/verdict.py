"""How much of the target distribution each object has, with an interval; and one verdict on whether the chains have
forgotten where they began, and what to do about it.

Chains are independent of each other, and the steps of one are not. So with four chains or more the interval of a share
comes from how the chains differ: Student's t for a ratio of sums (Cochran, "Sampling Techniques", 1977, section 6.3).
With fewer it comes from the Monte Carlo standard error, with the effective number of draws of the object's indicator.
Both are taken on the logit scale, on which a share near 0 or 1 has room.

The limits of the verdict are those of Vehtari, Gelman, Simpson, Carpenter and Bürkner, "Rank-normalization, folding,
and localization" (Bayesian Analysis 16, 2021): rank-normalised R-hat at most 1.01, or what chance explains, and at
least 400 effective draws of the bulk and of the tails, over at least four chains. No statistic can show that chains
have converged, only that they have not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sampler.diagnostics.chains import Convergence, bulk_ess, by_target, percent

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

LEVEL = 0.9
MIN_CHAINS = 4
"""Of a target, for an interval from how its chains differ."""
# Of so many objects, those that are visited most, the indicators say how many draws are independent.
MOST_VISITED = 5
# Of so many objects, those that are visited most, the effective draws are computed one by one: that takes a while.
_ONE_BY_ONE = 200


@dataclass(frozen=True)
class ChainPath:
    """At which object one chain was after each step of the sampling phase.

    Args:
        target: what tells the distribution that it samples from those of other chains, such as a prompt.
        first: the number of the first of these steps.
        objects: numbers of objects, shape (T,), at least one.
    """

    target: str
    first: int
    objects: IntArray


@dataclass(frozen=True)
class Share:
    """An object's share of the steps of one target's chains, from 0 to 1.

    Args:
        steps: after how many of them a chain was at the object.
        low, high: of the interval at `LEVEL`; for an object that no chain was at, `high` is an upper bound at the same
            error on that side.
        first_step, last_step: the first and the last step after which a chain was there; None of none.
    """

    target: str
    object: int
    steps: int
    share: float
    low: float
    high: float
    first_step: int | None
    last_step: int | None

    @property
    def percent(self) -> str:
        """The share in words."""
        return percent(self.share)

    @property
    def interval(self) -> str:
        """The interval in words."""
        return f"{percent(self.low)} to {percent(self.high)}"


def shares(chains: Sequence[ChainPath], listed: Iterable[int] = ()) -> list[Share]:
    """Return the share of each object, by target and from the largest to the smallest.

    Args:
        listed: further objects that could have been visited, such as those of an uploaded list.
    """
    listed = list(listed)
    found: list[Share] = []
    for target in dict.fromkeys(each.target for each in chains):
        found += _of_target([each for each in chains if each.target == target], listed)
    return found


def independent_draws(chains: Sequence[ChainPath]) -> float:
    """Return how many independent draws the chains of one target are worth: the smallest effective sample size of the
    indicators of the objects that are visited most. Of chains that never move, one each.
    """
    return min(_effective_draws(chains, number) for number in _most_visited(chains))


def _most_visited(chains: Sequence[ChainPath]) -> IntArray:
    numbers, steps = np.unique(np.concatenate([each.objects for each in chains]), return_counts=True)
    return np.asarray(numbers[np.argsort(-steps, kind="stable")][:MOST_VISITED])


def _effective_draws(chains: Sequence[ChainPath], number: int) -> float:
    try:
        return bulk_ess([each.objects == number for each in chains])
    except ValueError:
        # Too few draws, or all of them at the object.
        return float(len(chains))


def _of_target(chains: Sequence[ChainPath], listed: list[int]) -> list[Share]:
    lengths = np.array([len(each.objects) for each in chains], dtype=np.float64)
    visits = _visits(chains)
    draws = independent_draws(chains)
    bound = 1 - ((1 - LEVEL) / 2) ** (1 / draws)
    found = []
    in_order = sorted(visits.items(), key=lambda item: -item[1][0].sum())
    for rank, (number, (steps, first, last)) in enumerate(in_order):
        share = float(steps.sum() / lengths.sum())
        if share == 1:
            low, high = 1 - bound, 1.0
        elif len(chains) >= MIN_CHAINS and (error := _between(steps, lengths, share)):
            low, high = _on_the_logit_scale(share, error, freedom=max(1.0, 1 / _concentration(lengths) - 1))
        else:
            effective = _effective_draws(chains, number) if rank < _ONE_BY_ONE else draws
            error = math.sqrt(share * (1 - share) / effective)
            low, high = _on_the_logit_scale(share, error, freedom=math.inf)
        found.append(Share(chains[0].target, number, int(steps.sum()), share, low, high, first, last))
    found += [
        Share(chains[0].target, number, 0, 0.0, 0.0, bound, None, None) for number in listed if number not in visits
    ]
    return sorted(found, key=lambda each: (-each.steps, each.object))


def _visits(chains: Sequence[ChainPath]) -> dict[int, tuple[FloatArray, int, int]]:
    """Return of each object how many steps each chain was there, shape (C,), and the first and last of these steps."""
    found: dict[int, tuple[FloatArray, int, int]] = {}
    for index, chain in enumerate(chains):
        numbers, first, steps = np.unique(chain.objects, return_index=True, return_counts=True)
        last = len(chain.objects) - 1 - np.unique(chain.objects[::-1], return_index=True)[1]
        for number, begins, ends, count in zip(*(each.tolist() for each in (numbers, first, last, steps)), strict=True):
            counts, earliest, latest = found.get(number, (np.zeros(len(chains)), begins + chain.first, 0))
            counts[index] = count
            found[number] = counts, min(earliest, begins + chain.first), max(latest, ends + chain.first)
    return found


def _between(steps: FloatArray, lengths: FloatArray, share: float) -> float:
    """Return the standard error of a ratio of sums over chains, each a cluster."""
    squares = float(((steps - share * lengths) ** 2).sum())
    return math.sqrt(squares / (1 - _concentration(lengths))) / float(lengths.sum())


def _concentration(lengths: FloatArray) -> float:
    """Return one over the number of chains of one length that would be worth as much: short ones count for little."""
    return float((lengths**2).sum() / lengths.sum() ** 2)


def _on_the_logit_scale(share: float, error: float, freedom: float) -> tuple[float, float]:
    from scipy.special import expit, logit, ndtri, stdtrit

    tail = (1 + LEVEL) / 2
    quantile = ndtri(tail) if math.isinf(freedom) else stdtrit(freedom, tail)
    reach = quantile * error / (share * (1 - share))
    return float(expit(logit(share) - reach)), float(expit(logit(share) + reach))


MAX_R_HAT, MIN_EFFECTIVE = 1.01, 400
DISAGREE = "chains disagree"
TOO_FEW = "too few independent draws yet"
NO_SIGN = "no sign against convergence"
NOT_JUDGED = "cannot be judged"

# Of fewer, half chains have so few draws that chance alone makes R-hat large, or infinite.
_MIN_STEPS = 20
# How often chains of one distribution are said to disagree: many short ones come to an R-hat above 1.01 by chance.
_FALSE_ALARMS = 0.01
# With fewer, nobody can tell how many votes are missing.
_MIN_TO_FORESEE = 50
# An effective sample size is itself an estimate: how far the number of votes may lie from it, in each direction.
_WITHIN = 0.7, 1.6


@dataclass(frozen=True)
class ConvergenceVerdict:
    """What the chains of a campaign look like.

    Args:
        is_that: one of the four phrases above.
        because: why, in a sentence.
        r_hat, bulk_ess, tail_ess: the worst of all targets and quantities; None where there is none.
        judged_by: the quantities that were compared.
        more_votes: from how many further votes to how many would be enough; None where that cannot be told.
    """

    is_that: str
    because: str
    r_hat: float | None = None
    bulk_ess: float | None = None
    tail_ess: float | None = None
    judged_by: tuple[str, ...] = ()
    more_votes: tuple[int, int] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can say it; an R-hat that is infinite is none there."""
        r_hat = self.r_hat if self.r_hat is None or math.isfinite(self.r_hat) else None
        said = {"verdict": self.is_that, "because": self.because, "advice": self.advice}
        return said | {"r_hat": r_hat, "bulk_ess": self.bulk_ess, "tail_ess": self.tail_ess}

    @property
    def advice(self) -> str:
        """What to do, in a sentence; empty where nothing is to be done."""
        if self.is_that == DISAGREE:
            return (
                "More votes may bring them together: let the campaign run on, or extend it. In the next one, let the "
                "chains walk farther between two questions."
            )
        if self.is_that != TOO_FEW:
            return ""
        if self.more_votes is None:
            return "More votes are needed; how many cannot be told yet. Let the campaign run on, or extend it."
        low, high = self.more_votes
        needed = f"{low:,} to {high:,} more votes are" if low < high else "one more vote is"
        return f"About {needed} needed: let the campaign run on, or extend it."


def verdict_on(
    chains: Sequence[ChainPath], quantities: Mapping[str, Sequence[npt.ArrayLike]], votes: int, why_not: str = ""
) -> ConvergenceVerdict:
    """Return the verdict on some chains.

    Args:
        quantities: by its name, a number after each step of each chain, shape (T_c,) each, in the order of the chains.
            Those that never change are passed over.
        votes: how many the steps of these chains took.
        why_not: why there are no quantities, where there are none.
    """
    if reason := why_not or _too_short(chains):
        return ConvergenceVerdict(NOT_JUDGED, reason)
    moving = {name: draws for name, draws in quantities.items() if np.ptp(np.concatenate([*map(np.asarray, draws)]))}
    if not moving:
        return ConvergenceVerdict(NOT_JUDGED, "The chains have not moved.")
    targets = [each.target for each in chains]
    measured: dict[str, list[Convergence]] = {}
    still = set(targets)
    for name, draws in moving.items():
        for found in by_target(zip(targets, draws, strict=True)).targets:
            if found.found:
                measured.setdefault(name, []).append(found.found)
                still.discard(found.target)
    if still:
        return ConvergenceVerdict(NOT_JUDGED, f"The chains{_of(min(still))} have not moved.")
    judged = _judged(measured, votes)
    if judged.is_that == NO_SIGN and (why := _unseen(chains, measured)):
        return ConvergenceVerdict(NOT_JUDGED, why)
    return judged


def _unseen(chains: Sequence[ChainPath], measured: Mapping[str, Sequence[Convergence]]) -> str:
    """Return why chains that seem to agree may yet not: few are as long as the longest, or some never moved."""
    compared = [found for several in measured.values() for found in several]
    if (fewest := min(found.chains for found in compared)) < MIN_CHAINS:
        return f"It takes {MIN_CHAINS} chains of about one length; {fewest} have it."
    shortest = min(found.draws for found in compared)
    still = sum(np.ptp(each.objects) == 0 for each in chains if len(each.objects) >= shortest)
    return f"{still} chain{' has' if still == 1 else 's have'} not moved." if still else ""


def indicators(chains: Sequence[ChainPath]) -> dict[str, list[FloatArray]]:
    """Return for each of the objects that are visited most whether a chain was there, as numbers along the chains."""
    return {
        f"at object {number}": [(each.objects == number).astype(float) for each in chains]
        for number in _most_visited(chains)
    }


def _too_short(chains: Sequence[ChainPath]) -> str:
    if not chains:
        return "No step of the sampling phase is decided."
    for target in dict.fromkeys(each.target for each in chains):
        long = sum(len(each.objects) >= _MIN_STEPS for each in chains if each.target == target)
        if long < MIN_CHAINS:
            few = "no chain has" if not long else "one chain has" if long == 1 else f"{long} chains have"
            return f"It takes {MIN_CHAINS} chains{_of(target)} with {_MIN_STEPS} sampling steps each; {few} them."
    return ""


def _of(target: str) -> str:
    return f" of “{target[:60]}”" if target else ""


def _judged(measured: Mapping[str, Sequence[Convergence]], votes: int) -> ConvergenceVerdict:
    every = [(found, name) for name, several in measured.items() for found in several]
    r_hat = max(found.r_hat for found, _ in every)
    # R-hat is the larger one of two.
    tail = _FALSE_ALARMS / (2 * len(every))
    beyond, worst, differs = max(
        (found.r_hat / max(MAX_R_HAT, found.r_hat_by_chance(tail)), found.r_hat, name) for found, name in every
    )
    bulk, tails = (min(getattr(found, size) for found, _ in every) for size in ("bulk_ess", "tail_ess"))
    effective = min(bulk, tails)
    # Rounded down: 399.6 draws are not the 400 that it takes.
    said = f"R-hat is at most {r_hat:.3f}, with {math.floor(effective):,} effective draws or more"
    figures = r_hat, bulk, tails, tuple(measured)
    if beyond > 1:
        named = differs.replace("_", " ")
        # Of what is just above the limit, so many digits that it reads so.
        digits = 3 if round(worst, 3) > MAX_R_HAT else 6
        above = f"is {worst:.{digits}f}, above {MAX_R_HAT} and more than chance explains"
        size = above if math.isfinite(worst) else "is infinite"
        because = f"R-hat of “{named}” {size}: chains have been in different places."
        return ConvergenceVerdict(DISAGREE, because, *figures)
    if effective < MIN_EFFECTIVE:
        because = f"{said}; it takes {MIN_EFFECTIVE}."
        return ConvergenceVerdict(TOO_FEW, because, *figures, _more(effective, votes))
    return ConvergenceVerdict(NO_SIGN, f"{said}.", *figures)


def _more(effective: float, votes: int) -> tuple[int, int] | None:
    if effective < _MIN_TO_FORESEE or not votes:
        return None
    missing = votes * (MIN_EFFECTIVE / effective - 1)
    low, high = (missing * factor for factor in _WITHIN)
    return _rounded(low, math.floor), _rounded(high, math.ceil)


def _rounded(number: float, towards: Callable[[float], int]) -> int:
    """Return a number to one figure."""
    unit = int(10 ** math.floor(math.log10(max(number, 1))))
    return max(1, towards(number / unit)) * unit
