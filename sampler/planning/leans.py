"""How people lean on a chain's proposals, and what the base law says of them: what a step will cost in votes.

A voter prefers the proposal with probability 1 / (1 + exp(-g)), where the gain g differs from step to step:

    g ~ N(m, s^2)

(m, s) is kept on a grid. A pilot's steps weigh it by the mean of p^k (1 - p)^(n - k) over g. Base ratios come from
proposals that the kernel made, on paper before a pilot and in it afterwards.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit

from sampler.planning.pilot import Pilot

FloatArray = npt.NDArray[np.float64]

_SPREADS: Final = np.exp(np.linspace(math.log(0.15), math.log(5.0), 16))
_SPREAD_MIDDLE, _SPREAD_SD = 1.0, 0.8
# A chain that has climbed is offered worse rather than better objects: -m / s.
_SLOPES: Final = np.linspace(-0.3, 1.2, 11)
_SLOPE_MIDDLE, _SLOPE_SD = 0.3, 0.4
# What a pilot's first steps are offered is better than what a long chain is.
_LATER_SLOPE, _LATER_SD = 0.15, 0.2
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
# So many base ratios in a row say no more than one.
_ALIKE: Final = 4


@dataclass(frozen=True)
class Leans:
    """One law of gains and base ratios that there might be."""

    mean: float
    spread: float
    ratios: FloatArray

    def steps(self, rng: np.random.Generator, number: int, judges: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Draw log r0 and U, shape (number), and the probability of a vote for x', shape (number, judges)."""
        gains = rng.normal(self.mean, self.spread, (number, judges))
        return rng.choice(self.ratios, number), rng.random(number), np.asarray(expit(gains))


class LeanBeliefs:
    """What is believed of them.

    Args:
        log_ratios: log r0 of proposals as the kernel makes them; +inf where it proposes the state itself, which needs
            no vote. Empty where nothing is known, for r0 = 1.
        pilot: what a pilot has shown; None before one.

    Raises:
        ValueError: a ratio is NaN.
    """

    def __init__(self, log_ratios: Sequence[float] = (), pilot: Pilot | None = None, *, varies: bool = True) -> None:
        self._ratios = np.asarray(log_ratios if len(log_ratios) else [0.0], dtype=np.float64)
        if np.any(np.isnan(self._ratios)):
            raise ValueError("log_ratios must be numbers")
        spreads, slopes = np.meshgrid(_SPREADS, _SLOPES, indexing="ij")
        self._spreads, self._means = spreads.ravel(), -(slopes * spreads).ravel()
        log_weights = -((np.log(spreads / _SPREAD_MIDDLE) / _SPREAD_SD) ** 2) / 2
        log_weights = (log_weights - ((slopes - _SLOPE_MIDDLE) / _SLOPE_SD) ** 2 / 2).ravel()
        for (votes_for, votes_cast), steps in _tallies(pilot).items():
            log_weights = log_weights + steps * self._likelihood(votes_for, votes_cast)
        weights = np.exp(log_weights - log_weights.max())
        self._weights: FloatArray = weights / weights.sum()
        self._varies, self._has_pilot = varies, pilot is not None

    def draw(self, rng: np.random.Generator) -> Leans:
        """Return a law that there might be."""
        if not self._varies:
            return Leans(float(self._weights @ self._means), float(self._weights @ self._spreads), self._ratios)
        place = int(rng.choice(len(self._weights), p=self._weights))
        spread, mean = float(self._spreads[place]), float(self._means[place])
        if self._has_pilot:
            mean -= spread * float(rng.normal(_LATER_SLOPE, _LATER_SD))
        ratios = rng.choice(self._ratios, max(1, len(self._ratios) // _ALIKE))
        return Leans(mean, spread, ratios)

    def _likelihood(self, votes_for: int, votes_cast: int) -> FloatArray:
        gains = self._means[:, None] + self._spreads[:, None] * _NODES
        logs = votes_for * log_expit(gains) + (votes_cast - votes_for) * log_expit(-gains)
        return np.asarray(np.log(np.exp(logs) @ _NODE_WEIGHTS))


def _tallies(pilot: Pilot | None) -> Counter[tuple[int, int]]:
    """Count the judges of steps by what was said to them."""
    return Counter(
        (votes_for, votes_cast)
        for step in (() if pilot is None else pilot.steps)
        for votes_for, votes_cast in zip(step.votes_for, step.votes_cast, strict=True)
        if votes_cast
    )
