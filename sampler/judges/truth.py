"""Seeing from replies whether a server samples from the law that it tells: whether its votes are what p says.

**Truth.** Pairs whose likelier label has a probability of .6 to .85 are asked many times in both orders. All replies
are looked at together in the family logit p -> beta * logit p. There beta = 1 is what was reported; above 1 the law is
sharper (or truncated), below 1 flatter, below 0 the labels are swapped. If r is the log-likelihood ratio of the
likeliest beta against 1, a truthful server reaches it with a probability of at most 2 exp(-r), however few the
replies are (H. Chernoff, Annals of Mathematical Statistics 23, 1952). There are two looks, each at half of `LEVEL`:
after `REPLIES` replies, and, where their chance is below `DOUBT`, after twice as many. Simulated with the seeds of
`tests/sampler/judges/test_truth.py`, p of the likelier labels before the colon, the share found at the first look and
at any:

    a truthful server                  .6, .83, .65 to .83: 1 and 3 of 400,000 tests; .04 of them have a second look
    top-p .8                           .83: 1 and 1, at 57 replies; .83 in one order and .7 in the other: .29 and .97
    .755 reported for .606             .51 and .97
    twice, half the temperature        .83: .60 and .98; .94 and 1
    1.4, .7 times the temperature      .83: .04 and .27; .06 and .43

**Rare label.** A prompt is asked at a temperature at which one label has a small probability q, as its
log-probabilities say. Then the rare label must come at the rate q. The replies are looked at in the same way: in 400 of
them a label of q = .045 that was taken away, by a min-p of .05 or a top-p of .95, is always missed, and one at half the
temperature, which comes at odds^2, in .94 of all tests.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sampler.judges.replies import LABELS, NoPreferenceError, label_preference

Listed = Sequence[tuple[str, float]]
"""The likeliest first tokens with their log-probabilities at temperature 1."""

LEVEL: Final = 1e-4
"""How often an honest server is said to sample otherwise, at most, in both looks together."""
DOUBT: Final = 0.2
REPLIES: Final = 200
# Below, an honest server's replies say little; above, a truncated one may leave only one label, as an honest one might.
_LEAST, _LARGEST = 0.6, 0.85
# Some servers truncate before the temperature: far from 1 that would not show.
_TEMPERATURES: Final = tuple(0.7 * (1.5 / 0.7) ** (step / 16) for step in range(17))
_STEEPEST = 20.0

ERROR: Final = 1e-3
"""How often the bound of a rate that no log-probability tells is wrong, at most."""
# A min-p of .05 or a top-p of .95 takes away a label that is as rare as this.
_WANTED: Final = 0.045
_RAREST: Final = 0.03
_MOST: Final = 0.15
_HALVINGS = 60


@dataclass(frozen=True)
class Asked:
    """One presentation of a pair, asked many times.

    Args:
        first: p, the reported probability of A at the temperature of the replies, between 0 and 1.
        replies: how many were labels.
        firsts: how many of these were A.
    """

    first: float
    replies: int
    firsts: int


@dataclass(frozen=True)
class Agreement:
    """How well replies agree with what was reported.

    Args:
        power: the likeliest beta; 1 is agreement, and 20 stands for whatever is above.
        chance: of replies that agree no better is at most that, where beta is 1.
    """

    power: float
    chance: float

    @property
    def is_none(self) -> bool:
        """Whether the difference is significant."""
        return self.chance < LEVEL / 2

    @property
    def is_doubtful(self) -> bool:
        """Whether as many replies again are to be looked at."""
        return self.chance < DOUBT and not self.is_none


def agreement(asked: Sequence[Asked]) -> Agreement:
    """Return how well all replies to some presentations agree with what was reported.

    Raises:
        ValueError: a reported probability is 0 or 1.
    """
    if not all(0 < each.first < 1 for each in asked):
        raise ValueError("a reported probability must lie between 0 and 1")
    # Here and not above: programs that judge nothing start without SciPy.
    from scipy.special import expit, log_expit, logit

    logits = logit([each.first for each in asked])
    replies, firsts = np.array([each.replies for each in asked]), np.array([each.firsts for each in asked])

    def slope(power: float) -> float:
        return float(logits @ (firsts - replies * expit(power * logits)))

    def likelihood(power: float) -> float:
        return float(firsts @ log_expit(power * logits) + (replies - firsts) @ log_expit(-power * logits))

    low, high = -_STEEPEST, _STEEPEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    ratio = max(0.0, likelihood(high) - likelihood(1.0))
    return Agreement(high, min(1.0, 2.0 * math.exp(-ratio)))


@dataclass(frozen=True)
class Fit:
    """A temperature at which a pair's reported probabilities can be compared with replies.

    Args:
        temperature: T.
        firsts: p of A at T, for each order.
    """

    temperature: float
    firsts: tuple[float, ...]


def fit_of(listed: Sequence[Listed], *, confined: bool, hottest: float) -> Fit | None:
    """Return the temperature near 1 at which the likelier label of each order has a probability of .6 to .85, the
    largest as near .85 as can be, where most is seen; None where there is none.

    Args:
        listed: of each order.
        confined: whether replies are confined to the labels; see `label_preference`.
        hottest: the highest temperature that may be asked for.

    Raises:
        NoDistributionError: log-probabilities are no distribution.
    """
    found: dict[float, Fit] = {}
    for temperature in (each for each in _TEMPERATURES if each <= hottest):
        try:
            firsts = tuple(label_preference(each, temperature, confined=confined).first for each in listed)
        except NoPreferenceError:
            return None
        likelier = [max(first, 1 - first) for first in firsts]
        if min(likelier) >= _LEAST and max(likelier) <= _LARGEST:
            found[max(likelier)] = Fit(temperature, firsts)
    return found[max(found)] if found else None


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


def tilt_of(listed: Listed, *, confined: bool, coldest: float, hottest: float) -> Tilt | None:
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
    from scipy.special import betaincinv

    low = float(betaincinv(rare, replies - rare + 1, ERROR))
    power = hot / temperature
    odds = float((low / (1 - low)) ** power / 2 ** (power - 1))
    return odds / (1 + odds)
