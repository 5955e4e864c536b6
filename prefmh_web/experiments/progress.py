"""How far a run is, at what rate it goes, and how long the whole will take at a measured rate.

Nothing here reads a clock or a database: who shows progress gives times and counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import sampler

WINDOW_S = 120.0
"""Rates are those of the last two minutes."""
FORECAST_AFTER_S = 60.0
"""What a forecast is made from, of requests that follow each other."""
_LEAST_S = 5.0
_MEASURE_EVERY_S = 1.0
_LINE_EVERY_S = 30.0
Foretell = Callable[[float], Iterable[str]]
"""Given the planned requests that are done a second: the lines that say how long it will take."""
_CLEAR = "\r\x1b[K"
_MINUTE_S, _HOUR_MIN = 60, 60


@dataclass(frozen=True)
class Standing:
    """How far a run is.

    Args:
        stage: which one.
        part: what is under way, in words.
        number: of that part, from 1.
        parts: of the stage.
        done: steps or answers of the stage that there are.
        planned: how many there will be.
        unit: what is counted.
        requests: of the whole run so far.
        cost: of these; None where a price is not known.
        work: what is done of the stage, in the requests that were planned for it.
        all_work: the same at the end.
    """

    stage: str
    part: str
    number: int
    parts: int
    done: int
    planned: int
    unit: str
    requests: int
    cost: float | None
    work: float
    all_work: float


class Pace:
    """The rate of a run over a sliding window.

    Args:
        window_s: how long, in seconds.
    """

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._measured: deque[tuple[float, int, float]] = deque()

    def measure(self, now: float, requests: int, work: float) -> None:
        """Add what there is at a time, in seconds."""
        self._measured.append((now, requests, work))
        while len(self._measured) > 1 and now - self._measured[1][0] >= self._window_s:
            self._measured.popleft()

    @property
    def span_s(self) -> float:
        """Over how many seconds it is measured."""
        return self._measured[-1][0] - self._measured[0][0] if self._measured else 0.0

    @property
    def requests_per_s(self) -> float | None:
        """Requests a second; None while too little is measured."""
        return self._rate(1)

    @property
    def work_per_s(self) -> float | None:
        """Planned requests that are done, a second; None while too little is measured. Not each takes one request."""
        return self._rate(2)

    def left_s(self, all_work: float) -> float | None:
        """Return the seconds until all work is done, if it goes on so; None where nothing is known about that."""
        rate = self.work_per_s
        if not rate or rate < 0:
            return None
        return max(0.0, all_work - self._measured[-1][2]) / rate

    def _rate(self, column: int) -> float | None:
        if self.span_s < _LEAST_S:
            return None
        return (self._measured[-1][column] - self._measured[0][column]) / self.span_s


class Display:
    """Shows lines, and progress between them: one line that is updated in a terminal, elsewhere one now and then.

    Args:
        write: takes text, line ends included.
        clock: seconds, of any beginning.
        columns: of the terminal; None where there is none.
        foretell: given the planned requests that were done a second, the lines to show once.
    """

    def __init__(
        self,
        write: Callable[[str], object],
        clock: Callable[[], float],
        columns: int | None = None,
        foretell: Foretell = lambda rate: (),
    ) -> None:
        self._write, self._clock, self._columns, self._foretell = write, clock, columns, foretell
        self._pace, self._stage = Pace(), ""
        self._measured_at: float | None = None
        self._shown_at: float | None = None
        self._has_foretold = self._has_open_line = False

    def say(self, line: str) -> None:
        """Show a line that stays."""
        self.end()
        self._write(line + "\n")

    def show(self, standing: Callable[[], Standing]) -> None:
        """Show how far the run is, when it is time to; `standing` is called only then."""
        now = self._clock()
        if self._measured_at is not None and now - self._measured_at < _MEASURE_EVERY_S:
            return
        self._measured_at, found = now, standing()
        if found.stage != self._stage:
            self._pace, self._stage, self._shown_at = Pace(), found.stage, None
        self._pace.measure(now, found.requests, found.work)
        self._foretell_once()
        if self._columns is not None:
            self._write(_CLEAR + described(found, self._pace)[: self._columns - 1])
            self._has_open_line = True
        elif self._shown_at is None or now - self._shown_at >= _LINE_EVERY_S:
            self._write(described(found, self._pace) + "\n")
            self._shown_at = now

    def end(self) -> None:
        """Leave the terminal's line to others."""
        if self._has_open_line:
            self._write(_CLEAR)
        self._has_open_line = False

    def _foretell_once(self) -> None:
        rate = self._pace.work_per_s
        if self._has_foretold or not rate or self._pace.span_s < FORECAST_AFTER_S:
            return
        self._has_foretold = True
        for line in self._foretell(rate):
            self.say(line)


