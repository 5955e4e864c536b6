"""Bradley-Terry scores, fitted together with the voters' lean where sides are known, and their intervals."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sampler.diagnostics.choices import Choices
from sampler.diagnostics.clusters import interval
from sampler.diagnostics.comparisons import Comparisons
from sampler.diagnostics.joint_fit import JointFit, NoFit
from sampler.diagnostics.separation import lean_refusal
from sampler.diagnostics.source_lean import SourceLean, is_enough, lean_of_fit

__all__ = ["Difference", "NoFit", "Scores", "bradley_terry_intervals", "bradley_terry_scores"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Difference:
    """By how much one item's score is above another's, in nats, with its interval."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Scores:
    """Scores in nats of log-odds, mean 0, with percentile intervals; all of shape (n,), in the order of `items`.

    The intervals are NaN where there are fewer than 15 clusters: they would be too narrow.
    """

    items: tuple[Hashable, ...]
    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    clusters: int
    draws: FloatArray
    """The scores in each resample, shape (resamples, n); none where clusters are too few."""
    lean: SourceLean | None
    """To the first object, fitted with the scores; None where votes are too few to tell it without a bias."""

    def difference(self, one: Hashable, other: Hashable) -> Difference:
        """Return the score of one item less another's, with its interval.

        Raises:
            ValueError: there is no such item.
        """
        first, second = self.items.index(one), self.items.index(other)
        low, high = interval(self.draws[:, first] - self.draws[:, second], self.clusters, self.level)
        return Difference(float(self.estimate[first] - self.estimate[second]), float(low), float(high))


def bradley_terry_scores(votes: Comparisons | Choices) -> FloatArray:
    """Return the maximum-likelihood scores, nats of log-odds, mean 0, shape (n,).

    Votes may have stopped early: when to stop depends on earlier votes only, so the likelihood is the same. From
    `Choices`, which know the sides, the voters' lean is fitted with the scores; without sides it is taken to be 0.

    Raises:
        NoFit: the win graph is not strongly connected, or the lean cannot be told from the scores.
    """
    return fittable(votes).solve()[:-1]


def bradley_terry_intervals(
    votes: Choices, rng: np.random.Generator, resamples: int = 1_000, level: float = 0.95
) -> Scores:
    """Return scores, fitted with the lean, and percentile intervals from the Bayesian bootstrap over clusters.

    Each resample gives every cluster one Exponential(1) weight, shared by its votes (`cluster_weights`). Votes that
    depend on each other belong in one cluster: resampled one by one, they give intervals that cover far less than
    they say. Below 15 clusters no interval can be trusted, and there is none.

    Raises:
        NoFit: the win graph is not strongly connected, or the lean cannot be told from the scores.
        ValueError: `level` is not between 0 and 1, or there is no resample.
        TypeError: `votes` are `Comparisons`, which do not know what belongs together.
    """
    if not hasattr(votes, "clusters"):
        raise TypeError("votes must be Choices: intervals need to know which votes belong to one cluster")
    model = fittable(votes)
    fitted = model.solve()
    drawn = model.resampled(fitted, rng, resamples)
    low, high = interval(drawn[:, :-1], model.clusters, level)
    lean = lean_of_fit(model, fitted, drawn, level) if is_enough(model) else None
    return Scores(votes.items, fitted[:-1], low, high, level, model.clusters, drawn[:, :-1], lean)


def fittable(votes: Comparisons | Choices) -> JointFit:
    """Return the votes counted for a fit, once it is known to have one.

    Raises:
        NoFit: the win graph is not strongly connected, or the lean cannot be told from the scores.
    """
    if isinstance(votes, Comparisons):
        if reason := votes.refusal():
            raise NoFit(reason)
        return JointFit.of_comparisons(votes)
    if reason := votes.comparisons().refusal() or lean_refusal(votes):
        raise NoFit(reason)
    return JointFit.of_choices(votes)
