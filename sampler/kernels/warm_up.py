"""A warm-up: the first steps of every chain, from which one length is chosen for the steps after them.

Each of its steps draws how far it walks from a declared grid, with the first number of its own PROPOSAL stream. That is
a mixture of walks, so the warm-up is exact, whatever is chosen afterwards (see below). The choice rests on votes of
the chains that it moves. So the chains go on as from any start: some declared steps after the warm-up are left out.

No step after the warm-up may be proposed before the length is chosen, and no length before every chain has decided its
last step of the warm-up: otherwise the choice would depend on who answers fast.

How far to walk is chosen by how far the chains moved per vote.

In the warm-up each step draws its length from a grid. Per length, over all chains, are counted: steps, counted votes,
votes for the proposal, and how far each declared property of the object moved, squared, in units of its spread over all
states of the warm-up. A short walk asks about pairs that hardly differ, and the chain moves little per vote; a long one
proposes what is refused. In between it moves most (Pasarica and Gelman 2010, "expected squared jumped distance").

What is compared is the jump per vote of the property that moves least, because samples are worth what the slowest one
is worth, less one standard error, because a few great jumps make a mean that is large by chance. Of the lengths that
win enough of their votes, the longest is taken that comes close to the largest jump:

* one step's jump does not see what the next step takes back, and a shorter walk takes more back;
* where the proposal hardly ever wins, a chain stands still for long, and careless votes move it like careful ones;
* where a single move goes nearly half as far as the longest walk, as with kernels that often draw anew, a walk has
  little to give, and one that goes on after it has come most of the way only asks about pairs farther apart.

With the numbers below and 1,000 votes, the choice costs 1.00 to 1.48 times the best length of the grid on the spaces of
`tests/benchmarks/votes_per_sample.py`; with 300 votes up to 1.92 times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import Field, field_validator

from sampler.chain import Proposal
from sampler.declared import EACH_ONCE, Declared, ui
from sampler.kernels.mixture import Weights

LONGEST_WALK = 4096
DEFAULT_GRID = (1, 4, 16, 64, 256)
DEFAULT_WARM_UP_BURN_IN = 10
DEFAULT_PATIENCE_MINUTES = 60
# A warm-up brings about so many votes, if a step takes one, and takes at most this share of the steps. With fewer than
# the least, too many steps that need no vote would leave too little to choose by.
_VOTES, _MIN_EXPECTED_VOTES = 300, 150
_SHARE_OF_STEPS = 4


class WarmUp(Declared):
    """The part of a walk's config that says: find the length in the first steps.

    Args:
        steps: W, the first steps of every chain.
        grid: two to eight lengths, shortest first.
        properties: the properties of the objects whose jumps are compared; see `sampler.objects`.
        burn_in: how many steps after the warm-up are left out of the samples to analyse.
        patience_minutes: when a chain of the warm-up has waited so long for its votes, the researcher is offered to end
            it. The chains then take the config's own length.
    """

    steps: int = Field(ge=1, le=1_000_000, title="Steps of the warm-up, per chain")
    grid: tuple[int, ...] = Field(
        default=DEFAULT_GRID,
        min_length=2,
        max_length=8,
        title="Distances to try",
        description="Shortest first, with spaces between them.",
        json_schema_extra=ui(widget="words"),
    )
    properties: Annotated[tuple[str, ...], EACH_ONCE] = Field(
        min_length=1,
        max_length=8,
        title="Properties whose jumps are compared",
        description="Names of what is measured of the objects, one per line.",
    )
    burn_in: int = Field(
        default=DEFAULT_WARM_UP_BURN_IN,
        ge=0,
        le=1_000_000,
        title="Burn-in: steps after the warm-up that are left out",
    )
    patience_minutes: int = Field(
        default=DEFAULT_PATIENCE_MINUTES,
        ge=1,
        le=100_000,
        title="Minutes to wait for a chain",
        description="After them you are offered to end the warm-up.",
    )

    @field_validator("grid")
    @classmethod
    def _grows(cls, grid: tuple[int, ...]) -> tuple[int, ...]:
        grows = all(one < other for one, other in pairwise(grid))
        if not grows or grid[0] < 1 or grid[-1] > LONGEST_WALK:
            raise ValueError(f"must be whole numbers from 1 to {LONGEST_WALK}, each larger than the one before")
        return grid

    @property
    def shares(self) -> tuple[float, ...]:
        """How often each length of the grid is drawn."""
        return (1 / len(self.grid),) * len(self.grid)

    def part(self, rng: np.random.Generator, step: int) -> int | None:
        """Return which length of the grid a step walks; None after the warm-up.

        Args:
            rng: the PROPOSAL stream of the step, from its beginning.
            step: its number.
        """
        return Weights(self.shares).index(rng.random()) if step <= self.steps else None


class NotChosen:
    """The kernel of the steps after a warm-up whose length is not chosen yet. It proposes nothing."""

    def propose(self, rng: np.random.Generator, state: Any) -> Proposal[Any]:
        """Refuse.

        Raises:
            ValueError: always.
        """
        raise ValueError("no step after the warm-up can be proposed before its length is chosen")


def warm_up_steps(chains: int, steps: int) -> int:
    """Return how long a warm-up should be: about 300 votes in all, and at most a quarter of the steps.

    0 where that is too short to choose by.
    """
    fitting = min(-(-_VOTES // chains), steps // _SHARE_OF_STEPS)
    return fitting if fitting * chains >= _MIN_EXPECTED_VOTES else 0


FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Length = TypeVar("Length", int, float)

MIN_VOTES = 100
"""With fewer counted votes in the warm-up, the middle of the grid is taken."""
MIN_SHARE_WON = 0.185
"""A length that wins fewer of its votes is left out; if that leaves none, the shortest is taken."""
CLOSE = 0.85
"""A length is as good as the best if it moves at least this share of the best one's jump."""
FAR_AT_ONCE, MOST_OF_THE_WAY = 0.45, 0.65
"""If the shortest length reaches the first share, lengths beyond the first to reach the second are left out."""
_STANDARD_ERRORS = 1
_ROUNDING = 1e-9


