"""Two revisions under the same voters, in alternating pairs of runs; what counts is the ratio within a pair."""

from __future__ import annotations

import random
import statistics
import sys

from tests.benchmarks.load_revisions import Revision
from tests.benchmarks.load_run import Load, run

THIS, OTHER = "this", "other"


def compare(this: Revision, other: Revision, load: Load, pairs: int) -> dict:
    """Run both `pairs` times, each time on a new database, and return the runs and the ratios, this one's over the
    other's. The first pair's first side is drawn by lot; from pair to pair the order turns round.
    """
    sides = {THIS: this, OTHER: other}
    order = [THIS, OTHER]
    random.SystemRandom().shuffle(order)
    found, orders = [], []
    for pair in range(pairs):
        runs = {}
        for name in order:
            print(f"pair {pair + 1} of {pairs}: {name} ({sides[name].commit[:7]})", file=sys.stderr, flush=True)
            # pgbench beside the first run of this revision: it depends on the machine, hardly on the revision.
            floor_s = load.floor_s if name == THIS and not pair else 0
            runs[name] = run(sides[name], load, seed=pair + 1, floor_s=floor_s)
        found.append(runs)
        orders.append(list(order))
        order.reverse()
    return {
        "commit": this.commit,
        "against": other.commit,
        "orders": orders,
        "pairs": found,
        "offered_load_reached": all(each["offered_load_reached"] for runs in found for each in runs.values()),
        "ratios": ratios(found),
    }


def ratios(pairs: list[dict[str, dict]]) -> dict[str, dict[str, float]]:
    """Return, for each figure, the median and the range of the pairs' ratios."""
    each = [(_compared(runs[THIS]), _compared(runs[OTHER])) for runs in pairs]
    found = {}
    for name in each[0][0]:
        ratio = [this[name] / other[name] for this, other in each if other[name]]
        if ratio:
            found[name] = {"median": statistics.median(ratio), "least": min(ratio), "most": max(ratio)}
    return found


def _compared(run: dict) -> dict[str, float]:
    return {
        "votes/s": run["votes_per_s"],
        **{f"{name} ms": value for name, value in run["acknowledged_ms"].items()},
        **{f"processor ms a vote, {name}": value for name, value in run["processor_ms_a_vote"].items()},
        "statements a vote": run["statements_a_vote"],
    }
