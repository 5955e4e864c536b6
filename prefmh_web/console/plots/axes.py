"""Axes: round numbers around what is drawn, and where a number lies between them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

# Drawings are so wide and so high, in units that the page stretches.
EXTENT = 1000
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_MOST_DIGITS = 7


@dataclass(frozen=True)
class Axis:
    """One axis, from one round number to another, with evenly spaced ticks that include both ends."""

    label: str
    low: float
    high: float
    intervals: int

    @property
    def ticks(self) -> list[str]:
        """The numbers at the ticks, from low to high."""
        step = (self.high - self.low) / self.intervals
        digits = next((d for d in range(_MOST_DIGITS) if math.isclose(round(step, d), step, rel_tol=1e-6)), None)
        numbers = (self.low + k * step for k in range(self.intervals + 1))
        return [f"{each:.3g}" if digits is None else f"{each:,.{digits}f}" for each in numbers]

    @property
    def places(self) -> list[int]:
        """Where the ticks lie, in units of the drawing."""
        return [round(EXTENT * k / self.intervals) for k in range(self.intervals + 1)]

    def units(self, values: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return where numbers lie, in units of the drawing from the low end, rounded."""
        scaled = (np.asarray(values, dtype=np.float64) - self.low) / (self.high - self.low) * EXTENT
        return np.rint(np.clip(scaled, 0, EXTENT)).astype(np.int64)


def axis_of(label: str, low: float, high: float, intervals: int = 4, is_whole: bool = False) -> Axis:
    """Return an axis of about so many intervals whose ends are round numbers around `low` and `high`.

    Args:
        is_whole: there is nothing between two whole numbers, as with steps.

    Raises:
        ValueError: an end is not finite.
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError("an axis needs finite numbers")
    if high <= low:
        # One value: it lies in the middle, or, if that is 0, at the low end: what is counted has nothing below.
        around = abs(low) / 2
        low, high = low - around, (high + around) or 1.0
    rough = (high - low) / intervals
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in _STEPS if power * each >= rough * (1 - 1e-9))
    if is_whole:
        step = max(1.0, float(math.ceil(step)))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return Axis(label, first * step, last * step, max(1, last - first))
