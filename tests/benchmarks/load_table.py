"""Two campaigns under load, printed: what a voter and a chain wait for, and what a vote costs.

Most people are in a campaign that always has a question for them; the others in one where every vote is a verdict and
somebody always waits for the next pair.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks import load_floor
from tests.benchmarks.load_crowd import Crowd, Seen
from tests.benchmarks.load_floor import Floor, quantiles
from tests.benchmarks.load_measure import Measured, put_load
from tests.benchmarks.load_scenes import busy, scarce
from tests.benchmarks.load_stage import Made, Stage


@dataclass(frozen=True)
class Asked:
    """What is asked of the two campaigns; times in seconds."""

    sockets: int
    waiting: int
    chains: int
    think_s: float
    seconds: int
    warm_up_s: int
    webs: int
    listed: int


def show(asked: Asked) -> None:
    """Put the load on servers of its own, and print."""
    with tempfile.TemporaryDirectory(prefix="prefmh-load-") as folder:
        stage = Stage(Path(folder), asked.webs)
        try:
            stage.start()
            _show_on(stage, asked)
        finally:
            stage.stop()


def _show_on(stage: Stage, asked: Asked) -> None:
    usual, waiting = stage.make(busy(asked.sockets - asked.waiting, asked.chains), scarce(asked.waiting))
    crowd = Crowd(usual.seats + waiting.seats, asked.think_s, seed=1)
    measured = asyncio.run(put_load(stage, crowd, asked.warm_up_s, asked.seconds))
    load = os.getloadavg()[0]
    stage.stop_serving()
    floor = load_floor.measure(stage, measured.votes / measured.seconds, max(5, asked.seconds // 4))
    cores = len(os.sched_getaffinity(0))
    print(f"{asked.sockets} sockets, {asked.waiting} of them where pairs are few; {asked.webs} web process(es),")
    print(f"{cores} cores, load average {load:.1f}, PostgreSQL without fsync.")
    report(stage, waiting, crowd.seen, measured, floor)
    report_statements(measured, floor, asked.listed)


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


def report(stage: Stage, waiting: Made, seen: Seen, measured: Measured, floor: Floor) -> None:
    """Print the figures of one run."""
    took, votes = measured.seconds, measured.votes
    start, end = measured.before.at, measured.after.at
    print(f"{votes / took:.1f} votes/s, {measured.verdicts / took:.1f} verdicts/s; {seen.lost} sockets lost")
    answers = seen.answers_between(start, end)
    waited = verdict_to_pair(stage, waiting.number, seen, start, end)
    print(f"\n{'milliseconds':<44}{'p50':>9}{'p95':>9}{'p99':>9}{'of':>9}")
    for name, seconds in (
        ("vote sent -> acknowledged", answers),
        ("verdict -> pair on a waiting screen", waited),
        ("verdict -> next comparison stored", next_comparison(stage, start, end)),
        ("pgbench's transaction, at the same rate", floor.seconds),
    ):
        print(f"{name:<44}" + "".join(f"{1000 * each:>9.1f}" for each in quantiles(seconds)) + f"{len(seconds):>9}")
    print(f"\n{'processor time':<44}{'ms a vote':>9}{'of a core':>12}")
    processor = measured.processor_s
    for name, seconds in (processor | {"(these voters)": measured.voters_s}).items():
        print(f"{name:<44}{1000 * seconds / votes:>9.2f}{seconds / took:>12.0%}")
    server = sum(processor.values())
    print(f"{'server, in all':<44}{1000 * server / votes:>9.2f}{server / took:>12.0%}")
    print(f"{'PostgreSQL under pgbench':<44}{1000 * floor.processor_s:>9.2f}")


def report_statements(measured: Measured, floor: Floor, listed: int) -> None:
    """Print statements a vote beside the floor's, and the most frequent ones if asked for."""
    each, votes = measured.statements_a_vote, measured.votes
    print(
        f"\n{each:.1f} statements a vote; pgbench {floor.statements:.1f}: {each / floor.statements:.1f} times as many"
    )
    print(f"pgbench's most: {floor.most_per_s:.0f} votes/s")
    for calls, seconds, rows, query in measured.statements[:listed]:
        print(f"{calls / votes:>7.2f} a vote {1000 * seconds / votes:>7.3f} ms {rows / votes:>8.1f} rows  {query}")
