"""A study as it is planned: what is asked, of whom, for how long and for what pay. Numbers of the setup only."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from sampler.rules.ballots import checked_budgets

# Beyond so many votes a smaller study of the same shape is played in its place, and the figures are multiplied.
MOST_VOTES = 1500
_FEWEST_STEPS, _FEWEST_VOTES, _FEWEST_PEOPLE = 40, 60, 12


@dataclass(frozen=True)
class Scale:
    """How many times as long a study is as the one that is played in its place, and how many times as many people and
    chains it has.
    """

    longer: float = 1.0
    more: float = 1.0

    @property
    def votes(self) -> float:
        """How many times as many votes it has."""
        return self.longer * self.more


@dataclass(frozen=True)
class PlannedStudy:
    """What a plan is made for.

    Args:
        chains, most_chains: open at the start, and at most; the same for a fixed number.
        steps, burn_in: of each chain.
        budgets: N_i of each judge.
        people: who come.
        votes_each: after so many votes a part is complete; None for no limit.
        active_minutes: after so many minutes before pairs a part is complete, waits not counted; None for no limit.
        present_minutes: so long after their arrival somebody goes, waits counted; None for no limit.
        within_minutes: people come within so many minutes after the start, evenly; 0 for all at once.
        most_answers: of all people together; None for no limit.
        trials: answers to checks and repeats, for each vote.
        is_panel: person i answers for judge i only, one for each judge.
        instant: for each judge, whether a model answers, which takes no time beside people's; empty for people only.
        pay_hour: for each hour that somebody is there; None where pay is by the place, or is not known.
        pay_place: for each part that is complete; used where `pay_hour` is None.

    Raises:
        ValueError: a number is not what it can be; the message names it.
    """

    chains: int
    steps: int
    budgets: tuple[int, ...]
    people: int
    most_chains: int | None = None
    burn_in: int = 0
    votes_each: int | None = None
    active_minutes: float | None = None
    present_minutes: float | None = None
    within_minutes: float = 0.0
    most_answers: int | None = None
    trials: float = 0.0
    is_panel: bool = False
    instant: tuple[bool, ...] = ()
    pay_hour: float | None = None
    pay_place: float | None = None

    def __post_init__(self) -> None:
        checked_budgets(self.budgets)
        for name in ("chains", "steps", "people"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, not {getattr(self, name)}")
        for name in ("votes_each", "active_minutes", "present_minutes"):
            if getattr(self, name) is not None and not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be more than 0, not {getattr(self, name)}")
        if not 0 <= self.within_minutes < math.inf or not 0 <= self.trials < math.inf:
            raise ValueError("within_minutes and trials must be 0 or more")
        if self.is_panel and self.people != len(self.budgets):
            raise ValueError(f"a panel of {len(self.budgets)} judges has as many people, not {self.people}")

    @property
    def most(self) -> int:
        """How many chains there can be."""
        return max(self.chains, self.most_chains or 0)

    @property
    def asks(self) -> tuple[bool, ...]:
        """For each judge, whether people answer."""
        return tuple(not each for each in self.instant) or (True,) * len(self.budgets)

    def votes_possible(self, seconds_a_vote: float) -> float:
        """Return how many votes people can give at most if each takes so many seconds."""
        asked = sum(n for n, is_asked in zip(self.budgets, self.asks, strict=True) if is_asked)
        every_step = float(self.most * self.steps * max(1, asked))
        return min(every_step, self.people * self._votes_each(seconds_a_vote), self.most_answers or math.inf)

    def smaller(self, seconds_a_vote: float) -> tuple[PlannedStudy, Scale]:
        """Return a study of the same shape with fewer votes, and how much larger this one is.

        First everybody gives less on shorter chains, then fewer people come to fewer chains. A study of at most
        `MOST_VOTES` is returned as it is. Two plays of the smaller one differ more than two of this one do, so the
        intervals are rather too wide.
        """
        too_many = self.votes_possible(seconds_a_vote) / MOST_VOTES
        if too_many <= 1:
            return self, Scale()
        longer = max(1.0, min(too_many, self.steps / _FEWEST_STEPS, self._votes_each(seconds_a_vote) / _FEWEST_VOTES))
        fewest = max(_FEWEST_PEOPLE, 2 * max(self.budgets))
        more = 1.0 if self.is_panel else max(1.0, min(too_many / longer, self.people / fewest))
        steps = round(self.steps / longer)
        less = replace(
            self,
            people=round(self.people / more),
            chains=max(1, round(self.chains / more)),
            most_chains=None if self.most_chains is None else max(1, round(self.most_chains / more)),
            steps=steps,
            burn_in=min(round(self.burn_in / longer), steps - 1),
            votes_each=None if self.votes_each is None else max(1, round(self.votes_each / longer)),
            active_minutes=None if self.active_minutes is None else self.active_minutes / longer,
            present_minutes=None if self.present_minutes is None else self.present_minutes / longer,
            within_minutes=self.within_minutes / longer,
            most_answers=None if self.most_answers is None else max(1, round(self.most_answers / longer / more)),
        )
        return less, Scale(longer, more)

    def _votes_each(self, seconds_a_vote: float) -> float:
        minutes = [limit for limit in (self.active_minutes, self.present_minutes) if limit is not None]
        limits = [60 * limit / seconds_a_vote for limit in minutes]
        return min([*limits, *([] if self.votes_each is None else [self.votes_each])], default=math.inf)
