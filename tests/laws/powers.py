"""What the statistical tests of studies can see, by simulation with `sampler` alone: `python -m tests.laws.powers`.

For each study: its votes, how often the test rejects, and the middle p-value. Of a right study it must not reject.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from tests.laws.cases import BROKEN, CLAIMED, LEVEL, RIGHT
from tests.laws.law import PValues, p_values
from tests.laws.simulated import simulated


def run_of(name: str, seed: int) -> PValues:
    """Simulate a study once and test it against the chain that is true for its voters."""
    case = (RIGHT | BROKEN | CLAIMED)[name]
    return p_values(simulated(case, seed), case.true_chain())


def main() -> None:
    """Print a line for each study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40, help="simulated runs of each study (default: 40)")
    parser.add_argument("--only", default="", help="studies whose name contains this")
    options = parser.parse_args()
    print(f"{'study':36} {'rejected at':>16} {'p of visits':>12} {'of moves':>9} {'of both':>9}")
    with ProcessPoolExecutor() as pool:
        for name in filter(lambda name: options.only in name, RIGHT | BROKEN | CLAIMED):
            runs = list(pool.map(run_of, [name] * options.runs, range(options.runs)))
            rejected = np.mean([run.least < LEVEL for run in runs])
            visits, moves, both = (np.median([getattr(run, of) for run in runs]) for of in ("visits", "moves", "least"))
            print(f"{name:36} {rejected:8.3f} at {LEVEL:.0e} {visits:12.1e} {moves:9.1e} {both:9.1e}", flush=True)


if __name__ == "__main__":
    main()
