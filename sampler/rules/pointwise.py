"""Pointwise-MH: each state is rated alone, and the rating is taken for a log density; the paper's four forms.

    text, image   min(1, r0 exp(sum_i (s_i(x') - s_i(x))))   s_i the rating / 10; separate (m of them)
    text          min(1, r0 exp(s(x') - s(x)))               s the rating / 10; joint (one for all properties)
    translation   min(1, r0 exp(s(x') - s(x)))               s the mean of N ratings from 1 to 10
    molecules     min(1, r0 (s(x') / s(x))^30)               s the mean of N ratings from 1 to 10

Exact for p0 times exp(sum s), exp(s) or s^30 if x always gets the same score; a rating drawn anew at every visit
has no target that anyone wrote down. None targets p0 exp(sum_i s_i) of the judges' own comparisons. The paper takes
r0 = 1 for texts, images and molecules, and n/n' for translations (see `Quest.log_r0`). Its normalised ratings are the
ratings divided by the highest, on both scales: the spreads that it publishes fit no other reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sampler.rules.shape import FloatArray, accept_by_weight


@dataclass(frozen=True)
class PointwiseSeparate:
    """min(1, r0 exp(sum_i (s_i(x') - s_i(x)))): each of m properties rated by itself, s_i = rating / highest.

    Args:
        lowest, highest: the ends of the scale, 1 and 10 for texts, 0 and 10 for images.

    Raises:
        ValueError: the scale is empty or has no positive end.
    """

    lowest: float = 1.0
    highest: float = 10.0
    name: ClassVar[str] = "pointwise_separate"

    def __post_init__(self) -> None:
        if not self.lowest < self.highest:
            raise ValueError("lowest must be below highest")
        if not self.highest > 0:
            raise ValueError("highest must be above 0: ratings are divided by it")

    def acceptance(self, log_r0: npt.ArrayLike, current: npt.ArrayLike, proposal: npt.ArrayLike) -> FloatArray:
        """Return the acceptance probability for raw ratings of shape (..., m); log_r0 has shape (...).

        Raises:
            ValueError: a rating is off the scale.
        """
        before, after = (np.sum(self._normalised(ratings), axis=-1) for ratings in (current, proposal))
        return accept_by_weight(log_r0, before, after)

    def _normalised(self, ratings: npt.ArrayLike) -> FloatArray:
        values = np.atleast_1d(np.asarray(ratings, dtype=np.float64))
        if not np.all((values >= self.lowest) & (values <= self.highest)):
            raise ValueError(f"ratings must lie in [{self.lowest:g}, {self.highest:g}]")
        return values / self.highest


@dataclass(frozen=True)
class PointwiseJoint:
    """min(1, r0 exp(s(x') - s(x))): all properties in one rating, s = rating / highest.

    Args:
        lowest, highest: as in `PointwiseSeparate`.
    """

    lowest: float = 1.0
    highest: float = 10.0
    name: ClassVar[str] = "pointwise_joint"

    def __post_init__(self) -> None:
        PointwiseSeparate(self.lowest, self.highest)

    def acceptance(self, log_r0: npt.ArrayLike, current: npt.ArrayLike, proposal: npt.ArrayLike) -> FloatArray:
        """Return the acceptance probability for raw ratings of the shape of log_r0."""
        one = PointwiseSeparate(self.lowest, self.highest)
        return one.acceptance(log_r0, np.asarray(current)[..., None], np.asarray(proposal)[..., None])


@dataclass(frozen=True)
class PointwiseDifference:
    """min(1, r0 exp(s(x') - s(x))) on mean ratings from 1 to 10, not normalised."""

    name: ClassVar[str] = "pointwise_difference"

    def acceptance(self, log_r0: npt.ArrayLike, current: npt.ArrayLike, proposal: npt.ArrayLike) -> FloatArray:
        """Return the acceptance probability; all of one shape."""
        return accept_by_weight(log_r0, current, proposal)


@dataclass(frozen=True)
class PointwisePower:
    """min(1, r0 (s(x') / s(x))^beta) on mean ratings from 1 to 10, not normalised.

    Args:
        beta: the paper's is 30, as in MARS.
    """

    beta: float = 30.0
    name: ClassVar[str] = "pointwise_power"

    def acceptance(self, log_r0: npt.ArrayLike, current: npt.ArrayLike, proposal: npt.ArrayLike) -> FloatArray:
        """Return the acceptance probability; all of one shape.

        Raises:
            ValueError: a rating is not positive.
        """
        before, after = np.asarray(current, dtype=np.float64), np.asarray(proposal, dtype=np.float64)
        if not (np.all(before > 0) and np.all(after > 0)):
            raise ValueError("ratings must be positive")
        return accept_by_weight(log_r0, self.beta * np.log(before), self.beta * np.log(after))
