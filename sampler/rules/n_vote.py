"""Rules that go by votes: the N-vote rule of the paper, the oracle that it comes near, and the invalid plug-in rule.

The N-vote rule, min(1, r0 prod_i K_i / (N_i - K_i + 1)): equation 8 for one judge, equation 12 for several. Exact for
pi(x) ∝ p0(x) exp(sum_i s_i(x)) with every N_i >= 1, which may differ by judge, and no exact rule on the same votes
accepts more (the paper's optimality theorem). The votes of one pair must be independent.

Oracle MH, min(1, r0 prod_i p_i / (1 - p_i)): equation 7, with the ratio of equation 11 for several judges. Exact for
the same distribution, but it must know each judge's preference p_i: no rule on finitely many votes has this acceptance
probability (the paper's impossibility theorem). It is the limit of the N-vote rule.

The plug-in rule, INVALID: min(1, r0 prod_i K_i / (N_i - K_i)), the odds estimated by the share of votes. Exact for
nothing: its chain has another distribution, by a total-variation distance of 0.52, 0.37 and 0.22 on the paper's
synthetic target with 1, 2 and 4 votes. It is kept as the negative control that every test of exactness must catch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict

from sampler.acceptance import FloatArray, IntArray, acceptance_probability, average_over_votes, marginal_acceptance
from sampler.judges.config import JudgeConfig, panel_errors, unpaired_orders
from sampler.rules.base import RuleDeclared, log_odds


class NVoteConfig(RuleDeclared):
    """Judges compare, and the N-vote rule decides: exact for p0 exp(sum_i s_i)."""

    model_config = ConfigDict(title="People or models vote: exact")

    evidence: ClassVar[str] = "votes"
    """What decides a step."""
    scorers: ClassVar[tuple[str, ...]] = ()
    """Whose numbers decide a step."""
    objects_shown: ClassVar[int] = 2
    kind: Literal["n-vote"] = "n-vote"

    def distribution(self, judges: Sequence[JudgeConfig]) -> str:
        """Return the distribution up to a constant factor, with what its letters stand for."""
        times = Counter((judge.question, judge.voters) for judge in judges)
        terms = [f"s{i}(x)" if count == 1 else f"{count}*s{i}(x)" for i, count in enumerate(times.values(), start=1)]
        names = [f"s{i}: “{question}”, {voters}" for i, (question, voters) in enumerate(times, start=1)]
        return "; ".join([f"p0(x) * exp({' + '.join(terms)})", *names])

    def validation_errors(self, judges: Sequence[JudgeConfig]) -> Iterator[tuple[str, str]]:
        """Yield the field and the reason of what a panel cannot be. Crowds and models can vote, in any order."""
        yield from panel_errors(judges)

    def unbalanced(self, judges: Sequence[JudgeConfig]) -> Iterator[tuple[str, str]]:
        """Yield the field and the reason of each judge of one order that has no other to make an order pair."""
        for index, field, message in unpaired_orders(judges):
            yield f"judges.{index}.{field}", message


@dataclass(frozen=True)
class FiniteVotesRule:
    """What rules on finitely many votes have in common.

    Args:
        max_votes: N_i, length m.

    Raises:
        ValueError: max_votes are not whole numbers of at least 1.
    """

    max_votes: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_votes", checked_max_votes(self.max_votes))


class NVote(FiniteVotesRule):
    """The rule a campaign follows.

    Args:
        max_votes: N_i, length m.
    """

    name: ClassVar[str] = "n_vote"

    def acceptance(self, log_r0: npt.ArrayLike, votes_for: npt.ArrayLike) -> FloatArray:
        """Return min(1, r0 prod_i K_i / (N_i - K_i + 1)); K_i of shape (..., m)."""
        return np.asarray(acceptance_probability(log_r0, votes_for, self.max_votes))

    def mean_acceptance(self, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Return the average over K_i ~ Binomial(N_i, p_i), the paper's alpha-bar; p_i of shape (..., m)."""
        return np.asarray(marginal_acceptance(log_r0, preference, self.max_votes))


@dataclass(frozen=True)
class Oracle:
    """The rule of Metropolis and Hastings with the odds known."""

    name: ClassVar[str] = "oracle"

    def acceptance(self, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Return min(1, r0 prod_i p_i / (1 - p_i)); p_i of shape (..., m). A p_i of 0 rejects."""
        gaps = log_odds(np.atleast_1d(np.asarray(preference, dtype=np.float64)))
        ratio = np.asarray(log_r0, dtype=np.float64)
        impossible = np.any(np.isneginf(gaps), axis=-1) | np.isneginf(ratio)
        total = np.sum(np.where(np.isneginf(gaps), 0.0, gaps), axis=-1) + np.where(impossible, 0.0, ratio)
        return np.where(impossible, 0.0, np.exp(np.minimum(0.0, total)))

    def mean_acceptance(self, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Return the acceptance probability: there is no vote to average over."""
        return self.acceptance(log_r0, preference)


class InvalidPlugIn(FiniteVotesRule):
    """A wrong rule. A judge without a vote for x' rejects; else a judge with no vote against accepts.

    Args:
        max_votes: N_i, length m.
    """

    name: ClassVar[str] = "invalid_plug_in"

    def acceptance(self, log_r0: npt.ArrayLike, votes_for: npt.ArrayLike) -> FloatArray:
        """Return min(1, r0 prod_i K_i / (N_i - K_i)); K_i of shape (..., m)."""
        votes: IntArray = np.atleast_1d(np.asarray(votes_for))
        ratio = np.asarray(log_r0, dtype=np.float64)
        impossible = np.any(votes == 0, axis=-1) | np.isneginf(ratio)
        with np.errstate(divide="ignore"):
            gaps = np.log(np.maximum(votes, 1)) - np.log(np.array(self.max_votes) - votes)
        total = np.sum(gaps, axis=-1) + np.where(impossible, 0.0, ratio)
        return np.where(impossible, 0.0, np.exp(np.minimum(0.0, total)))

    def mean_acceptance(self, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Return the average over K_i ~ Binomial(N_i, p_i); p_i of shape (..., m)."""
        return average_over_votes(lambda votes: self.acceptance(log_r0, votes), preference, self.max_votes)


def checked_max_votes(max_votes: tuple[int, ...]) -> tuple[int, ...]:
    """Return N_i as plain integers.

    Raises:
        ValueError: there is none, or one is not a whole number of at least 1.
    """
    if not max_votes or any(limit != int(limit) or limit < 1 for limit in max_votes):
        raise ValueError(f"max_votes must be whole numbers of at least 1, one for each judge, not {max_votes}")
    return tuple(int(limit) for limit in max_votes)
