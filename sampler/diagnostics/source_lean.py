"""How much one population of voters leans to the first object, told apart from what it prefers.

A vote for the first object has log-odds g + b, g its preference and b the lean. Where orders are fixed, as with two
judges of opposite orders, the share of first choices says little about b: the halves differ in g by design. So b is
fitted together with the scores behind g (`joint_fit.py`). Where there are too few votes for that, but the sides were
drawn by chance, each pair of objects that was asked about twice or more says something about b whatever its g.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sampler.diagnostics.choices import Choices
from sampler.diagnostics.clusters import cluster_weights, interval
from sampler.diagnostics.joint_fit import JointFit, NoFit, joined
from sampler.diagnostics.separation import lean_refusal

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Numbers held in memory at once.
_CELLS = 4_000_000

FEWEST_VOTES_PER_SCORE = 10
"""With fewer, the joint fit's lean is too far from 0, whatever the number of votes (Neyman and Scott, Econometrica 16,
1948): with one score for two votes it is twice what it should be."""


@dataclass(frozen=True)
class SourceLean:
    """The lean b to the first object, in nats of log-odds, with its interval; NaN where too few clusters."""

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
    and Haenszel's common odds ratio (JNCI 22, 1959) over pairs of objects.

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
    pairs = _PairCounts.of(votes)
    everybody = pairs.log_odds(np.ones((1, pairs.clusters)))
    if not np.isfinite(everybody[0]):
        raise NoFit("no pair of objects was asked about often enough, in both orders and with both answers, to tell it")
    drawn = pairs.log_odds(cluster_weights(pairs.clusters, rng, resamples))
    low, high = interval(drawn, pairs.clusters, level)
    return SourceLean(float(everybody[0]), float(low), float(high), level, pairs.votes, pairs.clusters, "pairs")


@dataclass(frozen=True)
class _PairCounts:
    """Votes on the pairs that say something of the lean, in four tables by pair and cluster, sparse, shape (q, c).

    They differ by where the pair's first item stood and whether it was chosen: second and not, second and chosen,
    first and not, first and chosen.
    """

    tables: tuple[Any, Any, Any, Any]

    @classmethod
    def of(cls, votes: Choices) -> _PairCounts:
        from scipy.sparse import coo_array

        lower = np.minimum(votes.first, votes.second)
        _, pair = np.unique(lower * len(votes.items) + np.maximum(votes.first, votes.second), return_inverse=True)
        pair = pair.reshape(-1)
        stood_first = votes.first == lower
        kind = 2 * stood_first + (stood_first == votes.chose_first)
        counts = np.bincount(4 * pair + kind, minlength=4 * (pair.max(initial=-1) + 1)).reshape(-1, 4)
        # Neither an item that met itself nor one that always stood on one side tells anything here.
        telling = ((counts[:, 3] * counts[:, 0] + counts[:, 2] * counts[:, 1]) > 0)[pair]
        pair, cluster = (np.unique(each[telling], return_inverse=True)[1].reshape(-1) for each in (pair, votes.cluster))
        shape = pair.max(initial=-1) + 1, cluster.max(initial=-1) + 1
        each_kind = (kind[telling] == number for number in range(4))
        tables = [coo_array((these.astype(float), (pair, cluster)), shape=shape).tocsr() for these in each_kind]
        return cls((tables[0], tables[1], tables[2], tables[3]))

    @property
    def clusters(self) -> int:
        return int(self.tables[0].shape[1])

    @property
    def votes(self) -> int:
        return int(sum(table.sum() for table in self.tables))

    def log_odds(self, weights: FloatArray) -> FloatArray:
        """Return half the log of the common odds ratio under weights of clusters, shape (w, c); shape (w,)."""
        found = np.empty(len(weights))
        block = max(1, _CELLS // max(1, self.tables[0].shape[0]))
        for at in range(0, len(weights), block):
            second_lost, second_won, first_lost, first_won = (
                table @ weights[at : at + block].T for table in self.tables
            )
            total = second_lost + second_won + first_lost + first_won
            towards, against = (
                (first_won * second_lost / total).sum(axis=0),
                (first_lost * second_won / total).sum(axis=0),
            )
            with np.errstate(divide="ignore", invalid="ignore"):
                found[at : at + block] = (np.log(towards) - np.log(against)) / 2
        return found
