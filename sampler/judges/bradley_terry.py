"""A simulated judge with hidden scores (equation 5 of the paper)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

import numpy as np
from scipy.special import expit

from sampler.chain import State


@dataclass(frozen=True)
class BradleyTerry(Generic[State]):
    """Prefers y to x with probability sigma(s(y) - s(x)).

    Args:
        score: s, in nats of log-odds.
    """

    score: Callable[[State], float]

    def preference(self, current: State, proposal: State) -> float:
        """Return the probability that this judge prefers `proposal` to `current`."""
        return float(expit(self.score(proposal) - self.score(current)))

    def vote(self, rng: np.random.Generator, current: State, proposal: State) -> bool:
        """Draw one vote: True for the proposal."""
        return bool(rng.random() < self.preference(current, proposal))