@dataclass(frozen=True)
class LengthTrial(Generic[Length]):
    """What one length of the grid did in the warm-up, over all chains.

    Args:
        length: L, or β of a kernel for which it stands for a length.
        steps: how many steps drew it.
        votes: counted votes of those steps.
        votes_for: how many of them were for the proposal.
        esjd_per_vote: the squared jump per vote of the property that is slowest by `esjd_per_vote_lower`.
        esjd_per_vote_lower: the same less a standard error, that of a ratio of sums over steps, linearised.
        reach: the mean squared distance from the state to its proposals, as a share of the largest of all lengths, of
            the property for which that is least; None if no property has changed.
    """

    length: Length
    steps: int
    votes: int
    votes_for: int
    esjd_per_vote: float
    esjd_per_vote_lower: float
    reach: float | None

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
    proposed: npt.ArrayLike,
    after: npt.ArrayLike,
) -> tuple[LengthTrial[Length], ...]:
    """Return what each length of the grid did.

    Args:
        grid: the lengths, shortest first.
        drawn: for each step which of them, as an index in the grid; shape (steps,).
        votes: counted votes; shape (steps,).
        votes_for: of them for the proposal; shape (steps,).
        before: properties of the state before the step; shape (steps, k).
        proposed, after: the same of its proposal, and of the state after it. A property that never changes is left out.

    Raises:
        ValueError: the shapes do not fit together.
    """
    indices, cast, won = (np.asarray(values, dtype=np.int64) for values in (drawn, votes, votes_for))
    states, proposals, ends = (np.asarray(values, dtype=np.float64) for values in (before, proposed, after))
    if not indices.shape == cast.shape == won.shape == states.shape[:1] == proposals.shape[:1] == ends.shape[:1]:
        raise ValueError("drawn, votes, votes_for, before, proposed and after must have one row a step")
    spread = _spread(states, ends)
    varies = spread > 0
    jumps, distances = (np.square((there - states)[:, varies] / spread[varies]) for there in (ends, proposals))
    rows = [indices == index for index in range(len(grid))]
    reaches = _reaches([distances[at] for at in rows])
    found = zip(grid, rows, reaches, strict=True)
    return tuple(_trial(length, cast[at], won[at], jumps[at], reach) for length, at, reach in found)


def chosen_length(tried: Sequence[LengthTrial[Length]]) -> Length:
    """Return the longest length that wins enough and comes close to the largest jump.

    The middle one where there is nothing to choose by: `says_too_little`.

    Args:
        tried: the shortest length first.
    """
    if says_too_little(tried):
        return tried[len(tried) // 2].length
    useful = tried[: _first_far_enough(tried) + 1]
    winning = [trial for trial in useful if (trial.share_won or 0) >= MIN_SHARE_WON] or tried[:1]
    largest = max(trial.esjd_per_vote_lower for trial in winning)
    close = [trial for trial in winning if trial.esjd_per_vote_lower >= min(CLOSE * largest, largest)]
    return close[-1].length


def says_too_little(tried: Sequence[LengthTrial[Length]]) -> bool:
    """True where there are too few votes to choose by, or no property of the objects has changed."""
    return sum(trial.votes for trial in tried) < MIN_VOTES or not any(trial.esjd_per_vote for trial in tried)


def _first_far_enough(tried: Sequence[LengthTrial[Length]]) -> int:
    """Return the index of the first length that goes most of the way, where a single move goes far; else the last."""
    reaches = [trial.reach or 0.0 for trial in tried]
    is_far = [reaches[0] >= FAR_AT_ONCE and reach >= MOST_OF_THE_WAY for reach in reaches]
    return is_far.index(True) if True in is_far else len(tried) - 1


def _trial(
    length: Length, votes: IntArray, votes_for: IntArray, jumps: FloatArray, reach: float | None
) -> LengthTrial[Length]:
    cast = int(votes.sum())
    per_vote = jumps.sum(axis=0) / max(cast, 1)
    error = np.sqrt(((jumps - per_vote * votes[:, None]) ** 2).sum(axis=0)) / max(cast, 1)
    sure = per_vote - _STANDARD_ERRORS * error
    slowest = int(np.argmin(sure)) if len(sure) else None
    found = (0.0, 0.0) if slowest is None else (float(per_vote[slowest]), float(sure[slowest]))
    return LengthTrial(length, len(votes), cast, int(votes_for.sum()), *found, reach)


def _spread(states: FloatArray, ends: FloatArray) -> FloatArray:
    """Return the standard deviation of each property over all states; 0 where it does not vary, or is unknown."""
    visited = np.concatenate([states, ends])
    spread = visited.std(axis=0)
    # The spread of one number, again and again, is rounding, and so is what differs in the last digits only.
    varies = spread > _ROUNDING * np.abs(visited).max(axis=0, initial=0)
    return np.where(varies, spread, 0.0)


def _reaches(distances: Sequence[FloatArray]) -> list[float | None]:
    means = np.array([rows.mean(axis=0) if len(rows) else np.zeros(rows.shape[1]) for rows in distances])
    largest = means.max(axis=0)
    # A property that some proposal lacks is not known well enough.
    usable = np.isfinite(largest) & (largest > 0)
    means, largest = means[:, usable], largest[usable]
    return [float(share.min()) if len(share) else None for share in means / largest]
