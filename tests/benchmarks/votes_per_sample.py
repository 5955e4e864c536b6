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

    TV, 5 % flips     how far the distribution is from the target if 5 % of the votes are coin flips
    won               the share of votes for the proposal
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sampler import NVote, exact
from sampler.experiments import synthetic as published
from sampler.kernels.crank_nicolson import PAPER_MIXTURE
from sampler.kernels.warm_up import chosen_length, trials
from tests.support.enumerated import Grammar, walk_distribution
from tests.support.sampling import SmallSpace, plain, q_matrix, size_log_p0

Matrix = npt.NDArray[np.float64]
LAPSES = 0.05
CHAINS, WARM_UP_VOTES, WARM_UPS = 8, (300, 1000), 200
MAX_VOTES = (1, 2, 4, 8)
SEED = 20261123
STRENGTHS = (0.5, 1.0, 2.0)
"""The spread of s under p0, in nats, where the paper does not give s."""


@dataclass(frozen=True)
class FiniteSpace:
    """States 0 .. n-1 with one judge.

    Args:
        name: of the space and the kernel.
        strength: what s is multiplied by, or its spread under p0.
        log_p0: shape (n,).
        q: q(x'|x) at [x, x'], shape (n, n).
        score: s, shape (n,).
        functions: what the slowest is sought among, shape (k, n).
        properties: what the tuning measures jumps by, shape (n, p).
        grid: lengths to walk; for one Crank-Nicolson kernel its β, which stands for a length.
        walked: the proposal distribution of a walk of a length; by default the kernel's own chain taken so often.
    """

    name: str
    strength: float
    log_p0: Matrix
    q: Matrix
    score: Matrix
    functions: Matrix
    properties: Matrix
    grid: tuple[float, ...] = (1, 4, 16, 64, 256)
    walked: Callable[[float], Matrix] | None = None

    def proposals(self, length: float) -> Matrix:
        """Return what a walk of this length proposes, shape (n, n)."""
        return self.walked(length) if self.walked else walk_distribution(self.log_p0, self.q, int(length))

    @property
    def described(self) -> dict[str, object]:
        """For the record of a run."""
        return {"space": self.name, "strength": self.strength, "states": len(self.log_p0), "grid": list(self.grid)}


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
    walks = {
        length: _row(space, "walk", length, distribution, np.zeros_like(distribution))
        for length, distribution in _walks(space)
    }
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
    for votes in MAX_VOTES:
        each = exact.votes_per_effective_sample(
            space.log_p0, space.q, space.score[None], NVote((votes,)), space.functions, early_stopping=False
        )
        costs[votes] = float(np.max(each))
    best = min(costs, key=costs.__getitem__)
    return Row(space.name, space.strength, f"all asked, N = {best}", None, costs[best], costs[best], costs[best])


def _tuned(space: FiniteSpace, costs: dict[float, float], votes: int) -> Row:
    rng = np.random.default_rng(SEED)
    ends = np.stack([np.cumsum(distribution, axis=1) for _, distribution in _walks(space)])
    found = np.array([costs[space.grid[_warm_up(rng, space, ends, votes)]] for _ in range(WARM_UPS)])
    low, high = np.quantile(found, (0.05, 0.95))
    return Row(space.name, space.strength, f"tuned, {votes}", None, float(found.mean()), float(low), float(high))


