"""QUEST: min(1, (n / n') exp((r(y') - r(y)) / beta)), r = logit(clip(QE, 1e-3, 1 - 1e-3)).

Exact for p0(y) exp(r(y) / beta): the quality estimate QE (CometKiwi) becomes a log density, whatever people prefer.
The suffix of a translation of n tokens is drawn again from a cut chosen uniformly, so r0 = n / n'.
(Appendix, machine translation.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sampler.rules.odds import log_odds
from sampler.rules.shape import FloatArray
from sampler.rules.tilt import accept_by_weight

# The temperatures the paper compares.
PUBLISHED_BETAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
CLIP = 1e-3


@dataclass(frozen=True)
class Quest:
    """The rule of QUEST on `Quest.reward`.

    Args:
        beta: temperature; the paper compares `PUBLISHED_BETAS`.

    Raises:
        ValueError: beta is not positive.
    """

    beta: float = 0.1
    name: ClassVar[str] = "quest"

    def __post_init__(self) -> None:
        if not self.beta > 0:
            raise ValueError(f"beta must be positive, not {self.beta}")

    @staticmethod
    def reward(quality: npt.ArrayLike) -> FloatArray:
        """Return r = logit(clip(QE, 1e-3, 1 - 1e-3)), any shape."""
        return log_odds(np.clip(np.asarray(quality, dtype=np.float64), CLIP, 1 - CLIP))

    @staticmethod
    def log_r0(length: npt.ArrayLike, proposed_length: npt.ArrayLike) -> FloatArray:
        """Return log(n / n'), n and n' the tokens of y and y', any shape.

        Raises:
            ValueError: a length is less than 1.
        """
        before, after = np.asarray(length, dtype=np.float64), np.asarray(proposed_length, dtype=np.float64)
        if not (np.all(before >= 1) and np.all(after >= 1)):
            raise ValueError("lengths must be at least 1")
        return np.asarray(np.log(before) - np.log(after))

    def acceptance(self, log_r0: npt.ArrayLike, current: npt.ArrayLike, proposal: npt.ArrayLike) -> FloatArray:
        """Return the acceptance probability for rewards r(y) and r(y'), all of one shape."""
        before, after = np.asarray(current, dtype=np.float64), np.asarray(proposal, dtype=np.float64)
        return accept_by_weight(log_r0, before / self.beta, after / self.beta)
