"""A campaign under load: how long voters wait, and what a vote costs, beside a pgbench script of the bare statements.

    python -m tests.benchmarks.load [--sockets 300] [--seconds 60] [--webs 1] [--chains N] [--waiting W]
    python -m tests.benchmarks.load --json [FILE] [--sockets 150] [--budget 2] [--chains N] [--durable]
                                    [--space list|texts|molecules] [--walk L]
    python -m tests.benchmarks.load --pin [--json [FILE]]
    python -m tests.benchmarks.load --against REV [--pairs 5] [--environments FOLDER] [--json [FILE]]

Starts PostgreSQL, Redis, web processes, a worker and beat of its own. S annotators hold a socket each and vote at a
human pace: an exponential think time with a mean of four seconds.

The first form prints a table of two campaigns, one of which always has a question for everybody, while in the other
W people (a tenth) wait for the next pair. The others measure a campaign of a thousand texts and one judge, a chain a
person; `--json` prints what they find, or writes it to a file. `--pin` keeps all servers on one core and the voters on
another, with 500 sockets for ten minutes. `--against` runs the servers of another revision, in a checkout, an
environment and a database of its own, under these voters, in alternating pairs; read the pairs' ratios.

    acknowledged      from sending a vote to the screen that answers it, seen by the voter
    verdict to pair   from the verdict of a step to the moment the chain's next pair is on a waiting voter's screen
    processor time    user and system time of the processes between two readings, over the votes stored between them
    votes a core      the votes per second at which that time would fill one core
    statements        what PostgreSQL's pg_stat_statements counted, BEGIN and COMMIT included, over the same votes
    memory            resident, without shared memory; its slope is the median of those between samples
    reached           people who think at a moment, over how many would if no server kept them waiting: by Little's law
                      the offered load that is reached, without the chance of the think times drawn
    loop_s            what five million multiplications in Python took before the run and after it: compare it only
                      between runs with the same build of Python

All of it runs on the machine that it measures, voters included: read the times with the load average in mind. The
processor time and the statements hardly depend on it.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path

from tests.benchmarks import load_scenes, load_targets
from tests.benchmarks.load_compare import compare
from tests.benchmarks.load_revisions import checked_out, this_one
from tests.benchmarks.load_run import Load, run
from tests.benchmarks.load_table import Asked, show

STANDARD_OUTPUT = Path("-")
TABLE_SOCKETS, TABLE_WARM_UP_S = 300, 8
SOCKETS, WARM_UP_S, SECONDS = 150, 30, 60
# Within two minutes PostgreSQL's connections have met their statements, and their caches are full.
PINNED_WARM_UP_S = 150


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the command line's options, with the defaults of the form that they ask for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--sockets", type=int, help="people; 300 for the table, 500 with --pin, otherwise 150")
    parser.add_argument("--seconds", type=int, help="of measuring; 600 with --pin, otherwise 60")
    parser.add_argument(
        "--warm-up", type=int, metavar="SECONDS", help="before; 8 for the table, 150 with --pin, otherwise 30"
    )
    parser.add_argument("--think-s", type=float, default=load_targets.THINK_S, help="mean seconds before a vote")
    parser.add_argument("--webs", type=int, default=1, help="web processes")
    parser.add_argument("--chains", type=int, help="of the (busy) campaign; one for each socket unless given")
    parser.add_argument(
        "--waiting", type=int, help="table: sockets in the campaign with few pairs; a tenth if not given"
    )
    parser.add_argument("--statements", type=int, default=0, metavar="N", help="table: list the N most frequent ones")
    parser.add_argument("--json", type=Path, nargs="?", const=STANDARD_OUTPUT, metavar="FILE", help="to print or write")
    parser.add_argument("--budget", type=int, metavar="N", help="votes on a comparison, 2 unless given; no table")
    parser.add_argument("--space", choices=load_scenes.SPACES, default="list", help="what is compared; no table")
    parser.add_argument("--walk", type=int, default=0, metavar="L", help="moves between two questions; no table")
    parser.add_argument("--pin", action="store_true", help="servers on one core, voters on another")
    parser.add_argument("--durable", action="store_true", help="fsync and synchronous_commit on; no table")
    parser.add_argument("--against", metavar="REV", help="compare with this revision's servers")
    parser.add_argument("--pairs", type=int, default=5, help="runs of each revision")
    parser.add_argument("--environments", type=Path, metavar="FOLDER", help="keeps other revisions' environments")
    options = parser.parse_args(arguments)
    options.is_table = not (options.json or options.pin or options.durable or options.against or options.budget)
    sockets, warm_up, seconds = SOCKETS, WARM_UP_S, SECONDS
    if options.is_table:
        sockets, warm_up = TABLE_SOCKETS, TABLE_WARM_UP_S
    elif options.pin:
        sockets, warm_up, seconds = load_targets.PINNED_SOCKETS, PINNED_WARM_UP_S, load_targets.PINNED_S
    options.budget = options.budget or 2
    options.sockets = options.sockets or sockets
    options.chains = options.chains or options.sockets
    options.seconds = options.seconds or seconds
    options.warm_up = warm_up if options.warm_up is None else options.warm_up
    options.waiting = options.sockets // 10 if options.waiting is None else options.waiting
    return options


def load_of(options: argparse.Namespace) -> Load:
    return Load(
        sockets=options.sockets,
        chains=options.chains,
        budget=options.budget,
        think_s=options.think_s,
        seconds=options.seconds,
        warm_up_s=options.warm_up,
        webs=options.webs,
        is_durable=options.durable,
        is_pinned=options.pin,
        space=options.space,
        walk=options.walk,
    )


def asked_of(options: argparse.Namespace) -> Asked:
    return Asked(
        sockets=options.sockets,
        waiting=options.waiting,
        chains=options.chains,
        think_s=options.think_s,
        seconds=options.seconds,
        warm_up_s=options.warm_up,
        webs=options.webs,
        listed=options.statements,
    )


def found_by(options: argparse.Namespace) -> dict:
    """Return the figures of a run or of a comparison, with the targets that apply."""
    load = load_of(options)
    if not options.against:
        found = run(this_one(), load, floor_s=load.floor_s)
        return found | {"targets": load_targets.of_run(load, found)}
    with checked_out(options.against, options.environments) as other:
        found = compare(this_one(), other, load, options.pairs)
    return found | {"targets": load_targets.of_comparison(load, found)}


def rounded(found):
    """Return the same with numbers that can be read."""
    if isinstance(found, dict):
        return {name: rounded(each) for name, each in found.items()}
    if isinstance(found, list):
        return [rounded(each) for each in found]
    return round(found, 3) if isinstance(found, float) else found


def tell(found: dict, target: Path) -> None:
    """Print the figures, or write them to a file and print what they come to."""
    found = rounded(found)
    text = json.dumps(found, indent=2)
    if target == STANDARD_OUTPUT:
        print(text)
        return
    target.write_text(text + "\n")
    summary = {name: found[name] for name in ("ratios", "offered_load_reached", "targets") if name in found}
    print(json.dumps(summary, indent=2))


def main() -> None:
    # Whoever stops this wants its servers stopped and its folders removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    options = options_of()
    if options.is_table:
        show(asked_of(options))
    else:
        tell(found_by(options), options.json or STANDARD_OUTPUT)


if __name__ == "__main__":
    main()