def described(standing: Standing, pace: Pace) -> str:
    """Return a line about how far a run is: what is not known is left out."""
    rate, left = pace.requests_per_s, pace.left_s(standing.all_work)
    requests = f"{standing.requests:,} requests" + ("" if rate is None else f" ({rate:,.1f}/s)")
    said = [
        f"{standing.stage}, part {standing.number} of {standing.parts} ({standing.part}): {standing.done:,} of "
        f"{standing.planned:,} {standing.unit}",
        requests,
        *([] if standing.cost is None else [f"cost {standing.cost:,.2f}"]),
        *([] if left is None else [f"about {duration(left)} left"]),
    ]
    return ", ".join(said)


def duration(seconds: float) -> str:
    """Write a time in two units at most: 40 s, 12 min, 3 h 20 min, 41 h."""
    if seconds < _MINUTE_S:
        return f"{seconds:.0f} s"
    minutes = round(seconds / _MINUTE_S)
    hours, rest = divmod(minutes, _HOUR_MIN)
    if not hours:
        return f"{minutes} min"
    return f"{hours:,} h {rest} min" if rest and hours < 24 else f"{hours:,} h"


def requests_in_all(options: sampler.ExperimentOptions) -> int:
    """Return how many requests are planned for a run: its writer's, its judges' and its evaluation's."""
    sums = sampler.planned_sums(options)
    written = sums["proposals"]["all"] if is_written(options) else 0
    return written + sums["judge_requests"]["all"] + sums["evaluation_requests"]["all"]


def is_written(options: sampler.ExperimentOptions) -> bool:
    """Say whether a proposal takes a request: texts are written by a model; noise and molecules are drawn here."""
    return options.of_experiment.objects == "texts"


def saved_by_probabilities(options: sampler.ExperimentOptions) -> int:
    """Return how many requests votes drawn from log-probabilities would save at most; 0 where they are."""
    return requests_in_all(options) - requests_in_all(replace(options, votes="log-probabilities"))


def saved_by_half_the_votes(options: sampler.ExperimentOptions) -> int:
    """Return how many requests half as many votes a judge, rounded down, would save; at least one is left."""
    if options.votes != "sampled":
        return 0
    sums = sampler.planned_sums(options)["judge_requests"]
    voted = [method for method in options.chosen if method.rule == "n-vote"]
    # What a method asks is a multiple of its N.
    return sum(sums[method.name] // method.asks * (method.asks - fewer(method.asks)) for method in voted)


def fewer(votes: int) -> int:
    """Return half of N, rounded down, and 1 at least."""
    return max(1, votes // 2)


def lines(options: sampler.ExperimentOptions, rate: float) -> Iterator[str]:
    """Yield what to expect of a run; nothing where no model is asked.

    Args:
        rate: planned requests that are done a second, above 0. What a text takes beside the request that writes it,
            and what early stopping saves, is in the measured rate.
    """
    every = requests_in_all(options)
    if not every:
        return
    yield (
        f"at {rate:,.1f} planned requests a second, as measured, the whole run's {every:,} take about "
        f"{duration(every / rate)}"
    )
    if saved := saved_by_probabilities(options):
        yield f"  --votes log-probabilities: {_less(saved, rate)}"
    if saved := saved_by_half_the_votes(options):
        asked = sorted({method.asks for method in options.chosen if method.rule == "n-vote" and method.asks > 1})
        halves = ", ".join(f"{fewer(votes)} in place of {votes}" for votes in asked)
        yield f"  half the votes of each judge (N = {halves}): {_less(saved, rate)}"


def _less(saved: int, rate: float) -> str:
    return f"{saved:,} requests and about {duration(saved / rate)} less"
