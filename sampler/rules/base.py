"""What rules share: the two kinds of them, the verdict by numbers, and what each rule's config says.

A `JudgeRule` goes by what judges say of a pair. Rules on numbers that x and x' were given one at a time accept with
min(1, r0 w(x') / w(x)), in logs, for weights that may be 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel
from scipy.special import logit

from sampler.acceptance import FloatArray, Verdict
from sampler.chain import Comparison, State
from sampler.declared import Declared
from sampler.judges.config import JudgeConfig


class JudgeRule(Protocol):
    """A rule on what m judges say about the pair (x, x').

    Judge i prefers x' with probability p_i; `preference` holds the p_i, shape (..., m), and log r0 has shape (...).
    """

    name: ClassVar[str]

    def mean_acceptance(self, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Return the acceptance probability averaged over the votes, shape (...)."""
        ...


class RuleDeclared(Declared):
    """The base of rules' configs. Each says what depends on it, so that nobody asks which rule it is.

    A rule also has `evidence`, what decides a step: "votes", "ratings", "scores" or "none"; and `distribution(judges)`,
    the distribution which the chains sample, up to a constant factor, with what its letters stand for.
    """

    asks_judges: ClassVar[bool] = True
    """Whether somebody answers questions."""
    objects_shown: ClassVar[int] = 0
    """How many objects a judge sees at a time."""

    def validation_errors(self, judges: Sequence[JudgeConfig]) -> Iterator[tuple[str, str]]:
        """Yield the field and the reason of what judges cannot answer under the rule."""
        yield from ()

    def unbalanced(self, judges: Sequence[JudgeConfig]) -> Iterator[tuple[str, str]]:
        """Yield the field and the reason of each judge whose order leaves no distribution in balance."""
        yield from ()

    def kernel_errors(self, kernel: BaseModel) -> Iterator[tuple[str, str]]:
        """Yield the field and the reason of a kernel that does not go with the rule."""
        yield from ()


class NumberRule(Protocol):
    """A rule on numbers that x and x' were given, each alone."""

    def acceptance(self, log_r0: float, current: Sequence[float], proposal: Sequence[float]) -> float:
        """Return the acceptance probability for the numbers of x and of x'."""
        ...


def tell_by_numbers(
    rule: NumberRule,
    comparison: Comparison[State],
    current: Sequence[float] | None,
    proposal: Sequence[float] | None,
) -> Verdict:
    """Return ACCEPT iff U is below the rule's acceptance; UNDECIDED while numbers are missing (None).

    The second half of a step, what `tell` is to votes: `ask` has kept log r0 and drawn U before. A proposal to stay
    needs no numbers.

    Args:
        current, proposal: of x and of x', by `mean_ratings` or `numbers_of`.
    """
    if comparison.is_identity:
        return Verdict.ACCEPT
    if current is None or proposal is None:
        return Verdict.UNDECIDED
    accepted = comparison.uniform < rule.acceptance(comparison.log_r0, current, proposal)
    return Verdict.ACCEPT if accepted else Verdict.REJECT


def log_odds(preference: npt.ArrayLike) -> FloatArray:
    """Return log(p / (1 - p)), infinite at 0 and 1; any shape.

    Raises:
        ValueError: a preference is outside [0, 1].
    """
    chance = np.asarray(preference, dtype=np.float64)
    # SciPy gives NaN there, without a word.
    if not np.all((chance >= 0) & (chance <= 1)):
        raise ValueError("preference must lie in [0, 1]")
    return np.asarray(logit(chance))


def accept_by_weight(log_r0: npt.ArrayLike, log_current: npt.ArrayLike, log_proposal: npt.ArrayLike) -> FloatArray:
    """Return min(1, r0 exp(log w(x') - log w(x))), elementwise.

    A log weight of minus infinity is a state the target excludes: a chain leaves it with probability 1 (unless r0
    is 0), as Metropolis-Hastings has it for pi(x) = 0, and never enters it from elsewhere.

    Raises:
        ValueError: a log weight is NaN or plus infinity, or log_r0 is NaN.
    """
    ratio, before, after = (np.asarray(each, dtype=np.float64) for each in (log_r0, log_current, log_proposal))
    if any(np.any(np.isnan(each)) for each in (ratio, before, after)):
        raise ValueError("log_r0 and scores must be numbers, not NaN")
    if np.any(np.isposinf(before)) or np.any(np.isposinf(after)):
        raise ValueError("scores must be finite")
    excluded = np.isneginf(before)
    weighted = ratio + (after - np.where(excluded, 0.0, before))
    certain = np.where(np.isneginf(ratio), -np.inf, 0.0)
    return np.asarray(np.exp(np.minimum(0.0, np.where(excluded, certain, weighted))))
