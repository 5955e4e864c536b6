"""A campaign under load: how long voters wait, and what a vote costs, beside a pgbench script of the bare statements.

    python -m tests.benchmarks.load [--sockets 300] [--seconds 60] [--webs 1] [--chains N] [--waiting W] [--statements]

Starts PostgreSQL, Redis, web processes, a worker and beat of its own. S annotators hold a socket each and vote at a
human pace: an exponential think time with a mean of four seconds. Most are in a campaign that always has a question
for them; W of them (a tenth) are in one where every vote is a verdict and somebody always waits for the next pair.

    acknowledged      from sending a vote to the panel that answers it, seen by the voter
    verdict to pair   from the verdict of a step to the moment the chain's next pair is on a waiting voter's screen
    processor time    user and system time of the processes between two readings, over the votes stored between them
    statements        what PostgreSQL's pg_stat_statements counted, BEGIN and COMMIT included, over the same votes

All of it runs on the machine that it measures, voters included: read the times with the load average in mind. The
processor time and the statements hardly depend on it.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks import load_floor
from tests.benchmarks.load_crowd import Crowd, Seen
from tests.benchmarks.load_floor import Floor, quantiles
from tests.benchmarks.load_stage import Campaigns, Stage

THINK_S = 4.0
SETTLE_S = 8


@dataclass(frozen=True)
class Reading:
    """What stood on the meters at one moment."""

    at: float
    processor: dict[str, float]
    votes: int
    verdicts: int

    @classmethod
    def of(cls, stage: Stage) -> Reading:
        votes = stage.query("SELECT count(*) FROM campaigns_vote")[0][0]
        verdicts = stage.query("SELECT count(*) FROM campaigns_comparison WHERE verdict IS NOT NULL")[0][0]
        return cls(time.time(), stage.processor_seconds(), votes, verdicts)


async def put_load(stage: Stage, crowd: Crowd, seconds: int) -> tuple[Reading, Reading]:
    """Let the crowd vote; return the readings before and after the measured time."""
    async with crowd:
        await asyncio.sleep(SETTLE_S)
        await asyncio.to_thread(stage.query, "SELECT pg_stat_statements_reset()")
        before = await asyncio.to_thread(Reading.of, stage)
        await asyncio.sleep(seconds)
        return before, await asyncio.to_thread(Reading.of, stage)


def verdict_to_pair(stage: Stage, campaign: int, seen: Seen, start: float, end: float) -> list[float]:
    """Return the seconds from each verdict of a campaign to the first sight of its chain's next pair."""
    sight: dict[str, float] = {}
    leases = stage.query(
        "SELECT l.key::text, l.comparison_id FROM annotate_lease l JOIN campaigns_judge j ON j.id = l.judge_id"
        " WHERE j.campaign_id = %s",
        campaign,
    )
    comparison_of = dict(leases)
    for key, at in seen.shown:
        if comparison := comparison_of.get(key):
            sight[comparison] = min(at, sight.get(comparison, at))
    # A step that needs no vote, its proposal being where the chain stands, is on nobody's screen.
    asked = stage.query(
        "SELECT c.id, c.chain_id, extract(epoch FROM c.decided_at)::float FROM campaigns_comparison c"
        " JOIN campaigns_chain h ON h.id = c.chain_id"
        " WHERE h.campaign_id = %s AND c.current_id <> c.proposal_id ORDER BY c.chain_id, c.step",
        campaign,
    )
    return [
        sight[following] - decided
        for (_, chain, decided), (following, same, _) in itertools.pairwise(asked)
        if chain == same and decided and start <= decided < end and following in sight
    ]


def next_comparison(stage: Stage, start: float, end: float) -> list[float]:
    """Return the seconds from each verdict to the chain's next comparison: what the worker takes."""
    return [
        seconds
        for (seconds,) in stage.query(
            "SELECT extract(epoch FROM n.opened_at - c.decided_at)::float FROM campaigns_comparison c"
            " JOIN campaigns_comparison n ON n.chain_id = c.chain_id AND n.step = c.step + 1"
            " WHERE extract(epoch FROM c.decided_at) BETWEEN %s AND %s",
            start,
            end,
        )
    ]


