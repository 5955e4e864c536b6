"""Spaces on which the votes that a sample costs can be worked out exactly: laws, kernels, scores, all by a seed."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from sampler.experiments import synthetic as published
from sampler.kernels.crank_nicolson import PAPER_MIXTURE
from tests.support.enumerated import Grammar, walk_law
from tests.support.sampling import SmallSpace, plain, q_matrix, size_log_p0

Matrix = npt.NDArray[np.float64]
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
        walked: the proposal law of a walk of a length; by default the kernel's own chain taken so often.
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
        return self.walked(length) if self.walked else walk_law(self.log_p0, self.q, int(length))

    @property
    def described(self) -> dict[str, object]:
        """For the record of a run."""
        return {"space": self.name, "strength": self.strength, "states": len(self.log_p0), "grid": list(self.grid)}


def spaces() -> Iterator[FiniteSpace]:
    """Yield every space."""
    for width in (5, 20):
        yield synthetic(f"synthetic, steps ±{width}", steps_of(width), 1.0, (1, 4, 16, 64, 100, 256, 512))
    yield synthetic("synthetic, the paper's kernel", published.proposal_law(), 1.0, (1, 2, 4, 16, 64))
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
    law, places = np.zeros((published.STATES, published.STATES)), np.arange(published.STATES)
    for step in (*range(-width, 0), *range(1, width + 1)):
        ends = places + step
        law[places, np.where((ends >= 0) & (ends < published.STATES), ends, places)] += 1 / (2 * width)
    return law


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
    return states, _normalised(size_log_p0(small.law(), states)), q_matrix(small.kernel(), states)


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
    # What a choice is worth, at its place.
    worth = rng.standard_normal((grammar.limit, max(max(tokens) for tokens in sequences) + 1))
    score = np.array([sum(worth[place, token] for place, token in enumerate(tokens)) for tokens in sequences])
    lengths = np.array([len(grammar.text("a story", tokens)) for tokens in sequences])
    q = _suffix_law(sequences, np.exp(log_p0), grammar.limit)
    properties = np.stack([lengths, [len(tokens) for tokens in sequences]], axis=1).astype(np.float64)
    return _standard("texts, suffix", strength, _normalised(log_p0), q, score, properties, (1, 2, 4, 16, 64))


def _suffix_law(sequences: Sequence[tuple[int, ...]], p0: Matrix, limit: int) -> Matrix:
    law = np.zeros((len(sequences), len(sequences)))
    for cut in range(limit):
        begins = [tokens[:cut] if cut < len(tokens) else None for tokens in sequences]
        for row, begin in enumerate(begins):
            alike = np.array([begin is not None and other == begin for other in begins])
            law[row] += (
                alike * p0 / (p0[alike].sum() * limit) if begin is not None else (np.arange(len(p0)) == row) / limit
            )
    return law


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
    law = flow / np.exp(-0.5 * z[:, None] ** 2) * math.sqrt(2 * math.pi) * (z[1] - z[0])
    law[np.diag_indices_from(law)] += 1 - law.sum(axis=1)
    return np.asarray(law)


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
