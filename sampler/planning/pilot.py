"""What a pilot shows: how long its people took, and what they said about its steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, median


@dataclass(frozen=True)
class PilotPerson:
    """Somebody who took part in a pilot.

    Args:
        seconds: of their answers, in their order, each from the moment when the pair was shown.
        reading_s: from joining to the first pair; None where it is not known.
        is_complete: whether they stayed to the end; None where it is not known.
    """

    seconds: tuple[float, ...]
    reading_s: float | None = None
    is_complete: bool | None = None


@dataclass(frozen=True)
class PilotStep:
    """A step of a pilot: k_i of n_i votes of each judge, decided or not; none where it was decided without votes.

    Which votes were left out depends only on votes that are here, so nothing is lost by it: the likelihood of a
    probability p is p^k (1 - p)^(n - k) with early stopping as without.
    """

    votes_for: tuple[int, ...]
    votes_cast: tuple[int, ...]


@dataclass(frozen=True)
class Pilot:
    """All of a pilot."""

    people: tuple[PilotPerson, ...]
    steps: tuple[PilotStep, ...]

    @property
    def votes(self) -> int:
        """How many answers were timed."""
        return sum(len(each.seconds) for each in self.people)

    @property
    def voters(self) -> int:
        """How many people gave them."""
        return sum(bool(each.seconds) for each in self.people)

    @property
    def seconds_a_vote(self) -> float:
        """What somebody in the middle needs: the geometric mean of people's medians.

        Raises:
            statistics.StatisticsError: nobody has voted.
        """
        middles = [math.log(max(median(each.seconds), 0.05)) for each in self.people if each.seconds]
        return math.exp(fmean(middles))
