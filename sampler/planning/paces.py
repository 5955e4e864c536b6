"""How fast people are: a hierarchical log-normal model, before and after a pilot.

    log t = mu + theta + drift j / 100 + sigma e,    theta ~ N(0, tau^2), e ~ N(0, 1)

t is the time of somebody's answer in seconds, theta is the person's own, and j counts their answers. Some answers come
after a break. The prior of mu is a guess of the researcher's; a pilot of n people replaces it by the posterior, of
which tau is kept on a grid and mu is normal given tau. Everything else that a plan needs of people is here too: how
long they read, who leaves, how long they wait.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from sampler.planning.pilot import Pilot, PilotPerson

FloatArray = npt.NDArray[np.float64]

GUESS_SD: Final = 0.6
"""Of the logarithm of a guess: right within a factor of 2.2, four times in five."""
_TAUS: Final = np.exp(np.linspace(math.log(0.1), math.log(1.0), 24))
# Between people, response times differ by a third or so.
_TAU_MIDDLE, _TAU_SD = 0.3, 0.4
# One answer differs from another of the same person by half.
_SIGMA, _SIGMA_WEIGHT = 0.5, 10
_DRIFT_SD, _OWN_DRIFT_SD = 0.25, 0.1
_READING_S, _READING_SD, _OWN_READING_SD = 60.0, 0.7, 0.6
_LEAVING = (1.0, 8.0)
# A break in two hundred answers, of a minute or two.
_BREAKS, _BREAK_S, _BREAK_SD = (0.5, 100.0), 75.0, 0.8
_PATIENCE_S, _PATIENCE_SD, _OWN_PATIENCE_SD = 300.0, 0.7, 0.7
# What is so much longer than a person's middle time was a break.
_IS_BREAK: Final = 5.0


@dataclass(frozen=True)
class Paces:
    """One crowd that there might be; times in seconds, of each logarithm the middle and standard deviations."""

    mu: float
    tau: float
    sigma: float
    drift: float
    reading: float
    leaving: float
    """Which share of the people leaves before the end."""
    breaks: float
    """Before which share of the answers there is a break."""
    patience: float

    def guests(self, rng: np.random.Generator, people: int, within_s: float, most_s: float) -> list[Guest]:
        """Draw its people; `most_s` bounds how long somebody votes."""
        arrivals = np.sort(rng.random(people)) * within_s
        own = rng.normal(self.mu, self.tau, people)
        return [self._guest(rng, float(at), float(middle), most_s) for at, middle in zip(arrivals, own, strict=True)]

    def _guest(self, rng: np.random.Generator, arrives_s: float, middle: float, most_s: float) -> Guest:
        return Guest(
            arrives_s=arrives_s,
            reads_s=float(rng.lognormal(self.reading, _OWN_READING_SD)),
            middle=middle,
            drift=self.drift + float(rng.normal(0, _OWN_DRIFT_SD)),
            # Who leaves early does so sooner rather than later.
            stays=float(rng.beta(1, 2)) if rng.random() < self.leaving else None,
            patience_s=float(rng.lognormal(self.patience, _OWN_PATIENCE_SD)),
            sigma=self.sigma,
            breaks=self.breaks,
            rng=rng,
        )


_BLOCK: Final = 64


@dataclass
class Guest:
    """Somebody who comes."""

    arrives_s: float
    reads_s: float
    middle: float
    drift: float
    stays: float | None
    """Through which share of what they can give; None for all of it."""
    patience_s: float
    sigma: float
    breaks: float
    rng: np.random.Generator
    answers: int = 0

    def __post_init__(self) -> None:
        self._drawn: list[float] = []

    def seconds(self) -> float:
        """Return how long their next answer takes."""
        if not self._drawn:
            number = self.answers + np.arange(_BLOCK)[::-1]
            times = np.exp(self.middle + self.drift * np.minimum(number, 300) / 100 + self.sigma * self._normal())
            if self.breaks:
                lengths = _BREAK_S * np.exp(_BREAK_SD * self._normal())
                times += lengths * (self.rng.random(_BLOCK) < self.breaks)
            self._drawn = times.tolist()
        self.answers += 1
        return self._drawn.pop()

    def _normal(self) -> FloatArray:
        return self.rng.standard_normal(_BLOCK)


class PaceBeliefs:
    """What is believed of a crowd: from a guess, or from a pilot.

    Args:
        seconds_a_vote: the researcher's guess, for somebody in the middle.
        pilot: what a pilot has shown; None before one.
        varies: False for a planner that takes all people to be alike and every middle value to be right, which tests
            compare with.
    """

    def __init__(self, seconds_a_vote: float, pilot: Pilot | None = None, *, varies: bool = True) -> None:
        if not 0 < seconds_a_vote < math.inf:
            raise ValueError(f"seconds_a_vote must be more than 0, not {seconds_a_vote}")
        people = [] if pilot is None else [each for each in pilot.people if len(each.seconds)]
        self._varies = varies
        logs = [_without_breaks(each) for each in people]
        self._sigma, self._answers = _spread(logs)
        self._weights, self._mus, self._mu_sds = _posterior(math.log(seconds_a_vote), logs, self._sigma)
        self._reading = _normal_posterior(
            math.log(_READING_S),
            _READING_SD,
            [math.log(max(each.reading_s, 1.0)) for each in people if each.reading_s is not None],
            _OWN_READING_SD,
        )
        known = [each.is_complete for each in people if each.is_complete is not None]
        self._leaving = _LEAVING[0] + known.count(False), _LEAVING[1] + known.count(True)
        answers = sum(len(each.seconds) for each in people)
        breaks = answers - sum(map(len, logs))
        self._breaks = _BREAKS[0] + breaks, _BREAKS[1] + answers - breaks

    @property
    def seconds_a_vote(self) -> float:
        """The middle of the middles, in seconds."""
        return math.exp(float(self._weights @ self._mus))

    def draw(self, rng: np.random.Generator) -> Paces:
        """Return a crowd that there might be."""
        if not self._varies:
            mu, reading = float(self._weights @ self._mus), self._reading[0]
            leaving, breaks = (shape[0] / sum(shape) for shape in (self._leaving, self._breaks))
            return Paces(mu, 0.0, self._sigma, 0.0, reading, leaving, breaks, math.log(_PATIENCE_S))
        place = int(rng.choice(len(_TAUS), p=self._weights))
        return Paces(
            mu=float(rng.normal(self._mus[place], self._mu_sds[place])),
            tau=float(_TAUS[place]),
            sigma=self._sigma * float(np.exp(rng.normal(0, 1 / math.sqrt(2 * (self._answers + _SIGMA_WEIGHT))))),
            drift=float(rng.normal(0, _DRIFT_SD)),
            reading=float(rng.normal(*self._reading)),
            leaving=float(rng.beta(*self._leaving)),
            breaks=float(rng.beta(*self._breaks)),
            patience=float(rng.normal(math.log(_PATIENCE_S), _PATIENCE_SD)),
        )


def _without_breaks(person: PilotPerson) -> FloatArray:
    logs = np.log(np.maximum(np.asarray(person.seconds, dtype=np.float64), 0.05))
    return np.asarray(logs[logs <= np.median(logs) + math.log(_IS_BREAK)])


def _spread(logs: Sequence[FloatArray]) -> tuple[float, int]:
    """Return sigma, with the weight of some answers on what is usual; and how many answers there were."""
    squares = sum(float(np.sum((each - each.mean()) ** 2)) for each in logs)
    freedom = sum(len(each) - 1 for each in logs)
    return math.sqrt((_SIGMA_WEIGHT * _SIGMA**2 + squares) / (_SIGMA_WEIGHT + freedom)), freedom


def _posterior(guess: float, logs: Sequence[FloatArray], sigma: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the weights of the grid of tau, and the mean and standard deviation of mu at each.

    A person's mean of n logarithms is N(mu, tau^2 + sigma^2 / n).
    """
    prior = -((np.log(_TAUS / _TAU_MIDDLE) / _TAU_SD) ** 2) / 2
    if not logs:
        weights = np.exp(prior)
        return weights / weights.sum(), np.full(len(_TAUS), guess), np.full(len(_TAUS), GUESS_SD)
    means = np.array([each.mean() for each in logs])
    variances = _TAUS[:, None] ** 2 + sigma**2 / np.array([len(each) for each in logs])
    precision = (1 / variances).sum(axis=1) + 1 / GUESS_SD**2
    mus = ((means / variances).sum(axis=1) + guess / GUESS_SD**2) / precision
    # p(means | tau) = p(means | mu, tau) p(mu) / p(mu | means, tau) at any mu; here at its mean.
    fit = -((means - mus[:, None]) ** 2 / variances + np.log(variances)).sum(axis=1) / 2
    fit += -(((mus - guess) / GUESS_SD) ** 2) / 2 - np.log(precision) / 2
    weights = np.exp(prior + fit - np.max(prior + fit))
    return weights / weights.sum(), mus, 1 / np.sqrt(precision)


def _normal_posterior(mean: float, sd: float, seen: Sequence[float], own_sd: float) -> tuple[float, float]:
    precision = 1 / sd**2 + len(seen) / own_sd**2
    return (mean / sd**2 + sum(seen) / own_sd**2) / precision, 1 / math.sqrt(precision)
