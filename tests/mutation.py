"""Do the tests notice when the code is wrong? `python -m tests.mutation` draws mutants of the sampler by a seed.

mutmut makes the mutants: the code with one small change each, such as < for <=. What it may change and which tests run
is in `pyproject.toml`. This command draws some of them by a seed, lets mutmut run the tests that reach each, and prints
those that no test has noticed, with their change. Exits with 1 where fewer than nine in ten are caught.

The first run collects which test reaches which function, and takes some minutes more; mutmut keeps that in `mutants/`.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Few mutants, with few tests; a run of them makes all the others too.
FIRST = "sampler.streams.*"
CAUGHT = {"killed", "timeout"}
LEAST_CAUGHT = 0.9


def main() -> int:
    """Draw mutants, run their tests and print the survivors; return 1 if too many survive."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, metavar="N", help="mutants to draw (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the draw (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="(default: %(default)s)")
    options = parser.parse_args()
    _mutmut("run", "--max-children", str(options.processes), FIRST)
    names = sorted(_statuses())
    drawn = random.Random(options.seed).sample(names, min(options.count, len(names)))
    _mutmut("run", "--max-children", str(options.processes), *drawn)
    return _report(drawn, len(names), _statuses())


def _report(drawn: list[str], of: int, statuses: dict[str, str]) -> int:
    survivors = [name for name in sorted(drawn) if statuses[name] not in CAUGHT]
    for name in survivors:
        print(f"\n{_output('show', name)}", end="")
    found = ", ".join(f"{count} {status}" for status, count in Counter(statuses[name] for name in drawn).most_common())
    share = 1 - len(survivors) / len(drawn)
    print(f"\n{len(drawn)} of {of} mutants: {found}; {share:.1%} caught")
    return 0 if share >= LEAST_CAUGHT else 1


def _statuses() -> dict[str, str]:
    return dict(_lines_of(_output("results", "--all", "true")))


def _lines_of(results: str) -> Iterator[tuple[str, str]]:
    for line in results.splitlines():
        name, colon, status = line.strip().partition(": ")
        if colon:
            yield name, status


def _mutmut(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "mutmut", *arguments], cwd=ROOT, check=True)


def _output(*arguments: str) -> str:
    command = [sys.executable, "-m", "mutmut", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
