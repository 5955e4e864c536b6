"""People who vote: how they prefer, and what else they do with a pair. Right ones, and some who break a rule.

What somebody does is a function of their own random numbers and of the pair, so the same crowd votes in a campaign
(`study.py`) and in `sampler` alone (`simulated.py`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

import numpy as np
from scipy.special import expit

from tests.statistics.distribution import SCORES, Matrix


@dataclass(frozen=True)
class Pair:
    """Two objects by their indices in the catalog, and how they stand."""

    current: int
    proposal: int
    proposal_is_left: bool


@dataclass(frozen=True)
class Voters:
    """Bradley-Terry voters of one distribution, or of several in equal parts.

    Args:
        scores: of the objects, in nats; one row for each kind of voter.
        bias: to the first object, in nats.
        lapses: how often an answer is a coin flip.
    """

    scores: Matrix = field(default_factory=lambda: SCORES[None])
    bias: float = 0.0
    lapses: float = 0.0

    @property
    def kinds(self) -> int:
        """How many kinds of voters there are."""
        return len(self.scores)

    def prefers_proposal(self, rng: np.random.Generator, kind: int, pair: Pair) -> bool:
        """Draw one answer."""
        if rng.random() < self.lapses:
            return bool(rng.random() < 0.5)
        gain = self.scores[kind, pair.proposal] - self.scores[kind, pair.current]
        return bool(rng.random() < expit(gain + (self.bias if pair.proposal_is_left else -self.bias)))

    def preferences(self, proposal_is_left: Sequence[bool] = (True, False)) -> Matrix:
        """Return how probable an answer for x' is at [x, x'], over the kinds and over where the proposal stands."""
        gains = self.scores[:, None, :] - self.scores[:, :, None]
        biases = [self.bias if is_left else -self.bias for is_left in proposal_is_left]
        drawn = np.mean([expit(gains + bias).mean(axis=0) for bias in biases], axis=0)
        return np.asarray((1 - self.lapses) * drawn + self.lapses / 2)


class Deed(Enum):
    """What becomes of a person, or of their lease, beside a vote."""

    SKIP = auto()
    EXPIRE = auto()  # the time of the lease runs out; the person is there again at once
    LEAVE = auto()  # the same, and the person is gone for good
    REMOVED = auto()
    WITHDRAWN = auto()
    REFUSED = auto()  # the lease is taken away, and the person stays


GONE = frozenset({Deed.LEAVE, Deed.REMOVED, Deed.WITHDRAWN})


@dataclass(frozen=True)
class Reaction:
    """What somebody does with a pair: first the vote, for the proposal or against it; then the deed."""

    vote: bool | None = None
    deed: Deed | None = None


# (random numbers, the pair, the answer that the person would give, another answer of theirs to the same pair)
Conduct = Callable[[np.random.Generator, Pair, bool, Callable[[], bool]], Reaction]


def votes_at_once(_rng, _pair, answer, _again) -> Reaction:
    """Answer every pair."""
    return Reaction(answer)


# How often each comes about, whatever the answer.
FATES = {Deed.SKIP: 0.1, Deed.EXPIRE: 0.04, Deed.LEAVE: 0.005, Deed.REMOVED: 0.005, Deed.WITHDRAWN: 0.005}


def lives(rng, pair, answer, _again) -> Reaction:
    """Skip, drop out, withdraw or be removed in mid-pair, all without a look at the answer; skip what does not show."""
    if does_not_show(rng, pair):
        return Reaction(deed=Deed.SKIP)
    drawn = rng.choice(len(FATES) + 1, p=[*FATES.values(), 1 - sum(FATES.values())])
    return Reaction(answer) if drawn == len(FATES) else Reaction(deed=list(FATES)[drawn])


def does_not_show(rng, pair) -> bool:
    """Draw whether an object of the pair fails to load: each second one does so, three times in ten."""
    return any(index % 2 and rng.random() < 0.3 for index in (pair.current, pair.proposal))


# Below: each breaks one rule.


def is_refused_when_for(rng, _pair, answer, _again) -> Reaction:
    """E2: who would vote for the proposal may not, one time in five."""
    return Reaction(deed=Deed.REFUSED) if answer and rng.random() < 0.2 else Reaction(answer)


def answers_a_check_by_voting(rng, _pair, answer, _again) -> Reaction:
    """E3: one answer in five is that to an attention check, whose side is drawn."""
    return Reaction(bool(rng.random() < 0.5) if rng.random() < 0.2 else answer)


def is_removed_for_disagreeing(rng, _pair, answer, again) -> Reaction:
    """E3: three votes in ten are asked again, and who answers otherwise is removed."""
    disagrees = rng.random() < 0.3 and again() != answer
    return Reaction(answer, Deed.REMOVED if disagrees else None)


def is_removed_with_a_vote_against(rng, _pair, answer, _again) -> Reaction:
    """E4: the open lease of somebody who is removed counts against the proposal."""
    return Reaction(False, Deed.REMOVED) if rng.random() < 0.15 else Reaction(answer)


def flips_a_coin_instead(rng, _pair, answer, _again) -> Reaction:
    """E6: a skip is replaced by a coin flip, three times in ten."""
    return Reaction(bool(rng.random() < 0.5) if rng.random() < 0.3 else answer)


def skips_what_they_would_accept(rng, _pair, answer, _again) -> Reaction:
    """E6: a skip is four times as probable where the answer would be for the proposal."""
    return Reaction(deed=Deed.SKIP) if rng.random() < (0.4 if answer else 0.1) else Reaction(answer)


def rejects_what_does_not_show(rng, pair, answer, _again) -> Reaction:
    """E8: a proposal that fails to load is a "no"."""
    return Reaction(answer and not does_not_show(rng, Pair(0, pair.proposal, pair.proposal_is_left)))


def takes_twice_as_long_to_accept(rng, _pair, answer, _again) -> Reaction:
    """E11: the middle answer against takes half of the lease, one for the proposal all of it; late ones are lost."""
    time = 0.5 * (2 if answer else 1) * rng.lognormal(0, 0.6)
    return Reaction(deed=Deed.EXPIRE) if time > 1 else Reaction(answer)
