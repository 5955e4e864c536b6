"""A campaign under load: how long voters wait, and what a vote costs, beside a pgbench script of the bare statements.

    python -m tests.benchmarks.load [--json FILE] [--sockets 150] [--seconds 60] [--budget 2] [--chains N] [--webs 1]
                                    [--durable]

Starts PostgreSQL, Redis, web processes, a worker and beat of its own. S people hold a socket each and vote at a human
pace: an exponential think time with a mean of four seconds. The campaign has a thousand texts and one judge, a chain a
person. `--json` writes what is found to a file as well. To compare two revisions, run each from its own checkout, in
turns.

    acknowledged      from sending a vote to the screen that answers it, seen by the voter
    processor time    user and system time of the processes between two readings, over the votes stored between them
    votes a core      the votes per second at which that time would fill one core
    statements        what PostgreSQL's pg_stat_statements counted, BEGIN and COMMIT included, over the same votes
    reached           people who think at a moment, over how many would if no server kept them waiting: by Little's law
                      the offered load that is reached, without the chance of the think times drawn
    loop_s            what five million multiplications in Python took before the run and after it: compare it only
                      between runs with the same build of Python

All of it runs on the machine that it measures, voters included: read the times with the load average in mind. The
processor time and the statements hardly depend on it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks import load_floor, load_stage
from tests.benchmarks.load_crowd import Crowd
from tests.benchmarks.load_floor import in_ms
from tests.benchmarks.load_stage import Stage
from tests.support.servers import DURABLE, WITHOUT_FSYNC

# The share of the offered load that has to be reached for a run to count.
REACHED = 0.97
# Of the voters' think times and choices.
_SEED = 1
_TEXTS = 1000


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the command line's options, in the order in which the figures have them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--sockets", type=int, default=150, help="people")
    parser.add_argument("--chains", type=int, help="one for each socket unless given")
    parser.add_argument("--budget", type=int, default=2, metavar="N", help="votes on a comparison")
    parser.add_argument("--think-s", type=float, default=4.0, help="mean seconds before a vote")
    parser.add_argument("--seconds", type=int, default=60, help="of measuring")
    parser.add_argument("--warm-up", dest="warm_up_s", type=int, default=30, metavar="SECONDS", help="before")
    parser.add_argument("--webs", type=int, default=1, help="web processes")
    parser.add_argument("--durable", action="store_true", help="fsync and synchronous_commit on")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write to it as well")
    options = parser.parse_args(arguments)
    options.chains = options.chains or options.sockets
    return options


def run(load: argparse.Namespace) -> dict:
    """Return the figures of one run on servers that are started afresh, with pgbench's."""
    asked = {name: value for name, value in vars(load).items() if name != "json"}
    with tempfile.TemporaryDirectory(prefix="prefmh-load-") as folder:
        stage = Stage(Path(folder), load.webs, DURABLE if load.durable else WITHOUT_FSYNC)
        try:
            speeds = [load_stage.loop_s()]
            found = {"commit": load_stage.commit()} | asked | _measured(stage, load)
            speeds.append(load_stage.loop_s())
            # Python's version also tells who built it: builds differ by a third in speed.
            found["machine"] = {"processor": load_stage.processor(), "python": sys.version, "loop_s": speeds}
            stage.stop_serving()
            floor_s = min(30, max(5, load.seconds // 4))
            return found | {"pgbench": load_floor.measure(stage, found["votes_per_s"], floor_s)}
        finally:
            stage.stop()


def _measured(stage: Stage, load: argparse.Namespace) -> dict:
    stage.start()
    judges = [{"question": "Which is darker?", "votes": load.budget}]
    seats = stage.seats(load.sockets, _TEXTS, chains=load.chains, judges=judges)
    crowd = Crowd(seats, load.think_s, _SEED)
    before, after, statements = asyncio.run(_put_load(stage, crowd, load))
    took = {name: after[name] - before[name] for name in after}
    votes, window, offered_per_s = took["votes"], (before["at"], after["at"]), _offered_per_s(load)
    # By how many people think, not by the votes: the chance of think times alone moves those of a minute by some 2 %.
    reached = crowd.seen.thinking_between(*window) / (offered_per_s * load.think_s)
    each = {name: 1000 * took[name] / votes for name in stage.roots()}
    return {
        "postgresql": {name: stage.query(f"SHOW {name}")[0][0] for name in ("fsync", "synchronous_commit")},
        "load_average": os.getloadavg()[0],
        "lost_sockets": crowd.seen.lost,
        "votes": votes,
        "votes_per_s": votes / took["at"],
        "verdicts_per_s": took["verdicts"] / took["at"],
        "offered_per_s": offered_per_s,
        "reached": reached,
        "offered_load_reached": reached >= REACHED,
        "acknowledged_ms": in_ms(crowd.seen.answers_between(*window)),
        "processor_ms_a_vote": each | {"all": sum(each.values())},
        "votes_per_s_a_core": 1000 / sum(each.values()),
        "voters_ms_a_vote": 1000 * took["voters_s"] / votes,
        "statements_a_vote": statements / votes,
    }


def _offered_per_s(load: argparse.Namespace) -> float:
    """Return the most votes per second of people who never wait for a server, in a campaign of one judge.

    The people are the bound, or the chains: nobody is asked for a vote that could come too late, so of N votes at most
    (N + 1) // 2, which may be all that it takes to settle a step, are asked for at the same time.
    """
    return min(load.sockets, load.chains * ((load.budget + 1) // 2)) / load.think_s


async def _put_load(stage: Stage, crowd: Crowd, load: argparse.Namespace) -> tuple[dict, dict, float]:
    """Let the crowd vote; once they have warmed the servers up, return what stands on the meters before and after a
    time of voting with everybody there, and how many statements were sent between.
    """
    async with crowd:
        await asyncio.sleep(load.warm_up_s)
        await asyncio.to_thread(stage.query, "SELECT pg_stat_statements_reset()")
        before = await asyncio.to_thread(_meters, stage)
        await asyncio.sleep(load.seconds)
        after = await asyncio.to_thread(_meters, stage)
        return before, after, await asyncio.to_thread(stage.statements)


def _meters(stage: Stage) -> dict[str, float]:
    """Return what stands on the meters: of the record, of this process, in which the voters are, and of the others."""
    votes = stage.query("SELECT count(*) FROM campaigns_vote")[0][0]
    verdicts = stage.query("SELECT count(*) FROM campaigns_comparison WHERE verdict IS NOT NULL")[0][0]
    own = os.times()
    of_this = {"at": time.time(), "votes": votes, "verdicts": verdicts, "voters_s": own.user + own.system}
    return of_this | stage.processor_seconds()


def rounded(found):
    """Return the same with numbers that can be read."""
    if isinstance(found, dict):
        return {name: rounded(each) for name, each in found.items()}
    if isinstance(found, list):
        return [rounded(each) for each in found]
    return round(found, 3) if isinstance(found, float) else found


def main() -> None:
    # Whoever stops this wants its servers stopped and its folders removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    options = options_of()
    text = json.dumps(rounded(run(options)), indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
