"""How much an endpoint was asked in the last minute, and when it may be asked again: a sliding window.

What is sent is counted by the second. A second counts until 62 s after it began: 60 s, one for what was sent at its
end, and one for what goes out up to a second after it was counted (a thread that waits for a processor). So no window
of 60 s has more than the limit, where a bucket that fills up again would let through up to twice as much; and 60 of 62
parts of the limit are reached. Time is the caller's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

COUNTS_FOR_S = 62
# Clocks of several machines differ by less; what lies further ahead is from a clock that was put right since.
_AHEAD_S = 60


class Spent(NamedTuple):
    """Requests and tokens that are counted in a second since 1970; negative ones take back."""

    second: int
    requests: int
    tokens: int


@dataclass(frozen=True)
class Rates:
    """The most requests and tokens a minute; None where there is no such limit."""

    requests: int | None
    tokens: int | None

    def part(self, share: float) -> Rates:
        """Return a share of both, at least one."""
        return Rates(*(None if rate is None else max(1, int(share * rate)) for rate in (self.requests, self.tokens)))

    def counted(self, tokens: int) -> int:
        """Return as how many tokens a request counts: one that could never be sent is sent into an empty minute."""
        return tokens if self.tokens is None else min(tokens, self.tokens)


class Window:
    """What was sent lately.

    Args:
        spent: in any order.
        now: seconds since 1970.
    """

    def __init__(self, spent: Iterable[Sequence[int]], now: float) -> None:
        kept = [Spent(*entry) for entry in spent if entry[0] <= now + _AHEAD_S]
        # Of several machines, the clock that is ahead counts.
        self.now = max([now, *(float(entry.second) for entry in kept)])
        self._seconds: dict[int, Spent] = {}
        self.add(*kept)

    def entries(self) -> list[Spent]:
        """Return what counts, the oldest first."""
        return sorted(entry for entry in self._seconds.values() if entry.requests or entry.tokens)

    def add(self, *changes: Spent) -> None:
        """Count something, or take it back; what no longer counts changes nothing."""
        for second, requests, tokens in changes:
            if second + COUNTS_FOR_S > self.now:
                known = self._seconds.get(second, Spent(second, 0, 0))
                self._seconds[second] = Spent(second, known.requests + requests, known.tokens + tokens)

    def send(self, rates: Rates, needs: Sequence[int]) -> int:
        """Count as many requests as fit now, from the front; return how many.

        Args:
            needs: the tokens of each.
        """
        for sent, tokens in enumerate(needs):
            if self.wait(rates, tokens):
                return sent
            self.add(Spent(math.floor(self.now), 1, rates.counted(tokens)))
        return len(needs)

    def wait(self, rates: Rates, tokens: int) -> float:
        """Return in how many seconds a request of so many tokens fits; 0 for now."""
        requests = sum(entry.requests for entry in self._seconds.values())
        used = sum(entry.tokens for entry in self._seconds.values())
        wait = 0.0
        for entry in self.entries():
            if _fits(rates, requests + 1, used + rates.counted(tokens)):
                break
            wait = entry.second + COUNTS_FOR_S - self.now
            requests, used = requests - entry.requests, used - entry.tokens
        return wait


def _fits(rates: Rates, requests: int, tokens: int) -> bool:
    return (rates.requests is None or requests <= rates.requests) and (rates.tokens is None or tokens <= rates.tokens)
