"""What a vote costs the servers as a site grows.

    python -m tests.benchmarks.growth [--of NAME,NAME] [--runs 3] [--seconds 10] [--json FILE]

Along each line one number grows and all else stays as it is: eight people vote some seventy times a second.

    chains     open chains of the campaign
    votes      votes in the campaign's record already
    waiting    people who wait for a pair, beside those who have one
    idle       open pages in another campaign, on which nobody votes
    webs       web processes, which share the eight people: the more there are, the longer each is idle between votes
    busy-webs  web processes, each with two people of its own: all are as busy as one alone
    page       votes in the record; the cost is that of the campaign's page, and no vote is cast

Every point is measured `--runs` times, each time on servers of its own, in turns up and down the line.

    ms            user and system time of all server processes, over the votes
    statements    what PostgreSQL counted, BEGIN and COMMIT included, over the votes
    exponent      the slope of log cost on log n by least squares, over all runs
    ratio         the median cost at the largest n over that at the smallest
    limits        an exponent of .05 and a ratio of 1.25; of a page, which shows a total, an exponent of 1.1

What an export takes as its record grows is measured by `tests.benchmarks.export`.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tests.benchmarks.growth_lines import LINES, Cost, Line


@dataclass(frozen=True)
class Fit:
    """How one cost grows along a line."""

    exponent: float
    ratio: float

    @classmethod
    def of(cls, numbers: list[int], costs: list[float]) -> Fit:
        """Fit a line to the logarithms of n and cost; the points of the smallest and largest n give the ratio."""
        slope = np.polyfit(np.log(numbers), np.log(costs), 1)[0]
        middle = {
            n: statistics.median(cost for number, cost in zip(numbers, costs, strict=True) if number == n)
            for n in (min(numbers), max(numbers))
        }
        return cls(float(slope), middle[max(numbers)] / middle[min(numbers)])


def in_turns(numbers: Sequence[int], runs: int) -> Iterator[int]:
    """Yield the numbers so many times, up and down in turns: a machine that becomes slower does so for all alike."""
    for run in range(runs):
        yield from numbers if run % 2 == 0 else reversed(numbers)


def show(line: Line, costs: list[Cost]) -> dict:
    """Print what was measured along a line; return it."""
    kinds = list(costs[0].ms_by)
    print(
        f"\n{line.name}\n{'n':>10}{'ms':>10}{'statements':>12}{'votes/s':>10}"
        + "".join(f"{kind:>12}" for kind in kinds)
    )
    for cost in costs:
        by = "".join(f"{cost.ms_by[kind]:>12.2f}" for kind in kinds)
        print(f"{cost.n:>10,}{cost.ms:>10.2f}{cost.statements:>12.2f}{cost.per_s:>10.1f}{by}")
    found = {"points": [asdict(cost) | {"ms": cost.ms} for cost in costs]}
    numbers = [cost.n for cost in costs]
    for name in ("ms", "statements"):
        fit = Fit.of(numbers, [getattr(cost, name) for cost in costs])
        is_within = fit.exponent <= line.most_exponent and fit.ratio <= line.most_ratio
        print(
            f"{name}: exponent {fit.exponent:.3f}, ratio {fit.ratio:.2f}, {'within' if is_within else 'BEYOND'} limits"
        )
        found[name] = asdict(fit) | {"is_within_limits": is_within}
    sys.stdout.flush()
    return found


def main() -> None:
    # Whoever stops this wants its servers stopped and its folders removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--of", default=",".join(LINES), help="names of lines, separated by commas")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=10, help="of each run")
    parser.add_argument("--most", type=int, help="leave out larger n")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    options = parser.parse_args()
    found = {}
    for name in options.of.split(","):
        line = LINES[name]
        numbers = [n for n in line.numbers if options.most is None or n <= options.most]
        costs = [cost for n in in_turns(numbers, options.runs) for cost in line.measure(n, 1, options.seconds)]
        found[name] = show(line, costs)
        if options.json:
            options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
