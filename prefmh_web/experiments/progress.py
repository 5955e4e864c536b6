"""How far a run is, at what rate it goes, and how long it takes at most if it goes on so.

Nothing here reads a clock or a database: who shows progress gives times and counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from prefmh_web.console.words import duration

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
        self._shown: tuple[float, int] | None = None

    def show(self, standing: Callable[[], Standing]) -> None:
        """Show how far the run is, when it is time to; `standing` is called only then."""
        now = self._clock()
        if self._shown is None or now - self._shown[0] >= _LINE_EVERY_S:
            found = standing()
            self.say(self._described(found, now))
            self._shown = now, found.requests

    def _described(self, standing: Standing, now: float) -> str:
        """Return a line about how far a run is, at the rate since the last line: what is not known is left out."""
        before, requests = self._shown or (now, 0), standing.requests
        rate = (requests - before[1]) / (now - before[0]) if now > before[0] else 0.0
        said = [f"{standing.title}: {standing.done:,} of {standing.planned:,} {standing.unit}"]
        if self._most_requests:
            speed = f" ({rate:,.1f}/s)" if rate else ""
            said.append(f"{requests:,} of at most {self._most_requests:,} requests{speed}")
        if standing.cost is not None:
            said.append(f"cost {standing.cost:,.2f}")
        if rate and requests < self._most_requests:
            said.append(f"at most {duration((self._most_requests - requests) / rate)} left of the whole run")
        return ", ".join(said)
