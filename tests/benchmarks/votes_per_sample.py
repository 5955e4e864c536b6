"""What an independent sample costs in votes: asked about each move, or about the end of a walk.

    python -m tests.benchmarks.votes_per_sample [--only TEXT] [--json [FILE]]

For each space and strength of the score s: votes asked per step times the integrated autocorrelation time of the
slowest of some functions, in stationarity; one judge, N = 1, early stopping, a proposal equal to the state free. All of
it is exact, from transition matrices; only the tuned walk has an interval, from simulated warm-ups.

    plain         each question is about one move of the kernel
    walk L        each question is about the end of a walk of L moves (of latents: of one step of size β)
    tuned, V      the length that `sampler.kernels.warm_up` chooses from a warm-up of 8 chains that ends with some V
                  votes: mean, 5 % and 95 % of 200 warm-ups; without the warm-up's own votes
    all asked     plain, with all N votes of each comparison always asked, the best N of 1, 2, 4, 8

    TV, 5 % flips     how far the law is from the target if 5 % of the votes are coin flips
    won               the share of votes for the proposal
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sampler import NVote, exact
from sampler.kernels.warm_up import chosen_length, trials
from tests.benchmarks.votes_spaces import SEED, FiniteSpace, spaces

Matrix = npt.NDArray[np.float64]
LAPSES = 0.05
CHAINS, WARM_UP_VOTES, WARM_UPS = 8, (300, 1000), 200
BUDGETS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Row:
    """One method on one space."""

    space: str
    strength: float
    method: str
    L: float | None
    votes_per_sample: float
    low: float
    high: float
    won: float | None = None
    tv_with_lapses: float | None = None


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="spaces whose name has this in it")
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="to print or write")
    options = parser.parse_args()
    found: list[dict[str, object]] = []
    for space in spaces():
        if options.only not in space.name:
            continue
        rows = list(rows_of(space))
        found.append({**space.described, "rows": [asdict(row) for row in rows]})
        if not options.json:
            print_rows(space, rows)
    if options.json == "-":
        json.dump(found, sys.stdout, indent=2)
    elif options.json:
        Path(options.json).write_text(json.dumps(found, indent=2))


def rows_of(space: FiniteSpace) -> Iterator[Row]:
    """Yield what every method costs on a space."""
    plain = _row(space, "plain", None, space.q, None)
    walks = {length: _row(space, "walk", length, law, np.zeros_like(law)) for length, law in _walks(space)}
    yield plain
    yield from walks.values()
    for votes in WARM_UP_VOTES:
        yield _tuned(space, {length: row.votes_per_sample for length, row in walks.items()}, votes)
    yield _all_asked(space)


def _walks(space: FiniteSpace) -> Iterator[tuple[float, Matrix]]:
    for length in space.grid:
        yield length, space.proposals(length)


def _row(space: FiniteSpace, method: str, length: float | None, q: Matrix, log_r0: Matrix | None) -> Row:
    scores, rule = space.score[None], NVote((1,))
    costs = exact.votes_per_effective_sample(space.log_p0, q, scores, rule, space.functions, log_r0=log_r0)
    cost = float(np.max(costs))
    won, tv = _share_won(space, q, log_r0), _tv_with_lapses(space, q, log_r0)
    return Row(space.name, space.strength, method, length, cost, cost, cost, won, tv)


def _share_won(space: FiniteSpace, q: Matrix, log_r0: Matrix | None) -> float:
    """Return the share of votes for the proposal, of those asked: none where x' = x, or where U decides by itself."""
    scores = space.score[None]
    ratio = exact.log_base_ratio(space.log_p0, q) if log_r0 is None else log_r0
    asked = (
        exact.target(space.log_p0, scores)[:, None] * q * np.exp(np.minimum(0.0, ratio)) * ~np.eye(len(q), dtype=bool)
    )
    return float((asked * exact.preferences(scores)[..., 0]).sum() / asked.sum())


