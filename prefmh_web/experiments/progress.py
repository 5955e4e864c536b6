"""How far a run is, at what rate it goes, and how long it takes at most if it goes on so.

Nothing here reads a clock or a database: who shows progress gives times and counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from prefmh_web.console.words import duration

WINDOW_S = 120.0
"""Rates are those of the last two minutes."""
_LEAST_S = 5.0
_MEASURE_EVERY_S = 1.0
_LINE_EVERY_S = 10.0


@dataclass(frozen=True)
class Standing:
    """How far a run is.

    Args:
        title: the stage and what is under way, in words.
        done: steps or answers of the stage that there are.
        planned: how many there will be.
        unit: what is counted.
        requests: of the whole run so far.
        cost: of these; None where a price is not known.
    """

    title: str
    done: int
    planned: int
    unit: str
    requests: int
    cost: float | None


class Display:
    """Shows lines, and between them every now and then how far the run is.

    Args:
        say: takes a line.
        clock: seconds, of any beginning.
        most_requests: that are planned for the whole run.
    """

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float], most_requests: int) -> None:
        self.say, self._clock, self._most_requests = say, clock, most_requests
        self._measured: deque[tuple[float, int]] = deque()
        self._shown_at: float | None = None

    def show(self, standing: Callable[[], Standing]) -> None:
        """Show how far the run is, when it is time to; `standing` is called only then."""
        now = self._clock()
        if self._measured and now - self._measured[-1][0] < _MEASURE_EVERY_S:
            return
        found = standing()
        self._measured.append((now, found.requests))
        while now - self._measured[0][0] > WINDOW_S:
            self._measured.popleft()
        if self._shown_at is None or now - self._shown_at >= _LINE_EVERY_S:
            self.say(self._described(found))
            self._shown_at = now

    def _described(self, standing: Standing) -> str:
        """Return a line about how far a run is: what is not known is left out."""
        (began, before), (now, requests) = self._measured[0], self._measured[-1]
        rate = (requests - before) / (now - began) if now - began >= _LEAST_S else 0.0
        said = [f"{standing.title}: {standing.done:,} of {standing.planned:,} {standing.unit}"]
        if self._most_requests:
            speed = f" ({rate:,.1f}/s)" if rate else ""
            said.append(f"{requests:,} of at most {self._most_requests:,} requests{speed}")
        if standing.cost is not None:
            said.append(f"cost {standing.cost:,.2f}")
        if rate and requests < self._most_requests:
            said.append(f"at most {duration((self._most_requests - requests) / rate)} left of the whole run")
        return ", ".join(said)
