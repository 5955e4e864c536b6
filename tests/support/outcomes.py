"""Every outcome of what a program draws, with its exact probability: the program is followed, not written again.

It gets a generator whose numbers are intervals of [0, 1). As soon as it asks something of a number (is it below this?
which whole number is it?) whose answer changes within the interval, the interval is cut there, and the program runs
once for each side.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterator
from typing import Any

# Halvings of an interval after which two doubles inside [0, 1) are neighbours.
_HALVINGS = 64


def every_outcome(draw: Callable[[Any], Any]) -> Iterator[tuple[float, Any]]:
    """Yield (probability, result) for every way in which `draw(rng)` can go; `rng` knows `random` only."""
    path = _Path()
    while True:
        rng = Followed(path)
        result = draw(rng)
        yield rng.probability, result
        if not path.advance():
            return


def distribution_of(draw: Callable[[Any], Hashable]) -> dict[Any, float]:
    """Return the distribution of what `draw(rng)` returns."""
    parts: dict[Any, list[float]] = {}
    for probability, result in every_outcome(draw):
        parts.setdefault(result, []).append(probability)
    return {result: math.fsum(some) for result, some in parts.items()}


class _Path:
    """The sides taken at each cut of one run, and which are still to take."""

    def __init__(self) -> None:
        self._sides: list[bool] = []
        self._at = 0

    def side(self) -> bool:
        """Return the side to take at this cut; at a new one, first the lower."""
        if self._at == len(self._sides):
            self._sides.append(False)
        self._at += 1
        return self._sides[self._at - 1]

    def advance(self) -> bool:
        """Turn to the next run; False when there is none."""
        while self._sides and self._sides[-1]:
            self._sides.pop()
        if self._sides:
            self._sides[-1] = True
        self._at = 0
        return bool(self._sides)


class Followed:
    """A generator of intervals."""

    def __init__(self, path: _Path) -> None:
        self._path, self._drawn = path, []

    @property
    def probability(self) -> float:
        """Of all answers given so far."""
        return math.prod(interval.size for interval in self._drawn)

    def random(self, size: int | None = None) -> Any:
        """Return a number, or so many."""
        if size is not None:
            return _Numbers(self.random() for _ in range(size))
        self._drawn.append(_Interval(self._path))
        return Number(self._drawn[-1])


class _Numbers(list):
    """What NumPy would give as an array."""

    def tolist(self) -> list[Number]:
        return list(self)


class _Interval:
    """What is known of one uniform number: it is at least `low` and below `high`."""

    def __init__(self, path: _Path) -> None:
        self._path, self._low, self._high = path, 0.0, 1.0

    @property
    def size(self) -> float:
        return self._high - self._low

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest double in it."""
        return self._low, math.nextafter(self._high, 0.0)

    def ask(self, question: Callable[[float], bool]) -> bool:
        """Return the answer to a question that changes its answer at most once from 0 to 1."""
        low, high = self.ends
        below, above = question(low), question(high)
        if below == above:
            return below
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if question(middle) == below else (low, middle)
        if self._path.side():
            self._low = high
            return above
        self._high = high
        return below


class Number:
    """A monotone function of a uniform number that is known to lie in an interval."""

    def __init__(self, interval: _Interval, of: Callable[[float], float] = lambda number: number) -> None:
        self._interval, self._of = interval, of

    def _compared(self, compare: Callable[[float, float], bool], other: float) -> bool:
        if isinstance(other, Number):
            raise TypeError("two numbers that are not known cannot be compared")
        return self._interval.ask(lambda number: compare(self._of(number), other))

    def __lt__(self, other: float) -> bool:
        return self._compared(operator.lt, other)

    def __le__(self, other: float) -> bool:
        return self._compared(operator.le, other)

    def __gt__(self, other: float) -> bool:
        return self._compared(operator.gt, other)

    def __ge__(self, other: float) -> bool:
        return self._compared(operator.ge, other)

    def __int__(self) -> int:
        while True:
            low, high = sorted(int(self._of(end)) for end in self._interval.ends)
            if low == high:
                return low
            _ = self < (low + high + 1) // 2

    def _then(self, step: Callable[[float, float], float], other: float) -> Number:
        return Number(self._interval, lambda number: step(self._of(number), other))

    def __sub__(self, other: float) -> Number:
        return self._then(operator.sub, other)

    def __rsub__(self, other: float) -> Number:
        return self._then(lambda mine, theirs: theirs - mine, other)

    def __mul__(self, other: float) -> Number:
        return self._then(operator.mul, other)

    __rmul__ = __mul__

    def __truediv__(self, other: float) -> Number:
        return self._then(operator.truediv, other)

    def __pow__(self, other: float) -> Number:
        return self._then(operator.pow, other)
