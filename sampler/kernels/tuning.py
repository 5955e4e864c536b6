"""How far to walk, chosen once from a declared warm-up by how far the chains moved per vote.

In the warm-up each step draws its length from a grid. Per length, over all chains, are counted: steps, counted votes,
votes for the proposal, and how far each declared property of the object moved, squared, in units of its spread over all
states of the warm-up. A short walk asks about pairs that hardly differ, and the chain moves little per vote; a long one
proposes what is refused. In between it moves most (Pasarica and Gelman 2010, "expected squared jumped distance").

What is compared is the jump per vote of the property that moves least, because samples are worth what the slowest one
is worth, less one standard error, because a few great jumps make a mean that is large by chance. Of the lengths that
win enough of their votes, the longest is taken that comes close to the largest jump:

* one step's jump does not see what the next step takes back, and a shorter walk takes more back;
* where the proposal hardly ever wins, a chain stands still for long, and careless votes move it like careful ones.

With the numbers below and 1,000 votes, the choice costs 1.0 to 1.51 times the best length of the grid on the spaces of
`tests/benchmarks/votes_per_sample.py`; with 300 votes up to 2.04 times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Length = TypeVar("Length", int, float)

FEWEST_VOTES = 100
"""With fewer counted votes in the warm-up, the middle of the grid is taken."""
LEAST_SHARE_WON = 0.18
"""A length that wins fewer of its votes is left out; if that leaves none, the shortest is taken."""
CLOSE = 0.8
"""A length is as good as the best if it moves at least this share of the best one's jump."""
_STANDARD_ERRORS = 1
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Trial(Generic[Length]):
    """What one length of the grid did in the warm-up, over all chains.

    Args:
        length: L, or β of a kernel for which it stands for a length.
        steps: how many steps drew it.
        votes: counted votes of those steps.
        votes_for: how many of them were for the proposal.
        jump_per_vote: the squared jump per vote of the property that is slowest by `sure_jump_per_vote`.
        sure_jump_per_vote: the same less a standard error, that of a ratio of sums over steps, linearised.
    """

    length: Length
    steps: int
    votes: int
    votes_for: int
    jump_per_vote: float
    sure_jump_per_vote: float

    @property
    def share_won(self) -> float | None:
        """The share of votes for the proposal; None where no vote was needed."""
        return self.votes_for / self.votes if self.votes else None


def trials(
    grid: Sequence[Length],
    drawn: npt.ArrayLike,
    votes: npt.ArrayLike,
    votes_for: npt.ArrayLike,
    before: npt.ArrayLike,
    after: npt.ArrayLike,
) -> tuple[Trial[Length], ...]:
    """Return what each length of the grid did.

    Args:
        grid: the lengths, shortest first.
        drawn: for each step which of them, as a place in the grid; shape (steps,).
        votes: counted votes; shape (steps,).
        votes_for: of them for the proposal; shape (steps,).
        before: properties of the state before the step; shape (steps, k).
        after: the same of the state after it. A property that never changes is left out.

    Raises:
        ValueError: the shapes do not fit together.
    """
    places, cast, won = (np.asarray(values, dtype=np.int64) for values in (drawn, votes, votes_for))
    jumps = _squared_jumps(np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64))
    if not places.shape == cast.shape == won.shape == jumps.shape[:1]:
        raise ValueError("drawn, votes, votes_for, before and after must have one row a step")
    rows = [places == place for place in range(len(grid))]
    return tuple(_trial(length, cast[at], won[at], jumps[at]) for length, at in zip(grid, rows, strict=True))


def chosen_length(tried: Sequence[Trial[Length]]) -> Length:
    """Return the longest length that wins enough and comes close to the largest jump.

    The middle one where there is nothing to choose by: `says_too_little`.

    Args:
        tried: the shortest length first.
    """
    if says_too_little(tried):
        return tried[len(tried) // 2].length
    winning = [trial for trial in tried if (trial.share_won or 0) >= LEAST_SHARE_WON] or tried[:1]
    largest = max(trial.sure_jump_per_vote for trial in winning)
    close = [trial for trial in winning if trial.sure_jump_per_vote >= min(CLOSE * largest, largest)]
    return close[-1].length


def says_too_little(tried: Sequence[Trial[Length]]) -> bool:
    """True where there are too few votes to choose by, or no property of the objects has changed."""
    return sum(trial.votes for trial in tried) < FEWEST_VOTES or not any(trial.jump_per_vote for trial in tried)


def _trial(length: Length, votes: IntArray, votes_for: IntArray, jumps: FloatArray) -> Trial[Length]:
    cast = int(votes.sum())
    per_vote = jumps.sum(axis=0) / max(cast, 1)
    error = np.sqrt(((jumps - per_vote * votes[:, None]) ** 2).sum(axis=0)) / max(cast, 1)
    sure = per_vote - _STANDARD_ERRORS * error
    slowest = int(np.argmin(sure)) if len(sure) else None
    found = (0.0, 0.0) if slowest is None else (float(per_vote[slowest]), float(sure[slowest]))
    return Trial(length, len(votes), cast, int(votes_for.sum()), *found)


def _squared_jumps(before: FloatArray, after: FloatArray) -> FloatArray:
    states = np.concatenate([before, after])
    spread = states.std(axis=0)
    # The spread of one number, again and again, is rounding, and so is what differs in the last digits only.
    varies = spread > _ROUNDING * np.abs(states).max(axis=0, initial=0)
    return np.asarray(((after[:, varies] - before[:, varies]) / spread[varies]) ** 2)
