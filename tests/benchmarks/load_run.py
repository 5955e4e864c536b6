"""One run: servers, started afresh, under a crowd; its figures are what `load --json` prints."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.benchmarks import load_floor, load_meters
from tests.benchmarks.load_crowd import Crowd
from tests.benchmarks.load_floor import in_ms
from tests.benchmarks.load_stage import Stage
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
    warm_up_s: float
    webs: int
    durable: bool

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


@dataclass(frozen=True)
class Reading:
    """What stood on the meters at one moment."""

    at: float
    processor: dict[str, float]
    votes: int
    verdicts: int
    voters_s: float
    """The processor time of this process, in which the voters are."""

    @classmethod
    def of(cls, stage: Stage) -> Reading:
        votes = stage.query("SELECT count(*) FROM campaigns_vote")[0][0]
        verdicts = stage.query("SELECT count(*) FROM campaigns_comparison WHERE verdict IS NOT NULL")[0][0]
        own = os.times()
        return cls(time.time(), stage.processor_seconds(), votes, verdicts, own.user + own.system)


@dataclass(frozen=True)
class Measured:
    """A time of voting, with everybody there, between two readings."""

    before: Reading
    after: Reading
    statements: float

    def took(self, name: str) -> float:
        """Return by how much a number of the meters has grown."""
        return getattr(self.after, name) - getattr(self.before, name)


def run(load: Load) -> dict:
    """Return the figures of one run, with pgbench's."""
    with tempfile.TemporaryDirectory(prefix="prefmh-load-") as folder:
        stage = Stage(Path(folder), load.webs, DURABLE if load.durable else WITHOUT_FSYNC)
        try:
            speeds = [load_meters.loop_s()]
            found = {"commit": load_meters.commit()} | asdict(load) | _measured(stage, load)
            speeds.append(load_meters.loop_s())
            # Python's version also tells who built it: builds differ by a third in speed.
            found["machine"] = {"processor": load_meters.processor(), "python": sys.version, "loop_s": speeds}
            stage.stop_serving()
            return found | {"pgbench": load_floor.measure(stage, found["votes_per_s"], load.floor_s)}
        finally:
            stage.stop()


def _measured(stage: Stage, load: Load) -> dict:
    stage.start()
    judges = [{"question": "Which is darker?", "votes": load.budget}]
    crowd = Crowd(stage.seats(load.sockets, _TEXTS, chains=load.chains, judges=judges), load.think_s, _SEED)
    measured = asyncio.run(_put_load(stage, crowd, load))
    window = measured.before.at, measured.after.at
    return {
        "postgresql": {name: stage.query(f"SHOW {name}")[0][0] for name in ("fsync", "synchronous_commit")},
        "load_average": os.getloadavg()[0],
        "lost_sockets": crowd.seen.lost,
        **_of_votes(measured, load, crowd.seen.thinking_between(*window)),
        "acknowledged_ms": in_ms(crowd.seen.answers_between(*window)),
        **_of_processes(measured),
    }


async def _put_load(stage: Stage, crowd: Crowd, load: Load) -> Measured:
    """Let the crowd vote; measure once they have warmed the servers up."""
    async with crowd:
        await asyncio.sleep(load.warm_up_s)
        await asyncio.to_thread(stage.query, "SELECT pg_stat_statements_reset()")
        before = await asyncio.to_thread(Reading.of, stage)
        await asyncio.sleep(load.seconds)
        after = await asyncio.to_thread(Reading.of, stage)
        return Measured(before, after, await asyncio.to_thread(stage.statements))


def _of_votes(measured: Measured, load: Load, thinking: float) -> dict:
    # By how many people think, not by the votes: the chance of think times alone moves those of a minute by some 2 %.
    reached = thinking / (load.offered_per_s * load.think_s)
    return {
        "votes": measured.took("votes"),
        "votes_per_s": measured.took("votes") / measured.took("at"),
        "verdicts_per_s": measured.took("verdicts") / measured.took("at"),
        "offered_per_s": load.offered_per_s,
        "reached": reached,
        "offered_load_reached": reached >= REACHED,
    }


def _of_processes(measured: Measured) -> dict:
    votes, before = measured.took("votes"), measured.before.processor
    each = {name: 1000 * (seconds - before[name]) / votes for name, seconds in measured.after.processor.items()}
    return {
        "processor_ms_a_vote": each | {"all": sum(each.values())},
        "votes_per_s_a_core": 1000 / sum(each.values()),
        "voters_ms_a_vote": 1000 * measured.took("voters_s") / votes,
        "statements_a_vote": measured.statements / votes,
    }