def _warm_up(rng: np.random.Generator, space: FiniteSpace, ends: Matrix, votes: int) -> int:
    """Simulate a warm-up from p0; return the index in the grid that is chosen.

    Args:
        ends: the cumulative distributions of the walks, shape (grid, n, n).
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
    drawn, asked, is_for, *indices = map(np.concatenate, zip(*columns, strict=True))
    tried = trials(range(len(space.grid)), drawn, asked, is_for, *(space.properties[index] for index in indices))
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


# Spaces on which the votes that a sample costs can be worked out exactly: distributions, kernels, scores, by a seed.


def spaces() -> Iterator[FiniteSpace]:
    """Yield every space."""
    for width in (5, 20):
        yield synthetic(f"synthetic, steps ±{width}", steps_of(width), 1.0, (1, 4, 16, 64, 100, 256, 512))
    yield synthetic("synthetic, the paper's kernel", published.proposal_distribution(), 1.0, (1, 2, 4, 16, 64))
    yield synthetic("synthetic, steps ±20", steps_of(20), 2.5, (1, 4, 16, 64, 256, 512))
    for strength in STRENGTHS:
        yield catalog(strength)
        yield molecules(strength)
        yield texts(strength)
    for pull in (1.0, 2.0, 3.0):
        yield latents(pull)


def synthetic(name: str, q: Matrix, strength: float, grid: tuple[float, ...]) -> FiniteSpace:
    """Return the paper's target with a kernel of one's own; `strength` multiplies s."""
    k, score = np.arange(published.STATES, dtype=np.float64), strength * published.scores()
    functions = np.stack([k, k > 150, np.abs(k - 60) < 25, score]).astype(np.float64)
    return FiniteSpace(name, strength, published.log_p0(), q, score, functions, k[:, None], grid)


def steps_of(width: int) -> Matrix:
    """Return k + uniform on {-w .. w} without 0; a step off either end stays."""
    distribution, indices = np.zeros((published.STATES, published.STATES)), np.arange(published.STATES)
    for step in (*range(-width, 0), *range(1, width + 1)):
        ends = indices + step
        distribution[indices, np.where((ends >= 0) & (ends < published.STATES), ends, indices)] += 1 / (2 * width)
    return distribution


def catalog(strength: float, items: int = 400, nearest: int = 8) -> FiniteSpace:
    """Return points of a square, linked to their nearest, with a smooth score."""
    rng = np.random.default_rng(SEED)
    points = rng.random((items, 2))
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    linked = np.zeros((items, items), dtype=np.bool_)
    rows = np.argsort(distance, axis=1)[:, 1 : nearest + 1]
    linked[np.arange(items)[:, None], rows] = True
    linked |= linked.T
    log_p0 = _normalised(0.5 * rng.standard_normal(items))
    score = np.sin(7 * points[:, 0]) + np.cos(5 * points[:, 1]) + 0.3 * rng.standard_normal(items)
    q = linked / linked.sum(axis=1, keepdims=True)
    return _standard("catalog, neighbours", strength, log_p0, q, score, points, (1, 4, 16, 64, 256, 512))


def molecules(strength: float) -> FiniteSpace:
    """Return all molecules of a few atoms, with the fragment kernel and a score by atoms and their neighbours."""
    states, log_p0, q = _small_molecules()
    rng = np.random.default_rng(SEED)
    counts = np.array(
        [[len(state.replace("(", "").replace(")", "")), state.count("O"), state.count("(")] for state in states]
    )
    score = counts[:, 1] - 0.7 * counts[:, 2] + 0.3 * rng.standard_normal(len(states))
    return _standard("molecules, fragments", strength, log_p0, q, score, counts.astype(np.float64))


@cache
def _small_molecules() -> tuple[list[str], Matrix, Matrix]:
    small = SmallSpace("CC", plain("*C", "*O", "*N"), 6)
    states = small.reachable()
    return states, _normalised(size_log_p0(small.distribution(), states)), q_matrix(small.kernel(), states)


RULES = {
    "story": ["{who} {did} {where}[.|, {and}.]"],
    "who": ["a fox", "a hen", "a very old [man|woman]"],
    "did": ["slept", "sang", (0.5, "waited for [rain|snow]")],
    "where": ["here", "in the [wood|barn]", (0.5, "by the sea")],
    "and": ["alone", "and nobody [came|knew]"],
}


def texts(strength: float) -> FiniteSpace:
    """Return all texts of a grammar, with suffix moves whose cut is uniform up to the longest text."""
    grammar = Grammar(RULES)
    sequences = list(grammar.derivations("a story"))
    log_p0 = np.array([grammar.score("a story", tokens) for tokens in sequences])
    rng = np.random.default_rng(SEED)
    # What a choice is worth, at its index.
    worth = rng.standard_normal((grammar.limit, max(max(tokens) for tokens in sequences) + 1))
    score = np.array([sum(worth[index, token] for index, token in enumerate(tokens)) for tokens in sequences])
    lengths = np.array([len(grammar.text("a story", tokens)) for tokens in sequences])
    q = _suffix_distribution(sequences, np.exp(log_p0), grammar.limit)
    properties = np.stack([lengths, [len(tokens) for tokens in sequences]], axis=1).astype(np.float64)
    return _standard("texts, suffix", strength, _normalised(log_p0), q, score, properties, (1, 2, 4, 16, 64))


def _suffix_distribution(sequences: Sequence[tuple[int, ...]], p0: Matrix, limit: int) -> Matrix:
    distribution = np.zeros((len(sequences), len(sequences)))
    for cut in range(limit):
        begins = [tokens[:cut] if cut < len(tokens) else None for tokens in sequences]
        for row, begin in enumerate(begins):
            alike = np.array([begin is not None and other == begin for other in begins])
            distribution[row] += (
                alike * p0 / (p0[alike].sum() * limit) if begin is not None else (np.arange(len(p0)) == row) / limit
            )
    return distribution


def latents(pull: float, spacing: float = 0.04) -> FiniteSpace:
    """Return N(0, I) pulled along one direction w, s(z) = pull · w·z, seen along it; the paper's mixture of steps.

    The place along w is a chain by itself. On a grid this fine sums over it are the integrals to 1e-10 (trapezoidal
    rule on a Gaussian). A walk is one step of a larger size β, and the grid names β itself.
    """
    z = np.arange(-6.0, pull + 6.0, spacing)
    log_p0 = _normalised(-0.5 * z * z)
    parts = [(part["weight"], part["kernel"].get("beta", 1.0)) for part in PAPER_MIXTURE["parts"]]
    q = np.sum([weight * _one_step(z, beta) for weight, beta in parts], axis=0)
    functions = np.stack([z, z > pull])
    grid = (0.1, 0.2, 0.4, 0.6, 0.8)
    return FiniteSpace(
        "latents, pulled", pull, log_p0, q, pull * z, functions, z[:, None], grid, lambda beta: _one_step(z, beta)
    )


def _one_step(z: Matrix, beta: float) -> Matrix:
    """Return q(z'|z) of a Crank-Nicolson step on the grid; what falls off its ends stays."""
    keep = math.sqrt(1 - beta * beta)
    # Written with both squared, so that p0(z) q(z'|z) is symmetric to the last bit.
    exponent = -(z[:, None] ** 2 + z[None] ** 2 - 2 * keep * z[:, None] * z[None]) / (2 * beta * beta)
    flow = np.exp(exponent) / (2 * math.pi * beta)
    distribution = flow / np.exp(-0.5 * z[:, None] ** 2) * math.sqrt(2 * math.pi) * (z[1] - z[0])
    distribution[np.diag_indices_from(distribution)] += 1 - distribution.sum(axis=1)
    return np.asarray(distribution)


def _standard(
    name: str,
    strength: float,
    log_p0: Matrix,
    q: Matrix,
    score: Matrix,
    properties: Matrix,
    grid: tuple[float, ...] = (1, 4, 16, 64, 256),
) -> FiniteSpace:
    p0 = np.exp(log_p0)
    centred = score - p0 @ score
    scaled = strength * centred / math.sqrt(p0 @ centred**2)
    above = (properties > np.median(properties, axis=0)).astype(np.float64)
    functions = np.vstack([properties.T, above.T, scaled])
    functions = functions[np.ptp(functions, axis=1) > 0]
    return FiniteSpace(name, strength, log_p0, q, scaled, functions, properties, grid)


def _normalised(log_p0: Matrix) -> Matrix:
    return np.asarray(log_p0 - np.log(np.exp(log_p0).sum()))


if __name__ == "__main__":
    main()
