"""Measuring: a crowd votes in campaigns on a stage, and the meters are read before and after."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass

from tests.benchmarks.load_crowd import Crowd
from tests.benchmarks.load_stage import Stage


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

    @property
    def seconds(self) -> float:
        return self.after.at - self.before.at

    @property
    def votes(self) -> int:
        return self.after.votes - self.before.votes

    @property
    def verdicts(self) -> int:
        return self.after.verdicts - self.before.verdicts

    @property
    def processor_s(self) -> dict[str, float]:
        """The processor time of each kind of server process."""
        return {name: total - self.before.processor[name] for name, total in self.after.processor.items()}

    @property
    def voters_s(self) -> float:
        return self.after.voters_s - self.before.voters_s

    @property
    def statements_a_vote(self) -> float:
        return self.statements / self.votes


async def put_load(stage: Stage, crowd: Crowd, warm_up_s: float, seconds: float) -> Measured:
    """Let the crowd vote; measure once they have warmed the servers up."""
    async with crowd:
        await asyncio.sleep(warm_up_s)
        await asyncio.to_thread(stage.query, "SELECT pg_stat_statements_reset()")
        before = await asyncio.to_thread(Reading.of, stage)
        await asyncio.sleep(seconds)
        after = await asyncio.to_thread(Reading.of, stage)
        statements = await asyncio.to_thread(stage.statements)
    return Measured(before, after, statements)
