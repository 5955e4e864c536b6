"""What a study will take: votes, steps, effective samples, hours, waits and money, each with a 90 % interval.

Crowds and leans are drawn as `paces` and `leans` believe of them, each crowd takes part in the study as `schedule`
plays it, and an interval goes from the 5 % to the 95 % quantile of what came out: a posterior predictive interval. It
holds what is not known of people and of their leans, and chance. It does not hold that fewer people come than were
asked for, nor faults.

Effective samples are no simulation of the kernel. With a share a of proposals accepted, the slowest function of an
independent sampler with equal weights has the autocorrelation time (2 - a) / a; kernels that make small moves need L
times as long. L is not known before the chains have run, and is drawn between 1 and 20, uniformly on a logarithmic
scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sampler.planning.leans import LeanBeliefs
from sampler.planning.paces import PaceBeliefs
from sampler.planning.schedule import Outcome, play
from sampler.planning.study import PlannedStudy, Scale

COVERED: Final = 0.9
"""How probable it is that a figure comes to lie in its interval, if the beliefs are right."""
DRAWS: Final = 400
_LAGS: Final = (1.0, 20.0)
# All plays of a forecast together, so that a page does not wait for long.
_ALL_VOTES: Final = 100_000
_FEWEST_DRAWS: Final = 60


@dataclass(frozen=True)
class ForecastInterval:
    """A figure: its 5 % and 95 % quantiles, and the median."""

    low: float
    middle: float
    high: float

    def holds(self, value: float) -> bool:
        """True if a figure lies in it, ends included."""
        return self.low <= value <= self.high

    @property
    def width(self) -> float:
        """How many times the lower end the upper one is; 1 where both are 0."""
        if self.low == self.high:
            return 1.0
        return self.high / self.low if self.low > 0 else math.inf


@dataclass(frozen=True)
class StudyForecast:
    """What a study will take.

    Args:
        votes: of people.
        steps, chains: decided, and open, in the end.
        effective_samples: of the slowest property, roughly: see above.
        hours: that people are there, reading and waits included.
        wall_hours: from the start until the last person has gone.
        waiting: which share of their hours people wait.
        money: in the currency of the pay; None where that is not known.
        complete: people whose part is complete.
        kept_share: which share of the steps comes after the burn-in, in the middle.
        finished: how probable it is that every chain comes to its end.
        gave_up: how many people go because they wait for too long, on average.
    """

    votes: ForecastInterval
    steps: ForecastInterval
    chains: ForecastInterval
    effective_samples: ForecastInterval
    hours: ForecastInterval
    wall_hours: ForecastInterval
    waiting: ForecastInterval
    money: ForecastInterval | None
    complete: ForecastInterval
    votes_a_step: ForecastInterval
    kept_share: float
    finished: float
    gave_up: float


def forecast_study(
    rng: np.random.Generator, study: PlannedStudy, paces: PaceBeliefs, leans: LeanBeliefs, draws: int | None = None
) -> StudyForecast:
    """Return what a study will take.

    Args:
        rng: of the plays.
        study, paces, leans: what is planned, and what is believed of its people.
        draws: plays; None for as many as a page can wait for.
    """
    seconds = paces.seconds_a_vote
    smaller, scale = study.smaller(seconds)
    if draws is None:
        votes = max(1.0, smaller.votes_possible(seconds))
        draws = int(np.clip(_ALL_VOTES / votes, _FEWEST_DRAWS, DRAWS))
    outcomes = [play(rng, smaller, paces.draw(rng), leans.draw(rng)) for _ in range(draws)]
    return _forecast(rng, study, outcomes, scale)


def _forecast(
    rng: np.random.Generator, study: PlannedStudy, outcomes: Sequence[Outcome], scale: Scale
) -> StudyForecast:
    def over(figure: Callable[[Outcome], float], by: float = 1.0) -> ForecastInterval:
        return _interval([by * figure(each) for each in outcomes])

    return StudyForecast(
        votes=over(lambda each: each.votes, scale.votes),
        steps=over(lambda each: each.steps, scale.votes),
        chains=over(lambda each: each.chains, scale.more),
        effective_samples=_interval([scale.votes * _effective(rng, each) for each in outcomes]),
        hours=over(lambda each: each.hours, scale.votes),
        wall_hours=over(lambda each: each.wall_hours, scale.longer),
        waiting=over(lambda each: each.waited_hours / each.hours if each.hours else 0.0),
        money=_money(study, outcomes, scale),
        complete=over(lambda each: each.complete, scale.more),
        votes_a_step=over(lambda each: each.votes / each.steps if each.steps else 0.0),
        kept_share=float(np.median([each.kept / each.steps if each.steps else 0.0 for each in outcomes])),
        finished=float(np.mean([each.is_finished for each in outcomes])),
        gave_up=scale.more * float(np.mean([each.gave_up for each in outcomes])),
    )


def _money(study: PlannedStudy, outcomes: Sequence[Outcome], scale: Scale) -> ForecastInterval | None:
    if study.pay_hour is not None:
        return _interval([study.pay_hour * scale.votes * each.hours for each in outcomes])
    if study.pay_place is not None:
        return _interval([study.pay_place * scale.more * each.complete for each in outcomes])
    return None


def _effective(rng: np.random.Generator, outcome: Outcome) -> float:
    if not (outcome.steps and outcome.accepted):
        return 0.0
    share = outcome.accepted / outcome.steps
    lag = math.exp(rng.uniform(math.log(_LAGS[0]), math.log(_LAGS[1])))
    return outcome.kept * share / (2 - share) / lag


def _interval(values: Sequence[float]) -> ForecastInterval:
    low, middle, high = np.quantile(values, [(1 - COVERED) / 2, 0.5, (1 + COVERED) / 2])
    return ForecastInterval(float(low), float(middle), float(high))
