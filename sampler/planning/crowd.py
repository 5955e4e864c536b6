"""How many chains a crowd opens, and what that costs in burn-in: foreseen by letting it vote.

Everybody answers at about the same pace, as a coin falls, on proposals of base ratio 1, and gives a fixed number of
votes. Whoever finds no pair opens a chain while there are fewer than the most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from sampler.acceptance import Verdict, askable, verdict


@dataclass(frozen=True)
class CrowdForecast:
    """What so many people do."""

    people: int
    chains: int
    """That are open in the end, those of the start included."""
    votes: int
    burn_in_votes: int

    @property
    def burn_in_percent(self) -> int:
        """Which share of the votes goes into burn-in; 0 without a vote."""
        return round(100 * self.burn_in_votes / self.votes) if self.votes else 0


def forecast_crowd(
    rng: np.random.Generator,
    people: int,
    votes_each: int,
    *,
    chains: int,
    most: int,
    steps: int,
    burn_in: int,
    budgets: Sequence[int],
) -> CrowdForecast:
    """Return how many chains people who come at once open, and how many of their votes are in burn-in."""
    crowd = _Crowd(rng, votes_each, most, steps, burn_in, tuple(budgets))
    crowd.chains = [_Chain(rng.random(), len(budgets)) for _ in range(chains)]
    crowd.vote(people)
    return CrowdForecast(people, len(crowd.chains), crowd.votes, crowd.burn_in_votes)


class _Chain:
    """A chain's open step: its uniform, votes by judge, and who has answered which judge."""

    def __init__(self, uniform: float, judges: int) -> None:
        self.step = 0
        self.go_on(uniform, judges)

    def go_on(self, uniform: float, judges: int) -> None:
        self.step += 1
        self.uniform = uniform
        self.votes_for, self.cast, self.promised = [0] * judges, [0] * judges, [0] * judges
        self.answered: set[tuple[int, int]] = set()
        self.room: tuple[bool, ...] | None = None


@dataclass
class _Crowd:
    rng: np.random.Generator
    votes_each: int
    most: int
    steps: int
    burn_in: int
    budgets: tuple[int, ...]
    chains: list[_Chain] = field(default_factory=list)
    votes: int = 0
    burn_in_votes: int = 0

    def vote(self, people: int) -> None:
        """Let them come and vote until each has given their votes, or nobody finds a pair."""
        waiting, left = list(range(people)), [self.votes_each] * people
        answers: list[tuple[float, int, _Chain, int]] = []
        now = 0.0
        while True:
            for person, pair in list(self._pairs(waiting)):
                waiting.remove(person)
                heappush(answers, (now + 0.5 + self.rng.random(), person, *pair))
            if not answers:
                return
            now, person, chain, judge = heappop(answers)
            self._answer(person, chain, judge)
            left[person] -= 1
            if left[person]:
                waiting.append(person)

    def _pairs(self, waiting: list[int]) -> Iterator[tuple[int, tuple[_Chain, int]]]:
        """Yield who of those that wait has a pair now, each with the chain and the judge; the chain behind first."""
        free = sorted((chain for chain in self.chains if any(self._room(chain))), key=lambda chain: chain.step)
        for person in waiting:
            if pair := self._pair_for(person, free):
                yield person, self._promised(*pair)
                free = [chain for chain in free if any(self._room(chain))]
            elif not free:
                return

    def _pair_for(self, person: int, free: list[_Chain]) -> tuple[_Chain, int] | None:
        for chain in free:
            for judge, has_room in enumerate(self._room(chain)):
                if has_room and (person, judge) not in chain.answered:
                    return chain, judge
        if len(self.chains) == self.most:
            return None
        free.append(_Chain(self.rng.random(), len(self.budgets)))
        self.chains.append(free[-1])
        return free[-1], 0

    def _room(self, chain: _Chain) -> tuple[bool, ...]:
        if chain.room is None:
            is_over = chain.step > self.steps
            none = (False,) * len(self.budgets)
            votes = tuple(chain.votes_for), tuple(chain.cast), tuple(chain.promised)
            chain.room = none if is_over else askable(0.0, chain.uniform, *votes, self.budgets)
        return chain.room

    def _promised(self, chain: _Chain, judge: int) -> tuple[_Chain, int]:
        chain.promised[judge] += 1
        chain.room = None
        return chain, judge

    def _answer(self, person: int, chain: _Chain, judge: int) -> None:
        self.votes += 1
        self.burn_in_votes += chain.step <= self.burn_in
        chain.promised[judge] -= 1
        chain.cast[judge] += 1
        chain.votes_for[judge] += self.rng.random() < 0.5
        chain.answered.add((person, judge))
        chain.room = None
        standing = verdict(0.0, chain.uniform, tuple(chain.votes_for), tuple(chain.cast), self.budgets)
        if standing is not Verdict.UNDECIDED:
            chain.go_on(self.rng.random(), len(self.budgets))