def report(stage: Stage, campaigns: Campaigns, seen: Seen, before: Reading, after: Reading, floor: Floor) -> None:
    """Print the figures of one run."""
    took, votes = after.at - before.at, after.votes - before.votes
    verdicts = after.verdicts - before.verdicts
    print(f"{votes / took:.1f} votes/s, {verdicts / took:.1f} verdicts/s; {seen.lost} sockets lost")
    answers = seen.answers_between(before.at, after.at)
    waited = verdict_to_pair(stage, campaigns.scarce, seen, before.at, after.at)
    print(f"\n{'milliseconds':<44}{'p50':>9}{'p95':>9}{'p99':>9}{'of':>9}")
    for name, seconds in (
        ("vote sent -> acknowledged", answers),
        ("verdict -> pair on a waiting screen", waited),
        ("verdict -> next comparison stored", next_comparison(stage, before.at, after.at)),
        ("pgbench's transaction, at the same rate", floor.seconds),
    ):
        print(f"{name:<44}" + "".join(f"{1000 * each:>9.1f}" for each in quantiles(seconds)) + f"{len(seconds):>9}")
    print(f"\n{'processor time':<44}{'ms a vote':>9}{'of a core':>12}")
    processor = {name: after.processor[name] - before.processor[name] for name in after.processor}
    for name, seconds in processor.items():
        print(f"{name:<44}{1000 * seconds / votes:>9.2f}{seconds / took:>12.0%}")
    server = sum(seconds for name, seconds in processor.items() if not name.startswith("("))
    print(f"{'server, in all':<44}{1000 * server / votes:>9.2f}{server / took:>12.0%}")
    print(f"{'PostgreSQL under pgbench':<44}{1000 * floor.processor_s:>9.2f}")


def report_statements(counted: list[tuple], votes: int, floor: Floor, listed: int) -> None:
    """Print statements a vote beside the floor's, and the most frequent ones if asked for."""
    each = sum(calls for calls, *_ in counted) / votes
    print(
        f"\n{each:.1f} statements a vote; pgbench {floor.statements:.1f}: {each / floor.statements:.1f} times as many"
    )
    print(f"pgbench's most: {floor.most_per_s:.0f} votes/s")
    for calls, seconds, rows, query in counted[:listed]:
        print(f"{calls / votes:>7.2f} a vote {1000 * seconds / votes:>7.3f} ms {rows / votes:>8.1f} rows  {query}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sockets", type=int, default=300)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--webs", type=int, default=1)
    parser.add_argument("--chains", type=int, help="of the busy campaign; one for each socket unless given")
    parser.add_argument("--waiting", type=int, help="sockets in the campaign with few pairs; a tenth unless given")
    parser.add_argument("--statements", type=int, default=0, metavar="N", help="list the N most frequent statements")
    options = parser.parse_args()
    waiting = options.sockets // 10 if options.waiting is None else options.waiting
    with tempfile.TemporaryDirectory(prefix="prefmh-load-") as folder:
        stage = Stage(Path(folder), options.webs)
        try:
            stage.start()
            campaigns = stage.make(options.sockets, waiting, options.chains or options.sockets)
            crowd = Crowd(campaigns.seats, THINK_S, seed=1)
            before, after = asyncio.run(put_load(stage, crowd, options.seconds))
            load = os.getloadavg()[0]
            counted = stage.statements()
            stage.stop_serving()
            votes = after.votes - before.votes
            floor = load_floor.measure(stage, votes / (after.at - before.at), max(5, options.seconds // 4))
            cores = len(os.sched_getaffinity(0))
            print(f"{options.sockets} sockets, {waiting} of them where pairs are few; {options.webs} web process(es),")
            print(f"{cores} cores, load average {load:.1f}, PostgreSQL without fsync.")
            report(stage, campaigns, crowd.seen, before, after, floor)
            report_statements(counted, votes, floor, options.statements)
        finally:
            stage.stop()


if __name__ == "__main__":
    main()
