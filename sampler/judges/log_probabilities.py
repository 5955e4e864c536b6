"""Votes from the log-probabilities of the two labels: the law of N sampled votes for the price of one request.

A model that is asked for one token at temperature T answers token v with probability

    P_T(v) = exp(l_v / T) / sum_w exp(l_w / T),        l_v its log-probability at temperature 1,

and, given that the answer is one of the labels, A with

    p = a / (a + b),    a = sum of exp(l_v / T) over the tokens v that say A,    b likewise.

The sum over all tokens cancels. So p is exact from the labels' own l_v, whatever the other tokens hold, both when
the server confines the reply to the labels and when other replies are asked again. Servers report l_v before the
temperature (vLLM, llama.cpp); one that reports it afterwards is harmless too if the request is made at temperature 1.

What is assumed: the votes it replaces differ only by their seed; a label is one token; and, where the reply is not
confined, the reply ends after an A as often as after a B (a longer reply would not have been counted).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sampler.judges.replies import LABELS, UnparsableReplyError, parse_label

# vLLM samples at 0.01 where it is asked for less, and takes the likeliest token below 0.00001.
LOWEST_TEMPERATURE: Final = 0.01


class NoPreferenceError(ValueError):
    """The log-probabilities do not give p; the message says why. Sampled votes have the same law, and may."""


@dataclass(frozen=True)
class LabelPreference:
    """What one request for log-probabilities says about one presentation.

    Args:
        first: p, the probability of a vote for A, the object that stands first.
        shortfall: the probability of any other reply at temperature 1: how unwilling the model is to answer.
        temperature: T of the votes.
    """

    first: float
    shortfall: float
    temperature: float


def label_preference(
    log_probabilities: Iterable[tuple[str, float]],
    temperature: float,
    *,
    confined: bool,
    most_shortfall: float = 0.5,
) -> LabelPreference:
    """Return p from the first token's most probable values.

    Args:
        log_probabilities: (token, l_v at temperature 1) of some tokens, both labels among them.
        temperature: T, at least `LOWEST_TEMPERATURE`.
        confined: whether sampled replies would be confined to exactly "A" or "B". If not, tokens such as " a" that
            `parse_label` forgives count as well, as they would in a sampled reply.
        most_shortfall: refuse a larger one.

    Raises:
        NoPreferenceError: a label is not among the tokens, so that p is not known; or the shortfall is too large.
        ValueError: a log-probability is above 0 or not a number; the temperature is too low.
    """
    checked_temperature(temperature)
    logs: dict[str, list[float]] = {label: [] for label in LABELS}
    for token, value in log_probabilities:
        if math.isnan(value) or value > 1e-6:
            raise ValueError(f"log_probabilities must be at most 0, not {value} for {token!r}")
        label = _label_of(token, confined)
        if label is not None:
            logs[label].append(value)
    if missing := [label for label in LABELS if not logs[label]]:
        raise NoPreferenceError(f"{' and '.join(missing)} not among the most probable replies: p is not known")
    shortfall = max(0.0, 1.0 - sum(math.exp(value) for values in logs.values() for value in values))
    if shortfall > most_shortfall:
        raise NoPreferenceError(
            f"the model replies something else than A or B with probability {shortfall:.2f}, above {most_shortfall:g}"
        )
    log_a, log_b = (_log_sum(logs[label], temperature) for label in LABELS)
    return LabelPreference(1.0 / (1.0 + math.exp(min(log_b - log_a, 700.0))), shortfall, temperature)


def drawn_vote(uniform: float, preference: float) -> bool:
    """Return the vote that a uniform number on [0, 1) draws from p: for the proposal iff it is below.

    Raises:
        ValueError: the probability is outside [0, 1].
    """
    if not 0.0 <= preference <= 1.0:
        raise ValueError(f"a preference must lie in [0, 1], not {preference}")
    return uniform < preference


def checked_temperature(temperature: float) -> float:
    """Return the temperature.

    Raises:
        ValueError: it is not a number from `LOWEST_TEMPERATURE` on. At 0 a judge's votes are copies of each other.
    """
    if not LOWEST_TEMPERATURE <= temperature < math.inf:
        raise ValueError(
            f"temperature must be at least {LOWEST_TEMPERATURE:g}, not {temperature}: "
            "at 0 a judge's votes are copies of each other"
        )
    return temperature


def _label_of(token: str, confined: bool) -> str | None:
    if confined:
        return token if token in LABELS else None
    try:
        return parse_label(token)
    except UnparsableReplyError:
        return None


def _log_sum(values: Sequence[float], temperature: float) -> float:
    scaled = [value / temperature for value in values]
    highest = max(scaled)
    if highest == -math.inf:
        raise NoPreferenceError("a label has probability 0")
    return highest + math.log(sum(math.exp(value - highest) for value in scaled))
