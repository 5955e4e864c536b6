"""How much one population of voters leans to the left side, told apart from what it prefers.

A vote for the left object has log-odds g + b, g its preference and b the lean. Where orders are fixed, as with two
judges of opposite orders, the share of left choices says little about b: the halves differ in g by design. So b is
fitted together with the scores behind g (`joint_fit.py`). Where there are too few votes for that, but the sides were
drawn by chance, each pair of objects that was asked about twice or more says something about b whatever its g.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from sampler.diagnostics.choices import Choices
from sampler.diagnostics.clusters import cluster_weights, interval
from sampler.diagnostics.joint_fit import JointFit, NoFit, joined
from sampler.diagnostics.separation import lean_refusal

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

FEWEST_VOTES_PER_SCORE = 10
"""With fewer, the joint fit's lean is too far from 0, whatever the number of votes (Neyman and Scott, Econometrica 16,
1948): with one score for two votes it is twice what it should be."""


@dataclass(frozen=True)
class SourceLean:
    """The lean b to the left, in nats of log-odds, with its interval; NaN where clusters are too few to trust one."""

    log_odds: float
    low: float
    high: float
    level: float
    votes: int
    """That the estimate rests on."""
    clusters: int
    method: Literal["joint fit", "pairs"]


def source_lean(
    groups: Sequence[Choices],
    rng: np.random.Generator,
    resamples: int = 1_000,
    level: float = 0.95,
    random_sides: Sequence[Choices] = (),
) -> SourceLean:
    """Return the one lean behind the votes of one source, with the percentile interval of the cluster bootstrap.

    One lean for all questions that the source answers; each question has scores of its own. The joint fit uses the
    votes within the parts of each question that have finite scores (`Comparisons.fittable_parts`): in the limit of
    scores that lie ever farther apart the others say nothing about b. Its bias of first order is taken away. Where
    those parts have less than 10 votes for each score, b comes from `random_sides` alone, as half the log of Mantel
    and Haenszel's common odds ratio (JNCI 22, 1959) over pairs of objects within clusters.

    Args:
        groups: the source's votes, one `Choices` for each question.
        resamples: of the bootstrap (`cluster_weights`).
        random_sides: those of these votes whose sides were drawn by chance, vote by vote or as a random half. Only
            then are pairs by themselves enough, however voting stopped.

    Raises:
        NoFit: the votes do not tell the lean; the message gives the reason.
        ValueError: `level` is not between 0 and 1, or there is no resample.
    """
    votes = joined(groups)
    if not votes.votes:
        raise NoFit("there is no vote")
    votes = votes.within(votes.parts())
    model = JointFit.of_choices(votes, votes.parts())
    if votes.votes and is_enough(model):
        if reason := lean_refusal(votes):
            raise NoFit(reason)
        fitted = model.solve()
        return lean_of_fit(model, fitted, model.resampled(fitted, rng, resamples), level)
    if random_sides:
        return _from_pairs(joined(random_sides), rng, resamples, level)
    raise NoFit(
        f"{votes.votes:,} votes between objects that won as well as lost do not tell it from {model.free_scores:,} "
        f"scores; it takes {FEWEST_VOTES_PER_SCORE} votes for each"
    )


def is_enough(model: JointFit) -> bool:
    """True where the fit has votes enough for each score to tell the lean."""
    return model.votes >= FEWEST_VOTES_PER_SCORE * model.free_scores


def lean_of_fit(model: JointFit, fitted: FloatArray, drawn: FloatArray, level: float) -> SourceLean:
    """Return the lean of a fit, its bias taken away.

    Args:
        fitted: what `JointFit.solve` returned, shape (n + 1,).
        drawn: what `JointFit.resampled` returned, shape (resamples, n + 1).
    """
    bias = model.bias_of_lean(fitted)
    low, high = interval(drawn[:, -1] - bias, model.clusters, level)
    log_odds = float(fitted[-1]) - bias
    return SourceLean(log_odds, float(low), float(high), level, model.votes, model.clusters, "joint fit")


def _from_pairs(votes: Choices, rng: np.random.Generator, resamples: int, level: float) -> SourceLean:
    """Mantel and Haenszel's estimate: within a pair, sides are as good as shuffled among the votes, whatever they say.

    So its strength of preference drops out, and so do the rules by which voting stopped, for these look at votes and
    not at sides.
    """
    towards, against, told = _odds_by_cluster(votes)
    if not towards.sum() or not against.sum():
        raise NoFit("no pair of objects was asked about often enough, in both orders and with both answers, to tell it")
    clusters = int(np.count_nonzero(towards + against))
    weights = cluster_weights(len(towards), rng, resamples)
    with np.errstate(divide="ignore"):
        drawn = (np.log(weights @ towards) - np.log(weights @ against)) / 2
    low, high = interval(drawn, clusters, level)
    estimate = float(np.log(towards.sum() / against.sum()) / 2)
    return SourceLean(estimate, float(low), float(high), level, told, clusters, "pairs")


def _odds_by_cluster(votes: Choices) -> tuple[FloatArray, FloatArray, int]:
    """Return the two sums of Mantel and Haenszel's odds ratio by cluster, and how many votes are behind them."""
    first = np.minimum(votes.left, votes.right)
    size = max(1, len(votes.items))
    stratum = (votes.cluster * size + first) * size + np.maximum(votes.left, votes.right)
    strata, at = np.unique(stratum, return_inverse=True)
    # Four counts a stratum: whether its first item stood on the left, and whether it was chosen.
    stood = votes.left == first
    cell = at.reshape(-1) * 4 + 2 * stood + (stood == votes.chose_left)
    counts = np.bincount(cell, minlength=4 * len(strata)).reshape(-1, 4).astype(np.float64)
    right_lost, right_won, left_lost, left_won = counts.T
    total = counts.sum(axis=1)
    towards, against = left_won * right_lost / total, left_lost * right_won / total
    cluster, told = strata // size**2, total[(towards > 0) | (against > 0)].sum()
    size = len(votes.clusters)
    sums = [np.asarray(np.bincount(cluster, each, size), dtype=np.float64) for each in (towards, against)]
    return sums[0], sums[1], int(told)