def _tv_with_lapses(space: FiniteSpace, q: Matrix, log_r0: Matrix | None) -> float:
    scores = space.score[None]
    ratio = exact.log_base_ratio(space.log_p0, q) if log_r0 is None else log_r0
    chances = (1 - LAPSES) * exact.preferences(scores) + LAPSES / 2
    chain = exact.transitions_of(q, NVote((1,)).mean_acceptance(ratio, chances))
    return float(exact.total_variation(np.clip(exact.stationary(chain), 0, None), exact.target(space.log_p0, scores)))


def _all_asked(space: FiniteSpace) -> Row:
    costs = {}
    for votes in BUDGETS:
        each = exact.votes_per_effective_sample(
            space.log_p0, space.q, space.score[None], NVote((votes,)), space.functions, early_stopping=False
        )
        costs[votes] = float(np.max(each))
    best = min(costs, key=costs.__getitem__)
    return Row(space.name, space.strength, f"all asked, N = {best}", None, costs[best], costs[best], costs[best])


def _tuned(space: FiniteSpace, costs: dict[float, float], votes: int) -> Row:
    rng = np.random.default_rng(SEED)
    ends = np.stack([np.cumsum(law, axis=1) for _, law in _walks(space)])
    found = np.array([costs[space.grid[_warm_up(rng, space, ends, votes)]] for _ in range(WARM_UPS)])
    low, high = np.quantile(found, (0.05, 0.95))
    return Row(space.name, space.strength, f"tuned, {votes}", None, float(found.mean()), float(low), float(high))


def _warm_up(rng: np.random.Generator, space: FiniteSpace, ends: Matrix, votes: int) -> int:
    """Simulate a warm-up from p0; return the place in the grid that is chosen.

    Args:
        ends: the cumulative laws of the walks, shape (grid, n, n).
        votes: after which it ends.
    """
    at = rng.choice(len(space.log_p0), size=CHAINS, p=np.exp(space.log_p0))
    columns: list[tuple[npt.NDArray[np.generic], ...]] = []
    cast = 0
    while cast < votes:
        drawn = rng.integers(len(space.grid), size=CHAINS)
        number = rng.random(CHAINS)[:, None] * ends[drawn, at, -1:]
        proposal = (ends[drawn, at] <= number).sum(axis=1)
        asked = proposal != at
        # With one vote and base ratio 1 a step is accepted if and only if the vote is for the proposal.
        is_for = asked & (rng.random(CHAINS) < 1 / (1 + np.exp(space.score[at] - space.score[proposal])))
        after = np.where(is_for, proposal, at)
        columns.append((drawn, asked, is_for, at, proposal, after))
        at, cast = after, cast + int(asked.sum())
    drawn, asked, is_for, *places = map(np.concatenate, zip(*columns, strict=True))
    tried = trials(range(len(space.grid)), drawn, asked, is_for, *(space.properties[place] for place in places))
    return chosen_length(tried)


def print_rows(space: FiniteSpace, rows: list[Row]) -> None:
    """Print a space's table."""
    print(f"\n{space.name}, strength {space.strength:g}, {len(space.log_p0)} states")
    print(f"  {'method':<26}{'votes a sample':>16}{'interval':>22}{'won':>8}{'TV, 5 % flips':>15}")
    for row in rows:
        name = f"walk {row.L:g}" if row.method == "walk" else row.method
        interval = f"{row.low:.4g} to {row.high:.4g}" if row.low < row.high else ""
        won = "" if row.won is None else f"{row.won:.3f}"
        tv = "" if row.tv_with_lapses is None else f"{row.tv_with_lapses:.3f}"
        print(f"  {name:<26}{row.votes_per_sample:>16.4g}{interval:>22}{won:>8}{tv:>15}")
    walks = [row.votes_per_sample for row in rows if row.method == "walk"]
    tuned = next(row for row in rows if row.method == f"tuned, {max(WARM_UP_VOTES)}")
    asked = next(row for row in rows if row.method.startswith("all asked"))
    print(
        f"  tuned over the best of the grid {tuned.votes_per_sample / min(walks):.3g}, "
        f"over all asked {tuned.votes_per_sample / asked.votes_per_sample:.3g}"
    )


if __name__ == "__main__":
    main()
