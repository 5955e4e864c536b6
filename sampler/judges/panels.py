"""A panel: named people, each of whom is a judge of their own with one vote on each pair.

Seat k prefers x' to x with log-odds s_k(x') - s_k(x). Under the N-vote rule with several judges, each of budget 1, the
chains sample p0 exp(sum_k s_k), however much the seats differ. A crowd of different people has no such law: the average
of their preferences is not Bradley-Terry.

Two things follow from one person behind each judge. A judge has one vote: a second one on the same pair in the same
step would repeat the first. And an answer that is remembered from an earlier step is no fresh draw, so it is counted
how often a seat met a pair again, and how often it then chose as before (`PairsMet`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from sampler.judges.recipe import JudgeRecipe
from sampler.judges.sources import PeopleSource, SeatSource

_TWICE = "would ask the same person the same pair twice in a step, and the second answer is no fresh draw"


def seats_of(judges: Sequence[JudgeRecipe]) -> int:
    """Return how many seats a panel has; 0 where there is no panel."""
    return max((judge.source.seat for judge in judges if isinstance(judge.source, SeatSource)), default=0)


def best_acceptance(answers: int) -> float:
    """Return how probable it is that a step is accepted if nobody cares and r0 = 1: all answers must be a yes.

    Args:
        answers: how many there are on a pair, one for each question and seat.
    """
    return float(0.5**answers)


def panel_misfits(judges: Sequence[JudgeRecipe]) -> Iterator[tuple[str, str]]:
    """Yield the field and the reason of each judge that does not fit a panel; nothing where there is none."""
    seats = seats_of(judges)
    for place, judge in enumerate(judges) if seats else ():
        if isinstance(judge.source, PeopleSource):
            yield f"judges.{place}.source", "must be a seat or a model: with a panel, nobody else votes"
        elif isinstance(judge.source, SeatSource):
            yield from ((f"judges.{place}.{name}", reason) for name, reason in _no_fresh_draw(judge))
    for question, asked in _seats_by_question(judges).items():
        if asked != list(range(1, seats + 1)):
            numbers = ", ".join(map(str, asked))
            message = f"“{question}” is asked of seats {numbers}; it must be asked of each of 1 to {seats}, once"
            yield "judges", message


def _no_fresh_draw(judge: JudgeRecipe) -> Iterator[tuple[str, str]]:
    if judge.budget != 1:
        yield "budget", f"must be 1 for a seat: more votes {_TWICE}"
    if judge.order != "random":
        yield "order", f"must be 'random' for a seat: two judges, one for each order, {_TWICE}"


def _seats_by_question(judges: Sequence[JudgeRecipe]) -> dict[str, list[int]]:
    """Return which seats each question is asked of, in order."""
    asked: defaultdict[str, list[int]] = defaultdict(list)
    for judge in judges:
        if isinstance(judge.source, SeatSource):
            asked[judge.question].append(judge.source.seat)
    return {question: sorted(seats) for question, seats in asked.items()}


@dataclass
class PairsMet:
    """How often one person met a pair again, and how often they then chose the object that they chose the last time.

    A person who is asked for the first time each time agrees on an even pair every second time.
    """

    met_again: int = 0
    agreed: int = 0
    _chosen: dict[tuple[str, frozenset[Hashable]], Hashable] = field(default_factory=dict)

    def note(self, question: str, chosen: Hashable, other: Hashable) -> None:
        """Take in an answer, in the order in which they were given: which object was chosen, and which was not."""
        pair = question, frozenset((chosen, other))
        if pair in self._chosen:
            self.met_again += 1
            self.agreed += self._chosen[pair] == chosen
        self._chosen[pair] = chosen
