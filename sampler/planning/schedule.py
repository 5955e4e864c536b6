"""A study, played: people who come, find pairs, answer, wait, and go, event by event.

A person is given the step of the chain that is furthest behind, among those that they have not answered for the judge
and that have room for a vote which cannot come too late. Who finds none opens a chain while there are fewer than the
most; else they wait, and go when their patience ends. This is the order in which the application asks
(`engine/leases.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count

import numpy as np

from sampler.planning.leans import Leans
from sampler.planning.open_step import OneJudgeStep, OpenStep, open_step
from sampler.planning.paces import Guest, Paces
from sampler.planning.study import PlannedStudy

# Steps are drawn so many at a time.
_BLOCK = 256
_LONGEST_DRAW = 100_000


@dataclass(frozen=True)
class Outcome:
    """What a study came to.

    Args:
        votes: of people.
        steps: decided, with those that needed no vote.
        kept: of these, those after the burn-in.
        accepted: proposals other than the state itself.
        hours: that people were there, from their arrival until they left or were done.
        waited_hours: of these, without a pair.
        wall_hours: from the start until the last person had gone.
        chains: open in the end.
        complete: people whose part was complete, or for whom nothing was left.
        gave_up: people who went because they waited for too long.
        is_finished: whether every chain came to its end.
    """

    votes: int
    steps: int
    kept: int
    accepted: int
    hours: float
    waited_hours: float
    wall_hours: float
    chains: int
    complete: int
    gave_up: int
    is_finished: bool


def play(rng: np.random.Generator, study: PlannedStudy, paces: Paces, leans: Leans) -> Outcome:
    """Let a crowd that there might be take part in a study."""
    return _Play(rng, study, paces, leans).run()


class _Chain:
    """A chain and its open step; None once it has ended."""

    def __init__(self) -> None:
        self.steps = self.accepted = 0
        self.open: OpenStep | OneJudgeStep | None = None
        self.chances: list[float] = []
        self.answered: set[tuple[int, int]] = set()


@dataclass
class _Seat:
    """A person while they are there."""

    number: int
    guest: Guest
    votes: int = 0
    active_s: float = 0.0
    waits_since: float | None = None
    waited_s: float = 0.0
    left_s: float | None = None
    leaves_after: float = math.inf
    has_given_up: bool = False
    is_complete: bool = False


@dataclass
class _Play:
    rng: np.random.Generator
    study: PlannedStudy
    paces: Paces
    leans: Leans
    chains: list[_Chain] = field(default_factory=list)
    votes: int = 0
    now_s: float = 0.0

    def run(self) -> Outcome:
        self._drawn: list[tuple[float, float, list[float]]] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._free: dict[_Chain, Sequence[bool]] = {}
        self._open = 0
        self._people_for = [judge for judge, is_asked in enumerate(self.study.asks) if is_asked]
        for _ in range(self.study.chains):
            self._open_chain()
        study = self.study
        guests = self.paces.guests(self.rng, study.people, 60 * study.within_minutes, math.inf)
        self._seats = [_Seat(number, guest) for number, guest in enumerate(guests)]
        self._waiting: dict[int, _Seat] = {}
        for seat in self._seats:
            seat.leaves_after = self._leaves_after(seat.guest)
            self._later(seat.guest.arrives_s + seat.guest.reads_s, partial(self._looks, seat))
        while self._events:
            self.now_s, _, happens = heappop(self._events)
            happens()
        return self._outcome()

    def _leaves_after(self, guest: Guest) -> float:
        if guest.stays is None:
            return math.inf
        seconds = math.exp(guest.middle + self.paces.sigma**2 / 2)
        limits = [60 * each / seconds for each in (self.study.active_minutes, self.study.present_minutes) if each]
        limits += [self.study.votes_each] if self.study.votes_each else []
        limits.append(self.study.steps * self.study.most)
        return max(1.0, guest.stays * min(limits))

    def _later(self, at_s: float, happens: Callable[[], None]) -> None:
        heappush(self._events, (at_s, next(self._order), happens))

    # Chains

    def _open_chain(self) -> _Chain:
        chain = _Chain()
        self.chains.append(chain)
        self._go_on(chain)
        return chain

    def _go_on(self, chain: _Chain) -> None:
        """Open the chain's next step that needs a vote of a person; what needs none is decided on the way."""
        self._open -= chain.open is not None
        chain.open, chain.answered = None, set()
        while chain.steps < self.study.steps:
            log_r0, uniform, chances = self._next_step()
            if math.isinf(log_r0) and log_r0 > 0:
                # The state itself.
                chain.steps += 1
                continue
            opened = open_step(log_r0, uniform, self.study.budgets)
            self._ask_models(opened, chances)
            if opened.accepted is None:
                chain.open, chain.chances = opened, chances
                self._open += 1
                break
            chain.steps += 1
            chain.accepted += opened.accepted
        self._note_room(chain)

    def _note_room(self, chain: _Chain) -> None:
        """Keep the chain among those about which somebody may be asked, or take it from them."""
        room = () if chain.open is None else chain.open.room()
        if any(room[judge] for judge in self._people_for if room):
            self._free[chain] = room
        else:
            self._free.pop(chain, None)

    def _ask_models(self, opened: OpenStep | OneJudgeStep, chances: list[float]) -> None:
        for judge, is_asked in enumerate(self.study.asks):
            while not is_asked and opened.accepted is None and opened.room()[judge]:
                opened.promise(judge)
                opened.answer(judge, bool(self.rng.random() < chances[judge]))

    def _next_step(self) -> tuple[float, float, list[float]]:
        if not self._drawn:
            drawn = self.leans.steps(self.rng, _BLOCK, len(self.study.budgets))
            self._drawn = list(zip(*(each.tolist() for each in drawn), strict=True))
        return self._drawn.pop()

    # People

    def _looks(self, seat: _Seat) -> None:
        """Give somebody a pair, or let them wait, or go."""
        if seat.left_s is not None:
            return
        if self._is_over(seat):
            self._goes(seat, is_complete=True)
        elif pair := self._pair_for(seat):
            self._is_asked(seat, *pair)
        elif not self._some_go_on():
            self._goes(seat, is_complete=True)
        elif seat.waits_since is None:
            seat.waits_since = since = self.now_s
            self._waiting[seat.number] = seat
            self._later(since + seat.guest.patience_s, lambda: self._gives_up(seat, since))

    def _is_over(self, seat: _Seat) -> bool:
        study, present_s = self.study, self.now_s - seat.guest.arrives_s
        return (
            (study.votes_each is not None and seat.votes >= study.votes_each)
            or (study.active_minutes is not None and seat.active_s >= 60 * study.active_minutes)
            or (study.present_minutes is not None and present_s >= 60 * study.present_minutes)
            or (study.most_answers is not None and self.votes >= study.most_answers)
        )

    def _pair_for(self, seat: _Seat) -> tuple[_Chain, int] | None:
        judges = [seat.number] if self.study.is_panel else self._people_for
        found: tuple[_Chain, int] | None = None
        for chain in self._free:
            if found is not None and chain.steps >= found[0].steps:
                continue
            room = self._free[chain]
            for judge in judges:
                if room[judge] and (seat.number, judge) not in chain.answered:
                    found = chain, judge
                    break
        if found is None and len(self.chains) < self.study.most:
            chain = self._open_chain()
            found = (chain, judges[0]) if chain.open is not None and chain.open.room()[judges[0]] else None
        return found

    def _is_asked(self, seat: _Seat, chain: _Chain, judge: int) -> None:
        if seat.waits_since is not None:
            seat.waited_s += self.now_s - seat.waits_since
            seat.waits_since = None
            self._waiting.pop(seat.number, None)
        opened = chain.open
        assert opened is not None
        opened.promise(judge)
        self._note_room(chain)
        seconds = seat.guest.seconds() * (1 + self.study.trials)
        seat.active_s += seconds
        self._later(self.now_s + seconds, lambda: self._answers(seat, chain, opened, judge))

    def _answers(self, seat: _Seat, chain: _Chain, opened: OpenStep | OneJudgeStep, judge: int) -> None:
        self.votes += 1
        seat.votes += 1
        chain.answered.add((seat.number, judge))
        opened.answer(judge, bool(self.rng.random() < chain.chances[judge]))
        if opened.accepted is not None:
            chain.steps += 1
            chain.accepted += opened.accepted
            self._go_on(chain)
        else:
            self._note_room(chain)
        if seat.votes >= seat.leaves_after:
            self._goes(seat, is_complete=False)
        else:
            self._looks(seat)
        for other in list(self._waiting.values()):
            if not self._free and len(self.chains) == self.study.most and self._some_go_on():
                break
            self._looks(other)

    def _some_go_on(self) -> bool:
        return self._open > 0

    def _gives_up(self, seat: _Seat, since: float) -> None:
        if seat.waits_since == since and seat.left_s is None:
            seat.has_given_up = True
            self._goes(seat, is_complete=False)

    def _goes(self, seat: _Seat, *, is_complete: bool) -> None:
        if seat.waits_since is not None:
            seat.waited_s += self.now_s - seat.waits_since
            seat.waits_since = None
            self._waiting.pop(seat.number, None)
        seat.left_s, seat.is_complete = self.now_s, is_complete

    def _outcome(self) -> Outcome:
        lefts = [self.now_s if seat.left_s is None else seat.left_s for seat in self._seats]
        present = [left - seat.guest.arrives_s for seat, left in zip(self._seats, lefts, strict=True)]
        return Outcome(
            votes=self.votes,
            steps=sum(chain.steps for chain in self.chains),
            kept=sum(max(0, chain.steps - self.study.burn_in) for chain in self.chains),
            accepted=sum(chain.accepted for chain in self.chains),
            hours=sum(present) / 3600,
            waited_hours=sum(seat.waited_s for seat in self._seats) / 3600,
            wall_hours=max(lefts) / 3600,
            chains=len(self.chains),
            complete=sum(seat.is_complete for seat in self._seats),
            gave_up=sum(seat.has_given_up for seat in self._seats),
            is_finished=all(chain.open is None for chain in self.chains),
        )
