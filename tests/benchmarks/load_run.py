"""One run: servers, started afresh, under a crowd; its figures are what `load --json` prints."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks import load_floor, load_meters
from tests.benchmarks.load_crowd import Crowd
from tests.benchmarks.load_floor import quantiles
from tests.benchmarks.load_measure import Measured, put_load
from tests.benchmarks.load_stage import Stage, Wanted
from tests.support.servers import DURABLE, WITHOUT_FSYNC

# The share of the offered load that has to be reached for a run to count.
REACHED = 0.97
# Of the voters' think times and choices.
_SEED = 1
_TEXTS = 1000


@dataclass(frozen=True)
class Load:
    """What is put on the servers; times in seconds."""

    sockets: int
    chains: int
    budget: int
    think_s: float
    seconds: int
    warm_up_s: int
    webs: int
    is_durable: bool

    @property
    def offered_per_s(self) -> float:
        """The most votes per second of people who never wait for a server, in a campaign of one judge.

        The people are the bound, or the chains: nobody is asked for a vote that could come too late, so of N votes at
        most (N + 1) // 2, which may be all that it takes to settle a step, are asked for at the same time.
        """
        return min(self.sockets, self.chains * ((self.budget + 1) // 2)) / self.think_s

    @property
    def floor_s(self) -> int:
        """How long pgbench runs."""
        return min(30, max(5, self.seconds // 4))


def run(load: Load) -> dict:
    """Return the figures of one run, with pgbench's."""
    with tempfile.TemporaryDirectory(prefix="prefmh-load-") as folder:
        stage = Stage(Path(folder), load.webs, DURABLE if load.is_durable else WITHOUT_FSYNC)
        try:
            speeds = [load_meters.loop_s()]
            found = _described(load) | _measured(stage, load)
            speeds.append(load_meters.loop_s())
            # Python's version also tells who built it: builds differ by a third in speed.
            found["machine"] = {"processor": load_meters.processor(), "python": sys.version, "loop_s": speeds}
            return found | {"pgbench": _of_floor(stage, found["votes_per_s"], load.floor_s)}
        finally:
            stage.stop()


def _measured(stage: Stage, load: Load) -> dict:
    stage.start()
    judges = [{"question": "Which is darker?", "votes": load.budget}]
    [seats] = stage.make(Wanted(load.sockets, load.chains, _TEXTS, judges))
    crowd = Crowd(seats, load.think_s, _SEED)
    measured = asyncio.run(put_load(stage, crowd, load.warm_up_s, load.seconds))
    window = measured.before.at, measured.after.at
    return {
        "postgresql": {name: stage.query(f"SHOW {name}")[0][0] for name in ("fsync", "synchronous_commit")},
        "load_average": os.getloadavg()[0],
        "lost_sockets": crowd.seen.lost,
        **_of_votes(measured, load, crowd.seen.thinking_between(*window)),
        "acknowledged_ms": in_ms(crowd.seen.answers_between(*window)),
        **_of_processes(measured),
    }


def _described(load: Load) -> dict:
    return {
        "commit": load_meters.commit(),
        "sockets": load.sockets,
        "chains": load.chains,
        "budget": load.budget,
        "think_s": load.think_s,
        "seconds": load.seconds,
        "warm_up_s": load.warm_up_s,
        "webs": load.webs,
        "durable": load.is_durable,
    }


def _of_votes(measured: Measured, load: Load, thinking: float) -> dict:
    # By how many people think, not by the votes: the chance of think times alone moves those of a minute by some 2 %.
    reached = thinking / (load.offered_per_s * load.think_s)
    return {
        "votes": measured.votes,
        "votes_per_s": measured.votes / measured.seconds,
        "verdicts_per_s": measured.verdicts / measured.seconds,
        "offered_per_s": load.offered_per_s,
        "reached": reached,
        "offered_load_reached": reached >= REACHED,
    }


def _of_processes(measured: Measured) -> dict:
    each = {name: 1000 * seconds / measured.votes for name, seconds in measured.processor_s.items()}
    return {
        "processor_ms_a_vote": each | {"all": sum(each.values())},
        "votes_per_s_a_core": 1000 / sum(each.values()),
        "voters_ms_a_vote": 1000 * measured.voters_s / measured.votes,
        "statements_a_vote": measured.statements_a_vote,
    }


def _of_floor(stage: Stage, per_s: float, seconds: int) -> dict:
    stage.stop_serving()
    floor = load_floor.measure(stage, per_s, seconds)
    return {
        "votes_per_s": floor.per_s,
        "most_votes_per_s": floor.most_per_s,
        "acknowledged_ms": in_ms(floor.seconds),
        "processor_ms_a_vote": {"PostgreSQL": 1000 * floor.processor_s},
        "statements_a_vote": floor.statements,
    }


def in_ms(seconds: list[float]) -> dict[str, float]:
    """Return the quantiles of some times by name, in milliseconds."""
    return {name: 1000 * float(value) for name, value in zip(("p50", "p95", "p99"), quantiles(seconds), strict=True)}
