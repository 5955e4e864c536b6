"""Seeing from a rare label whether a server samples from the law that it tells: neither truncated nor sharpened.

A prompt is asked at a temperature at which one label has a small probability q, as its log-probabilities say. Then the
rare label must come at the rate q. Two sequential tests of A. Wald (Annals of Mathematical Statistics 16, 1945) look at
the replies one by one, each at the likelihood ratio of

    sharper   the rate at half the temperature, odds^2: a sharpened law; a truncated one has a rate of 0, still less
    flatter   the rate at twice the temperature, odds^(1/2)

against q, and end at log((1 - e) / e). Each errs with a probability of at most e / (1 - e), both on a server that
samples plainly and on one that is sharper, or flatter, by a factor of two or more. What lies between may go either way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from sampler.judges.replies import LABELS, NoPreferenceError, label_preference

Told = Literal["plain", "sharper", "flatter"]

ERROR: Final = 1e-3
"""e: how often each of the two tests is wrong, at most, but for a factor of 1 / (1 - e)."""
# A min-p of .05 or a top-p of .95 takes away a label that is as rare as this.
_WANTED: Final = 0.045
_RAREST: Final = 0.03
_MOST: Final = 0.15
_HALVINGS = 60


@dataclass(frozen=True)
class Tilt:
    """A label that is rare at a temperature.

    Args:
        label: the rare one.
        rate: q, of the replies that are labels.
        temperature: T.
    """

    label: str
    rate: float
    temperature: float


def tilt_of(listed: Sequence[tuple[str, float]], *, confined: bool, coldest: float, hottest: float) -> Tilt | None:
    """Return the temperature at which one label is as rare as is wanted, or nearly; None where there is none.

    Args:
        listed: the first tokens with their log-probabilities at temperature 1.
        confined: whether replies are confined to the labels; see `label_preference`.
        coldest, hottest: the temperatures that may be asked for.
    """
    try:
        first = label_preference(listed, hottest, confined=confined, most_shortfall=1.0).first
    except (NoPreferenceError, ValueError):
        return None
    label = LABELS[first > 0.5]

    def rate(temperature: float) -> float:
        told = label_preference(listed, temperature, confined=confined, most_shortfall=1.0).first
        return told if label == LABELS[0] else 1.0 - told

    low, high = coldest, hottest
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if rate(middle) > _WANTED else (middle, high)
    found = rate(high)
    return Tilt(label, found, high) if _RAREST <= found <= _MOST else None


@dataclass
class RareLabel:
    """What replies have told so far.

    Args:
        rate: q.
    """

    rate: float
    replies: int = 0
    rare: int = 0
    told: Told | None = None
    _sharper: _Ratio = field(init=False)
    _flatter: _Ratio = field(init=False)

    def __post_init__(self) -> None:
        if not 0 < self.rate < 0.5:
            raise ValueError(f"rate must lie between 0 and a half, not {self.rate}")
        self._sharper = _Ratio(self.rate, _powered(self.rate, 2))
        self._flatter = _Ratio(self.rate, _powered(self.rate, 0.5))

    def add(self, is_rare: bool) -> Told | None:
        """Take one reply that is a label, and return what all of them tell, if they do; then no more are taken."""
        if self.told is not None:
            return self.told
        self.replies, self.rare = self.replies + 1, self.rare + is_rare
        self._sharper.add(is_rare)
        self._flatter.add(is_rare)
        if self._sharper.is_other:
            self.told = "sharper"
        elif self._flatter.is_other:
            self.told = "flatter"
        elif self._sharper.is_plain and self._flatter.is_plain:
            self.told = "plain"
        return self.told


class _Ratio:
    """The logarithm of a likelihood ratio of another rate against the plain one; it stays where it has ended."""

    def __init__(self, plain: float, other: float) -> None:
        self._rare, self._usual = math.log(other / plain), math.log((1 - other) / (1 - plain))
        self._end = math.log((1 - ERROR) / ERROR)
        self._sum = 0.0

    @property
    def is_other(self) -> bool:
        return self._sum >= self._end

    @property
    def is_plain(self) -> bool:
        return self._sum <= -self._end

    def add(self, is_rare: bool) -> None:
        if not (self.is_other or self.is_plain):
            self._sum += self._rare if is_rare else self._usual


def _powered(rate: float, power: float) -> float:
    odds = float((rate / (1 - rate)) ** power)
    return odds / (1 + odds)


def least_rate(rare: int, replies: int, hot: float, temperature: float) -> float:
    """Return what a label's rate is at least at a lower temperature, where no log-probability tells it.

    The odds of single tokens at temperature T are those at `hot` to the power of hot / T. The rate at `hot` is taken at
    its lower confidence limit, of error `ERROR` (Clopper and Pearson). A label may be two tokens, with and without a
    space: then the odds may be less by a factor of 2^(hot / T - 1), which is allowed for.

    Args:
        rare, replies: how often the label came, and how many replies were labels.
        hot: their temperature.
        temperature: T, lower.
    """
    if not rare:
        return 0.0
    low, high = 0.0, rare / replies
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _tail(rare, replies, middle) < ERROR else (low, middle)
    power = hot / temperature
    odds = float((low / (1 - low)) ** power / 2 ** (power - 1))
    return odds / (1 + odds)


def _tail(least: int, count: int, rate: float) -> float:
    """Return the probability of at least so many successes."""
    return math.fsum(math.comb(count, k) * rate**k * (1 - rate) ** (count - k) for k in range(least, count + 1))
