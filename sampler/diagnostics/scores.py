"""Bradley-Terry scores and one position bias to the first item, fitted together, with their intervals.

The first item is chosen with probability sigma(s_first - s_second + b). When voting stopped does not matter: that
depends on earlier votes only, so the likelihood is the same. It is concave, and SciPy's trust-region Newton method
finds its maximum.

A Bradley-Terry model has a finite fit exactly when the win graph, an arrow from each winner to each loser, is strongly
connected (Ford, "Solution of a ranking problem from binary comparisons", American Mathematical Monthly 64, 1957).
Otherwise some group was never compared with the rest, or never lost to it, and its scores could be moved up for ever.

With a position bias b, a vote for w over l says s_w - s_l + b or s_w - s_l - b is large, as w stood first or second.
The likelihood has no maximum exactly when some direction (u, beta) makes no vote less likely and is no mere shift of
the scores (Albert and Anderson, Biometrika 71, 1984). With beta = 0 these are the votes that are not strongly
connected. With beta = 1 it needs u_l <= u_w + 1 for each vote won standing first and u_l <= u_w - 1 for each won
standing second: difference constraints, which can be met exactly when no cycle of wins has a negative sum, that is when
no cycle has more wins in the second place than in the first. With beta = -1 the places change.

Intervals are of what depends on clusters of votes. A paired difference over items is tested by resampling.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

Vote = tuple[Hashable, Hashable, bool, Hashable]
"""The first item, the second item, whether the first one was chosen, and the cluster."""
_NAMED = 5


@dataclass(frozen=True)
class Choices:
    """The votes of one population of voters on one question; nothing here depends on how items are called.

    Args:
        items: n of them, in order of their first appearance.
        first: indices in `items`, shape (v,), one for each vote.
        second: indices in `items`, shape (v,). Two items that look the same may meet: such a vote says only how its
            voter is biased.
        chose_first: shape (v,).
        clusters: c of them, in order of their first appearance. Votes of one cluster may depend on each other.
        cluster: indices in `clusters`, shape (v,).
    """

    items: tuple[Hashable, ...]
    first: IntArray
    second: IntArray
    chose_first: BoolArray
    clusters: tuple[Hashable, ...]
    cluster: IntArray

    @classmethod
    def of(cls, votes: Iterable[Vote]) -> Choices:
        """Return these votes, each (first item, second item, whether first was chosen, cluster)."""
        item_at: dict[Hashable, int] = {}
        cluster_at: dict[Hashable, int] = {}
        rows = [
            (
                item_at.setdefault(first, len(item_at)),
                item_at.setdefault(second, len(item_at)),
                bool(chose_first),
                cluster_at.setdefault(cluster, len(cluster_at)),
            )
            for first, second, chose_first, cluster in votes
        ]
        table = np.array(rows, dtype=np.int64).reshape(-1, 4)
        return cls(tuple(item_at), table[:, 0], table[:, 1], table[:, 2] == 1, tuple(cluster_at), table[:, 3])

    @property
    def votes(self) -> int:
        """Votes in all."""
        return len(self.first)

    @property
    def winners(self) -> IntArray:
        """The item that each vote chose, shape (v,)."""
        return np.where(self.chose_first, self.first, self.second)

    @property
    def losers(self) -> IntArray:
        """The item that each vote did not choose, shape (v,)."""
        return np.where(self.chose_first, self.second, self.first)

    def parts(self) -> IntArray:
        """Label the items by the part within which their scores have a finite fit, shape (n,)."""
        return self._components("strong")

    def rows(self) -> Iterator[Vote]:
        """Yield the votes."""
        columns = (column.tolist() for column in (self.first, self.second, self.chose_first, self.cluster))
        for first, second, chose_first, cluster in zip(*columns, strict=True):
            yield self.items[first], self.items[second], chose_first, self.clusters[cluster]

    def within(self, parts: IntArray) -> Choices:
        """Return only the votes between items of one part; `parts` labels the items, shape (n,)."""
        return Choices.of(compress(self.rows(), parts[self.first] == parts[self.second]))

    def score_refusal(self) -> str | None:
        """Return why Bradley-Terry scores cannot be fitted, in one sentence; None when they can."""
        if not np.any(self.first != self.second):
            return "there is no vote"
        sizes = np.sort(np.bincount(self._components("weak")))[::-1]
        if len(sizes) > 1:
            shown = ", ".join(map(str, sizes[:_NAMED])) + (", …" if len(sizes) > _NAMED else "")
            return f"{len(sizes)} groups, of {shown} items, were never compared with each other"
        labels = self.parts()
        return self._one_sided(labels) if labels.any() else None

    def bias_refusal(self) -> str | None:
        """Return why a position bias cannot be fitted beside the scores, in one sentence; None when it can.

        Says nothing about the scores: see `score_refusal`.
        """
        to_first, to_second = (not self._has_cycle_against(towards_first=side) for side in (True, False))
        if to_first and to_second:
            return "the votes fit any position bias: what stood where and what was preferred cannot be told apart"
        if to_first or to_second:
            side = "first" if to_first else "second"
            return f"the votes fit a bias to the {side} object without bound: no cycle of preferences speaks against it"
        return None

    def _one_sided(self, labels: IntArray) -> str:
        crossing = labels[self.winners] != labels[self.losers]
        beaten, beating = set(labels[self.losers[crossing]]), set(labels[self.winners[crossing]])
        parts = range(int(labels.max()) + 1)
        perfect = [i for i, label in enumerate(labels) if label not in beaten]
        hopeless = [i for i, label in enumerate(labels) if label not in beating]
        tops, bottoms = sum(part not in beaten for part in parts), sum(part not in beating for part in parts)
        # One group on top or at the bottom has a name; several are counted.
        top = "" if tops == 1 else f"{tops} groups of items, "
        bottom = "" if bottoms == 1 else f"{bottoms} groups of items, "
        return (
            f"{top}{self._names(perfect)}, never lost to any other; {bottom}{self._names(hopeless)}, never won over any"
        )

    def _names(self, indices: list[int]) -> str:
        shown = ", ".join(str(self.items[i])[:60] for i in indices[:_NAMED])
        more = f" and {len(indices) - _NAMED} more" if len(indices) > _NAMED else ""
        return ("item " if len(indices) == 1 else f"{len(indices)} items (") + shown + more + ")" * (len(indices) > 1)

    def _components(self, connection: str) -> IntArray:
        from scipy.sparse.csgraph import connected_components

        graph = _graph(self.winners, self.losers, np.ones(self.votes), len(self.items))
        labels: IntArray = connected_components(graph, directed=True, connection=connection)[1].astype(np.int64)
        return labels

    def _has_cycle_against(self, *, towards_first: bool) -> bool:
        """Tell whether some cycle of wins has more wins on the other side than on the one that is favoured."""
        from scipy.sparse.csgraph import NegativeCycleError, bellman_ford

        size = len(self.items)
        length = np.where(self.chose_first == towards_first, 1, -1)
        # Of the votes for one item over another, one against the position bias is all that matters.
        edges, at = np.unique(self.winners * (size + 1) + self.losers, return_inverse=True)
        shortest = np.full(len(edges), 1)
        np.minimum.at(shortest, at.reshape(-1), length)
        # The search begins at a place of its own, from which all items are reached.
        begins = np.full(size, size)
        winners, losers = np.append(edges // (size + 1), begins), np.append(edges % (size + 1), np.arange(size))
        graph = _graph(winners, losers, np.append(shortest, np.ones(size)), size + 1)
        try:
            bellman_ford(graph, indices=size)
        except NegativeCycleError:
            return True
        return False


def _graph(begins: IntArray, ends: IntArray, lengths: npt.NDArray[Any], size: int) -> Any:
    from scipy.sparse import coo_array

    return coo_array((lengths.astype(np.float64), (begins, ends)), shape=(size, size)).tocsr()


RESAMPLES = 10_000
MIN_CLUSTERS = 15
"""With fewer, an interval is not to be trusted, and none is given."""
CELLS = 4_000_000
"""Numbers held in memory at once."""


def paired_bootstrap(
    first: npt.ArrayLike, second: npt.ArrayLike, rng: np.random.Generator, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """Return the mean of first - second over items, and a two-sided p-value for a mean of 0.

    Items are resampled with replacement, keeping each item's two values together. The p-value is twice the smaller
    share of resampled means on either side of 0, 0 itself on both, with one added to numerator and denominator so that
    it is never 0.

    Args:
        first: one value for each item, shape (n,).
        second: the other method's values for the same items in the same order, shape (n,).

    Raises:
        ValueError: a value is not finite.
    """
    gap = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    if not np.all(np.isfinite(gap)):
        raise ValueError("first and second must hold finite numbers")
    means = np.concatenate([drawn @ gap for drawn in item_multiplicities(len(gap), rng, resamples)])
    tail = min((means <= 0).sum(), (means >= 0).sum())
    return float(gap.mean()), min(1.0, float(2 * (tail + 1) / (resamples + 1)))


def item_multiplicities(items: int, rng: np.random.Generator, resamples: int) -> Iterator[FloatArray]:
    """Yield how often each item is drawn in each resample, shape (block, items), `resamples` rows in all."""
    block = max(1, CELLS // items)
    for done in range(0, resamples, block):
        yield rng.multinomial(items, np.full(items, 1 / items), size=min(block, resamples - done)).astype(np.float64)


def cluster_reach(moved: FloatArray, level: float) -> FloatArray:
    """Return how far the intervals of estimates go to either side, shape (...,); NaN of fewer than 15 clusters.

    Votes about one prompt, or along one chain, share what is peculiar to it: as if each stood alone, they give
    intervals that are far too narrow. The variance of an estimate is the sum over clusters of the square of what each
    moves it by (Liang and Zeger, Biometrika 73, 1986), times c / (c - 1), and t is Student's of c - 1 degrees.

    Args:
        moved: the derivative of each estimate by each cluster's weight, shape (..., c).
    """
    from scipy.special import stdtrit

    clusters = moved.shape[-1]
    if clusters < MIN_CLUSTERS:
        return np.full(moved.shape[:-1], np.nan)
    variance = (moved**2).sum(axis=-1) * clusters / (clusters - 1)
    return np.asarray(stdtrit(clusters - 1, (1 + level) / 2) * np.sqrt(variance))


MIN_VOTES_PER_SCORE = 10
"""With fewer, the joint fit's bias is too far from 0, whatever the number of votes (Neyman and Scott, Econometrica 16,
1948): with one score for two votes it is twice what it should be."""

# Of the slope of the likelihood at its maximum, relative to the votes.
_FLAT = 1e-10
_MAX_STEPS = 500


class NoFit(ValueError):  # noqa: N818 - the data have no fit; nothing went wrong
    """These votes have no finite fit; the message gives the reason."""


@dataclass(frozen=True)
class PositionBias:
    """The bias b to the first object, in nats of log-odds, with its interval; NaN where too few clusters."""

    log_odds: float
    low: float
    high: float
    votes: int
    """That the estimate rests on."""
    clusters: int
    method: Literal["joint fit", "pairs"]


@dataclass(frozen=True)
class Scores:
    """Scores in nats of log-odds, mean 0, with their intervals; all of shape (n,), in the order of `items`.

    The intervals are NaN where there are fewer than 15 clusters: they would be too narrow.
    """

    items: tuple[Hashable, ...]
    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    clusters: int
    bias: PositionBias | None
    """To the first object, fitted with the scores; None where votes are too few to tell it without an error."""


def bradley_terry_intervals(votes: Choices, level: float = 0.95) -> Scores:
    """Return scores, fitted with the position bias, and intervals by clusters. Below 15 clusters no interval can be
    trusted, and there is none.

    Raises:
        NoFit: the win graph is not strongly connected, or the position bias cannot be told from the scores.
    """
    model = fittable(votes)
    fitted = model.solve()
    reach = model.reach(fitted, level)[:-1]
    bias = model.bias(fitted, level) if model.tells_bias else None
    estimate = fitted[:-1]
    return Scores(votes.items, estimate, estimate - reach, estimate + reach, model.clusters, bias)


def fittable(votes: Choices) -> JointFit:
    """Return the votes counted for a fit, once it is known to have one.

    Raises:
        NoFit: the win graph is not strongly connected, or the position bias cannot be told from the scores.
    """
    if reason := votes.score_refusal() or votes.bias_refusal():
        raise NoFit(reason)
    return JointFit.of(votes)


@dataclass(frozen=True)
class JointFit:
    """Votes counted by what stood where and by their clusters.

    Args:
        parts: which items have a mean of 0 together, shape (n,): those that votes connect.
        first: items, shape (k,), one entry for each ordered pair (first, second) that was shown.
        second: items, shape (k,).
        wins: votes for the first item, by pair and cluster, sparse, shape (k, c).
        losses: votes for the second item, the same way.
    """

    parts: IntArray
    first: IntArray
    second: IntArray
    wins: Any
    losses: Any

    @classmethod
    def of(cls, choices: Choices, parts: IntArray | None = None) -> JointFit:
        """Count votes; all items are one part unless `parts`, shape (n,), says otherwise."""
        from scipy.sparse import coo_array

        size = max(1, len(choices.items))
        shown, at = np.unique(choices.first * size + choices.second, return_inverse=True)
        shape, cell = (len(shown), len(choices.clusters)), (at.reshape(-1), choices.cluster)
        wins = coo_array((choices.chose_first.astype(np.float64), cell), shape=shape).tocsr()
        losses = coo_array((1.0 - choices.chose_first, cell), shape=shape).tocsr()
        labels = np.zeros(len(choices.items), dtype=np.int64) if parts is None else parts
        return cls(labels, shown // size, shown % size, wins, losses)

    @property
    def clusters(self) -> int:
        """How many clusters there are."""
        return int(self.wins.shape[1])

    @property
    def votes(self) -> int:
        """Votes in all."""
        return int(self.wins.sum() + self.losses.sum())

    @property
    def free_scores(self) -> int:
        """How many scores there are to fit: in each part one follows from the others."""
        return len(self.parts) - len(set(self.parts.tolist()))

    @property
    def tells_bias(self) -> bool:
        """True where there are votes enough for each score to tell the position bias."""
        return self.votes >= MIN_VOTES_PER_SCORE * self.free_scores

    def solve(self) -> FloatArray:
        """Return the scores, mean 0 in each part, and last the position bias, shape (n + 1,).

        Raises:
            NoFit: no convergence; the votes were not checked (`Choices.score_refusal`, `bias_refusal`), or the values
                lie too far apart.
        """
        from scipy.optimize import minimize

        wins, asked, _ = self.votes_and_chances(np.zeros(len(self.parts) + 1))

        def surprise(at: FloatArray) -> float:
            gap = self.design @ at
            return -float((wins * log_expit(gap) + (asked - wins) * log_expit(-gap)).sum())

        def slope(at: FloatArray) -> FloatArray:
            return np.asarray(self.design.T @ (asked * expit(self.design @ at) - wins))

        found = minimize(
            surprise, np.zeros(len(self.parts) + 1), jac=slope, hess=self._information, method="trust-exact",
            options={"gtol": _FLAT * self.votes, "maxiter": _MAX_STEPS},
        ).x  # fmt: skip
        # At the edge of its region SciPy also steps where the likelihood is flattest: along shifts of the scores.
        found[:-1] -= (np.bincount(self.parts, found[:-1]) / np.bincount(self.parts))[self.parts]
        if np.abs(slope(found)).max(initial=0.0) > math.sqrt(_FLAT) * self.votes:
            raise NoFit(f"the values lie too far apart: no convergence within {_MAX_STEPS} steps")
        return np.asarray(found)

    def reach(self, fitted: FloatArray, level: float) -> FloatArray:
        """Return how far the intervals go to either side of scores and bias, (n + 1,); NaN of too few clusters."""
        _, _, chance = self.votes_and_chances(fitted)
        left_over = self.wins - (self.wins + self.losses).multiply(chance[:, None])
        moved = np.linalg.inv(self._information(fitted)) @ (self.design.T @ left_over).toarray()
        return cluster_reach(moved, level)

    def bias(self, fitted: FloatArray, level: float) -> PositionBias:
        """Return the position bias of a fit, its error of first order in 1/votes taken away.

        Cox and Snell, "A general definition of residuals", JRSS B 30, 1968; for logits (X'WX)^-1 X' h (p - 1/2), with
        the leverages h.

        Args:
            fitted: what `solve` returned, shape (n + 1,).
        """
        _, asked, chance = self.votes_and_chances(fitted)
        variance, inverse = asked * chance * (1 - chance), np.linalg.inv(self._information(fitted))
        leverage = variance * ((self.design @ inverse) * self.design.toarray()).sum(axis=1)
        error = float((inverse @ (self.design.T @ (leverage * (chance - 0.5))))[-1])
        middle, reach = float(fitted[-1]) - error, float(self.reach(fitted, level)[-1])
        return PositionBias(middle, middle - reach, middle + reach, self.votes, self.clusters, "joint fit")

    def votes_and_chances(self, fitted: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return votes for the first item, votes, and the chance of the first one at a fit; all of shape (k,)."""
        wins, losses = (np.asarray(table.sum(axis=1)).reshape(-1) for table in (self.wins, self.losses))
        return wins, wins + losses, expit(self.design @ fitted)

    @cached_property
    def design(self) -> Any:
        """X, the log-odds of the first item as a function of scores and bias: sparse, shape (k, n + 1)."""
        from scipy.sparse import coo_array

        shown = len(self.first)
        columns = np.concatenate([self.first, self.second, np.full(shown, len(self.parts))])
        # Where an item meets itself, its two entries add up to nothing.
        entries, rows = np.repeat([1.0, -1.0, 1.0], shown), np.tile(np.arange(shown), 3)
        return coo_array((entries, (rows, columns)), shape=(shown, len(self.parts) + 1)).tocsr()

    def _information(self, at: FloatArray) -> FloatArray:
        """Return X' W X, made regular, shape (n + 1, n + 1).

        X leaves shifts of the scores of a part free. In these directions it gets a unit of its own size, which leaves a
        step that does not go there as it is.
        """
        _, asked, chance = self.votes_and_chances(at)
        information = (self.design.T @ self.design.multiply((asked * chance * (1 - chance))[:, None])).toarray()
        same = (self.parts[:, None] == self.parts[None, :]).astype(np.float64)
        unit = np.trace(information) / len(information)
        return np.asarray(information + unit * np.pad(same / same.sum(axis=0), (0, 1)))
