"""Votes before anybody is asked: which object each shows first and, of a model's, the number it is drawn with.

All are functions of (seed, chain, step). A model judge has one for each of its N_i votes, so that a vote that is asked
for again after a crash is the same vote, and a reader with the record can draw both again. People have one for each
time that a person is asked, whichever question it is. Theirs come from a stream of their own: on a pair that models
judge too, the sides of the one must not follow from those of the other.

So is which trials people are given between their pairs: checks of their attention, and pairs of their own once more.
They are no votes.

    instructed   a pair, and the question says which side to choose
    gold         a pair of the researcher's own, whose answer nobody doubts; everybody meets these in one order
    repeat       a pair that the person has answered, once more

They are drawn from a stream of their own, by the number of votes that the person has given. It does not look at the
states, so who is asked, and when, says nothing about them (rule E2 of `docs/exactness.md`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Literal

import numpy as np

from sampler.chain import Purpose, stream
from sampler.judges.config import Order

_DRAWN_AT_ONCE = 8


def presentations_of(
    seed: int, chain: int, step: int, max_votes: Sequence[int], judge: int, order: Order
) -> tuple[bool, ...]:
    """Return, for each vote of a judge on a step, whether it shows the proposal first; length max_votes[judge]."""
    uniforms = _numbers(seed, chain, step, Purpose.SIDES, max_votes, judge)
    if order == "balanced":
        half = np.argsort(uniforms, kind="stable")[: max_votes[judge] // 2]
        return tuple(bool(index in half) for index in range(max_votes[judge]))
    if order == "random":
        return tuple(bool(uniform < 0.5) for uniform in uniforms)
    return (order == "proposal-first",) * max_votes[judge]


def shows_proposal_first(seed: int, chain: int, step: int, asked: int) -> bool:
    """Return whether a person is shown the proposal first.

    Args:
        asked: how many times people were asked about this step before, whatever the question.
    """
    if asked < _DRAWN_AT_ONCE:
        return _first_sides(seed, chain, step)[asked]
    return bool(stream(seed, chain, step, Purpose.PEOPLE_SIDES).random(asked + 1)[-1] < 0.5)


# Most steps are asked about more than once, and making a stream takes longer than all that is drawn from it.
@lru_cache(maxsize=4096)
def _first_sides(seed: int, chain: int, step: int) -> tuple[bool, ...]:
    return tuple((stream(seed, chain, step, Purpose.PEOPLE_SIDES).random(_DRAWN_AT_ONCE) < 0.5).tolist())


def draws_of(seed: int, chain: int, step: int, max_votes: Sequence[int], judge: int) -> tuple[float, ...]:
    """Return, for each vote of a judge that is drawn from a probability p, its uniform: x' gets it iff that is < p."""
    return tuple(map(float, _numbers(seed, chain, step, Purpose.JUDGES, max_votes, judge)))


def _numbers(seed: int, chain: int, step: int, purpose: Purpose, max_votes: Sequence[int], judge: int) -> np.ndarray:
    # One stream a step: each judge takes its numbers after those of the judges before it.
    before = sum(max_votes[:judge])
    drawn: np.ndarray = stream(seed, chain, step, purpose).random(before + max_votes[judge])
    return drawn[before:]


Kind = Literal["instructed", "gold", "repeat"]
_ALMOST = 1e-9
"""Shares are decimals that no float holds exactly: 600 votes with a trial after 10 % of them come to 60."""


@dataclass(frozen=True)
class TrialShares:
    """How often a vote is followed by a trial of each kind, from 0 to 1, together at most 1."""

    instructed: float = 0
    gold: float = 0
    repeat: float = 0

    @property
    def total(self) -> float:
        """How often a vote is followed by one of any kind."""
        return self.instructed + self.gold + self.repeat


def trials_after(votes: int, shares: TrialShares) -> int:
    """Return to how many trials the declared shares come after so many votes."""
    return ceil(votes * shares.total - _ALMOST)


@dataclass(frozen=True)
class InsertedTrial:
    """A trial that is no vote.

    Args:
        kind: of it.
        side: that is to be chosen, of an instructed one; of the others, where the pair's first object stands now.
        gold: which gold pair, from 0; None for other kinds.
        which: uniform on [0, 1): which of the pairs that can be repeated.
    """

    kind: Kind
    side: Literal["first", "second"]
    gold: int | None = None
    which: float = 0


def check_after(seed: int, voter: int, votes: int, shares: TrialShares, golds: int = 0) -> InsertedTrial | None:
    """Return the trial that a person is given after so many votes; None if the next pair follows at once.

    Everybody meets the gold pairs in one order of the campaign, and all of them before one comes again: the k-th that a
    person meets is the k-th of that order, whoever they are. When it comes is drawn for each person.

    Args:
        seed: of the campaign.
        voter: the person's number in the record.
        votes: how many votes they have given.
        shares: how often each kind comes.
        golds: how many gold pairs there are; at least one if their share is not 0.
    """
    if shares.total == 0 or votes == 0:
        return None
    comes, side, which = stream(seed, voter, votes, Purpose.CHECKS).random(3)
    kind = _kind(comes, shares)
    if kind is None:
        return None
    gold = _gold(seed, voter, votes, shares, golds) if kind == "gold" else None
    return InsertedTrial(kind, "first" if side < 0.5 else "second", gold, float(which))


def _kind(comes: float, shares: TrialShares) -> Kind | None:
    if comes < shares.instructed:
        return "instructed"
    if comes < shares.instructed + shares.gold:
        return "gold"
    return "repeat" if comes < shares.total else None


def _gold(seed: int, voter: int, votes: int, shares: TrialShares, golds: int) -> int:
    earlier = (stream(seed, voter, each, Purpose.CHECKS).random() for each in range(1, votes))
    seen = sum(_kind(comes, shares) == "gold" for comes in earlier)
    # People are numbered from 1, so that stream is free: the order is the campaign's.
    ranks = stream(seed, 0, 0, Purpose.CHECKS).random(golds)
    return int(ranks.argsort(kind="stable")[seen % golds])
