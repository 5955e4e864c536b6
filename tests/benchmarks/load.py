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
import dataclasses
import json
import signal
import sys
from pathlib import Path

from tests.benchmarks.load_run import Load, run


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--sockets", type=int, default=150, help="people")
    parser.add_argument("--seconds", type=int, default=60, help="of measuring")
    parser.add_argument("--warm-up", dest="warm_up_s", type=int, default=30, metavar="SECONDS", help="before")
    parser.add_argument("--think-s", type=float, default=4.0, help="mean seconds before a vote")
    parser.add_argument("--webs", type=int, default=1, help="web processes")
    parser.add_argument("--chains", type=int, help="one for each socket unless given")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write to it as well")
    parser.add_argument("--budget", type=int, default=2, metavar="N", help="votes on a comparison")
    parser.add_argument("--durable", action="store_true", help="fsync and synchronous_commit on")
    options = parser.parse_args(arguments)
    options.chains = options.chains or options.sockets
    return options


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
    load = Load(**{each.name: getattr(options, each.name) for each in dataclasses.fields(Load)})
    text = json.dumps(rounded(run(load)), indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
