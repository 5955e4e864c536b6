"""The lines along which growth is measured: what stands on the stage at each n, and who votes there."""

from __future__ import annotations

import asyncio
import json
import math
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sampler
from tests.benchmarks.load_crowd import Crowd, Seat
from tests.benchmarks.load_stage import Made, Stage, Wanted

VOTERS, THINK_S = 8, 0.1
_CHAINS, _TEXTS, _WARM_UP_S = 20, 200, 10
_VOTERS_A_WEB = 2
_FOR_EVER_S, _HOUR_S = 1e9, 3600
_PAGES_A_RUN = 40
_JUDGES = [{"question": "Which is darker?", "budget": 2}]
# Every vote is a verdict, and a chain's next pair goes to whoever waits longest.
_JUDGES_OF_ONE = [{"question": "Which is darker?", "budget": 1}]
_JUDGES_OF_FIVE = [{"question": "Which is darker?", "budget": 5}]


@dataclass(frozen=True)
class Cost:
    """What one vote, or one page, cost in one run."""

    n: int
    ms_by: dict[str, float]
    """By kind of process."""
    statements: float
    per_s: float

    @property
    def ms(self) -> float:
        return sum(self.ms_by.values())


@dataclass(frozen=True)
class Line:
    """Some n, and how the costs are measured at one of them: by n, runs and the seconds of each.

    Args:
        most_exponent, most_ratio: how much the costs may grow.
    """

    name: str
    numbers: tuple[int, ...]
    measure: Callable[[int, int, int], list[Cost]]
    most_exponent: float = 0.05
    most_ratio: float = 1.25


@contextmanager
def staged(webs: int = 1) -> Iterator[Stage]:
    """Yield servers that have started."""
    with tempfile.TemporaryDirectory(prefix="prefmh-growth-") as folder:
        stage = Stage(Path(folder), webs)
        try:
            stage.start()
            yield stage
        finally:
            stage.stop()


def _of_chains(n: int, runs: int, seconds: int) -> list[Cost]:
    with staged() as stage:
        [campaign] = stage.make(Wanted(VOTERS, n, _TEXTS, _JUDGES))
        return _costs_of_votes(stage, n, campaign.seats, runs, seconds)


def _of_votes(n: int, runs: int, seconds: int) -> list[Cost]:
    with staged() as stage:
        campaign = _with_a_record(stage, n, VOTERS)
        return _costs_of_votes(stage, n, campaign.seats, runs, seconds)


def _of_waiting(n: int, runs: int, seconds: int) -> list[Cost]:
    with staged() as stage:
        [campaign] = stage.make(Wanted(VOTERS + n, VOTERS, _TEXTS, _JUDGES_OF_ONE))
        return _costs_of_votes(stage, n, campaign.seats, runs, seconds)


def _of_idle(n: int, runs: int, seconds: int) -> list[Cost]:
    with staged() as stage:
        # Each idle page shows a pair, so it needs a chain of its own.
        pages = [min(sampler.MOST_CHAINS, n - begun) for begun in range(0, n, sampler.MOST_CHAINS)]
        idle = (Wanted(some, some, _TEXTS, _JUDGES_OF_ONE, lease_seconds=_HOUR_S) for some in pages)
        campaign, *others = stage.make(Wanted(VOTERS, _CHAINS, _TEXTS, _JUDGES), *idle)
        seats = [seat for other in others for seat in other.seats]
        return _costs_of_votes(stage, n, campaign.seats, runs, seconds, idle=seats)


def _of_webs(n: int, runs: int, seconds: int) -> list[Cost]:
    return _with_webs(n, VOTERS, runs, seconds)


def _of_busy_webs(n: int, runs: int, seconds: int) -> list[Cost]:
    return _with_webs(n, n * _VOTERS_A_WEB, runs, seconds)


def _with_webs(n: int, people: int, runs: int, seconds: int) -> list[Cost]:
    with staged(webs=n) as stage:
        [campaign] = stage.make(Wanted(people, _CHAINS, _TEXTS, _JUDGES))
        return _costs_of_votes(stage, n, campaign.seats, runs, seconds)


def _of_page(n: int, runs: int, seconds: int) -> list[Cost]:
    with staged() as stage:
        campaign = _with_a_record(stage, n, people=1)
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        opener.open(stage.urls[0] + stage.sign_in_path()).read()
        page = f"{stage.urls[0]}/campaigns/{campaign.number}/"
        assert opener.open(page).url == page
        return [_cost_of_pages(stage, n, lambda: opener.open(page).read()) for _ in range(runs)]


def _with_a_record(stage: Stage, votes: int, people: int) -> Made:
    """Make a running campaign in which so many votes have been cast, with room for many more."""
    answer = stage.run("-m", "tests.benchmarks.growth_record", str(votes), str(people)).stdout
    return stage.seated(json.loads(answer))


def _costs_of_votes(
    stage: Stage, n: int, seats: list[Seat], runs: int, seconds: int, idle: list[Seat] | None = None
) -> list[Cost]:
    async def measure() -> list[Cost]:
        async with Crowd(idle or [], _FOR_EVER_S, seed=2), Crowd(seats, THINK_S, seed=1) as crowd:
            await asyncio.sleep(_WARM_UP_S)
            return [await _cost_of_votes(stage, n, crowd, seconds) for _ in range(runs)]

    return asyncio.run(measure())


async def _cost_of_votes(stage: Stage, n: int, crowd: Crowd, seconds: int) -> Cost:
    before, start, votes = await asyncio.to_thread(_open, stage), time.monotonic(), len(crowd.seen.acknowledged)
    await asyncio.sleep(seconds)
    votes, took = len(crowd.seen.acknowledged) - votes, time.monotonic() - start
    return await asyncio.to_thread(_cost, stage, n, before, votes, took)


def _open(stage: Stage) -> dict[str, float]:
    """Set the statements' count to nothing; return the servers' processor seconds so far."""
    stage.query("SELECT pg_stat_statements_reset()")
    return stage.processor_seconds()


def _cost(stage: Stage, n: int, before: dict[str, float], times: int, took: float) -> Cost:
    assert times, f"nothing happened in {took:.0f} s"
    ms_by = {name: 1000 * (total - before[name]) / times for name, total in stage.processor_seconds().items()}
    statements = sum(calls for calls, *_ in stage.statements())
    return Cost(n, ms_by, statements / times, times / took)


def _cost_of_pages(stage: Stage, n: int, load: Callable[[], object]) -> Cost:
    load()
    before, start = _open(stage), time.monotonic()
    for _ in range(_PAGES_A_RUN):
        load()
    return _cost(stage, n, before, _PAGES_A_RUN, time.monotonic() - start)


LINES = {
    line.name: line
    for line in (
        Line("chains", (10, 100, 1000, sampler.MOST_CHAINS), _of_chains),
        Line("votes", (1000, 100_000, 1_000_000), _of_votes),
        Line("waiting", (10, 40, 500, 2000), _of_waiting),
        Line("idle", (50, 1000, 5000), _of_idle),
        Line("webs", (1, 2, 4), _of_webs),
        Line("busy-webs", (1, 2, 4), _of_busy_webs),
        # What a page shows is a total, which may grow with what there is.
        Line("page", (1000, 100_000, 1_000_000), _of_page, most_exponent=1.1, most_ratio=math.inf),
    )
}
