"""Seeing from a server's replies that it truncates, although it was told not to.

A server that keeps only its likeliest tokens draws from another law than it reports: a vote for the less likely object
may become impossible. Asked for one token at a high temperature T, an untruncated model gives token v with probability

    P_T(v) = p_v^(1/T) / sum_w p_w^(1/T),        p_v its probability at temperature 1,

and the likeliest tokens' p_v are known from log-probabilities. For T >= 1 the tokens that are not listed, of mass r
together, weigh at least r^(1/T), since x^(1/T) is concave. So the share of replies outside the j likeliest tokens has a
lower bound, and n independent replies that all lie among these j have a probability of at most (1 - share)^n.

Top-k, top-p and min-p each keep the j likeliest tokens for some j, whether they are applied before the temperature or
after it; so does greedy decoding, with j = 1. Not seen are truncations that keep more tokens than the server lists, nor
any where the model is too sure of its reply: `None` is no proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# Of a false alarm, for each j. Servers list at most 20 tokens or so.
_MOST_CHANCE: Final = 1e-6


@dataclass(frozen=True)
class Truncation:
    """A truncation that was seen.

    Args:
        kept: j, the number of likeliest tokens that no reply left.
        replies: n, how many there were.
        chance: the most probable it is that all of them lie among those although nothing is truncated.
    """

    kept: int
    replies: int
    chance: float

    def __str__(self) -> str:
        return (
            f"all of {self.replies} replies are among the {self.kept} likeliest tokens; without truncation the chance "
            f"of that is below {self.chance:.1g}"
        )


def truncation_in(
    listed: Sequence[tuple[str, float]], replies: Sequence[str | None], temperature: float
) -> Truncation | None:
    """Return the truncation that replies show, or None if they show none.

    Args:
        listed: the likeliest first tokens with their log-probabilities in nats at temperature 1.
        replies: independent replies of one token each, at this temperature, to the same prompt.
        temperature: T, at least 1.

    Raises:
        ValueError: the temperature is below 1.
    """
    if not temperature >= 1:
        raise ValueError(f"temperature must be at least 1, not {temperature}")
    chances: dict[str, float] = {}
    for token, logarithm in listed:
        chances[token] = chances.get(token, 0.0) + math.exp(min(logarithm, 0.0))
    if not chances or not replies:
        return None
    weights = _weights(chances, temperature)
    inside, total = 0.0, math.fsum(weights.values()) + _rest(chances) ** (1 / temperature)
    missing = set(replies)
    for kept, (token, weight) in enumerate(weights.items(), start=1):
        inside += weight
        missing.discard(token)
        chance = min(1.0, inside / total) ** len(replies)
        if not missing:
            return Truncation(kept, len(replies), max(chance, 1e-99)) if chance < _MOST_CHANCE else None
    return None


def _weights(chances: dict[str, float], temperature: float) -> dict[str, float]:
    """Return p^(1/T) of the listed tokens, the likeliest first."""
    in_order = sorted(chances, key=lambda token: -chances[token])
    return {token: chances[token] ** (1 / temperature) for token in in_order}


def _rest(chances: dict[str, float]) -> float:
    """Return the mass of the tokens that are not listed; 0 where it is no more than rounding."""
    rest = 1.0 - math.fsum(chances.values())
    # Servers compute in single or half precision: what is below a thousandth may be their rounding.
    return rest if rest > 1e-3 else 0.0
