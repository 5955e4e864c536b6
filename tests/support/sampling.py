"""What tests of the sampler share: small spaces worked out exactly, kernels right and wrong, records made by hand."""

import csv
import hashlib
import io
import itertools
import math
import random
import zipfile
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

import sampler
from sampler.exact import log_base_ratio, preferences, transitions_of, visit_covariance
from sampler.kernels.editor import ImprovingEdit, Update
from sampler.kernels.learned_fragments import EditLogits
from sampler.record.tables import FLAG, NUMBER, ORDINAL, WHOLE, WHOLES, Kind
from sampler.record.tables import MOMENT as MOMENTS
from sampler.record.verify import checked
from sampler.spaces.molecules.edits import Addition
from sampler.spaces.molecules.graph import MoleculeGraph, read_molecule, read_state
from sampler.spaces.molecules.space import MoleculeDistribution
from sampler.spaces.molecules.vocabulary import Vocabulary
from tests.support.enumerated import FragmentMoves, LearnedFragments

# The wrong rules, rules averaged apart from the package, and a test on visit counts. Shapes: n states, m judges. A
# transition matrix has one row per state and each row sums to 1.


Matrix = npt.NDArray[np.float64]
# (log_r0 of shape (n, n), preference of shape (n, n, m), max_votes of length m) -> mean acceptance, shape (n, n).
MeanRule = Callable[[Matrix, Matrix, Sequence[int]], Matrix]
# (log_r0 of shape (...), votes for the proposal of length m, max_votes of length m) -> acceptance, shape (...).
Rule = Callable[[Matrix, npt.NDArray[np.int64], npt.NDArray[np.int64]], Matrix]


def transition_matrix(
    log_p0: npt.ArrayLike,
    q: Matrix,
    scores: npt.ArrayLike,
    max_votes: Sequence[int],
    rule: MeanRule = sampler.marginal_acceptance,
) -> Matrix:
    """Return the exact chain of proposals by q and Bradley-Terry judges, their votes averaged out, shape (n, n).

    Args:
        log_p0: shape (n,).
        q: q(x'|x) at [x, x'], shape (n, n).
        scores: shape (m, n).
        max_votes: N_i, length m.
        rule: mean acceptance; by default the package's.
    """
    return transitions_of(q, rule(log_base_ratio(log_p0, q), preferences(scores), max_votes))


def averaged(rule: Rule) -> MeanRule:
    """Average a rule on votes over K_i ~ Binomial(N_i, p_i), in plain loops and apart from `sampler`."""

    def mean(log_r0: Matrix, preference: Matrix, max_votes: Sequence[int]) -> Matrix:
        total = np.zeros(np.shape(log_r0))
        for tally in itertools.product(*(range(budget + 1) for budget in max_votes)):
            chance = np.ones(np.shape(log_r0))
            for i, (k, budget) in enumerate(zip(tally, max_votes, strict=True)):
                p = preference[..., i]
                chance = chance * math.comb(budget, k) * p**k * (1 - p) ** (budget - k)
            total += chance * rule(log_r0, np.array(tally), np.array(max_votes))
        return total

    return mean


def plug_in_rule(log_r0: Matrix, votes: npt.NDArray[np.int64], max_votes: npt.NDArray[np.int64]) -> Matrix:
    """A wrong rule: the odds estimated as K / (N - K)."""
    if np.any(votes == 0):
        return np.zeros(np.shape(log_r0))
    if np.any(votes == max_votes):
        return np.where(np.isneginf(log_r0), 0.0, 1.0)
    return np.minimum(1, np.exp(log_r0) * np.prod(votes / (max_votes - votes)))


def pooled_rule(log_r0: Matrix, votes: npt.NDArray[np.int64], max_votes: npt.NDArray[np.int64]) -> Matrix:
    """A wrong rule for two judges or more: all votes counted as if one judge had cast them."""
    return np.minimum(1, np.exp(log_r0) * votes.sum() / (max_votes.sum() - votes.sum() + 1))


def visits_p_value(visits: npt.ArrayLike, transitions: Matrix, distribution: Matrix) -> float:
    """Return the p-value of visit counts under a chain with these transitions and this stationary distribution.

    By the central limit theorem for Markov chains, T (v - pi)^T Sigma^+ (v - pi) tends to chi-square with n - 1
    degrees of freedom, v being the visit frequencies and Sigma `visit_covariance`. The sum over independent
    chains of T_c steps each has the same limit with T = sum T_c. Small p: the chain visits something else than pi.

    Args:
        visits: how often each state was visited, shape (n,), or (chains, n) for independent chains.
        transitions: shape (n, n).
        distribution: the expected frequencies, shape (n,).
    """
    counts = np.atleast_2d(np.asarray(visits, dtype=np.float64)).sum(axis=0)
    steps = counts.sum()
    # Without the last state the covariance is regular, and the quadratic form is the one with the pseudo-inverse.
    gap = (counts / steps - distribution)[:-1]
    statistic = steps * gap @ np.linalg.solve(visit_covariance(transitions, distribution)[:-1, :-1], gap)
    return float(stats.chi2.sf(statistic, len(distribution) - 1))


# What every kernel must pass, and a deliberately wrong one must not.
#
# `check_rows` and `check_balance` are exact, on a small instance whose states can be listed; `check_long_run`
# compares a chain driven by the kernel with the distribution on the same instance. All raise AssertionError. n states.


TOLERANCE = 1e-12
# Of p-values: a correct kernel is turned away once in 10,000 seeds, and tests have a fixed one.
MIN_P_VALUE = 1e-4


def matrix_of(states: Sequence[Hashable], rows: Sequence[Mapping[Hashable, float]], empty: float = 0.0) -> Matrix:
    """Return mappings from states to numbers as a matrix, shape (n, n); KeyError for a state that is not listed."""
    index = {state: i for i, state in enumerate(states)}
    matrix = np.full((len(states), len(states)), empty)
    for i, row in enumerate(rows):
        for state, number in row.items():
            matrix[i, index[state]] = number
    return matrix


def check_rows(q: Matrix) -> None:
    """Check that q(.|x) sums to 1 for each x, and that a move is possible both ways or neither."""
    assert np.all(q >= 0)
    worst = float(np.abs(q.sum(axis=1) - 1).max())
    assert worst < TOLERANCE, f"a row of q sums to 1 only within {worst:.1e}"
    assert np.array_equal(q > 0, q.T > 0), "some move has no way back"


def check_balance(log_p0: Matrix, q: Matrix, log_r0: Matrix) -> None:
    """Check log p0(x) + log q(x'|x) + log r0(x, x') = log p0(x') + log q(x|x') for every possible move.

    Then min(1, r0) gives detailed balance with p0, and any rule built on r0 with its own target.

    Args:
        log_p0: shape (n,), up to a constant.
        q: q(x'|x) at [x, x'], shape (n, n).
        log_r0: what the kernel claims, shape (n, n); read only where q > 0.
    """
    moves = (q > 0) & (q.T > 0)
    worst = float(np.abs(log_r0[moves] - log_base_ratio(log_p0, q)[moves]).max())
    assert worst < TOLERANCE, f"a claimed log r0 is off by {worst:.1e}"


def walk(rng: np.random.Generator, kernel: sampler.Kernel, state: Hashable, steps: int) -> Iterator[Hashable]:
    """Yield the states of a chain that accepts with probability min(1, r0): one without judges, which samples p0."""
    for _ in range(steps):
        proposal = kernel.propose(rng, state)
        if rng.random() < math.exp(min(0.0, proposal.log_r0)):
            state = proposal.state
        yield state


def check_long_run(
    rng: np.random.Generator,
    kernel: sampler.Kernel,
    start: Hashable,
    distribution: Mapping[Hashable, float],
    q: Matrix,
    steps: int,
) -> None:
    """Check that a chain's visits follow the distribution, by the central limit theorem for Markov chains.

    The exact chain made of q and the exact ratio gives the visits' covariance: see `visits_p_value`.

    Args:
        distribution: p0 of each state, in the order of q, summing to 1.
        q: q(x'|x), shape (n, n).
        steps: enough that each state is visited some tens of times.
    """
    states, p0 = list(distribution), np.array(list(distribution.values()))
    exact = transitions_of(q, np.exp(np.minimum(0.0, log_base_ratio(np.log(p0), q))))
    visits = Counter(walk(rng, kernel, start, steps))
    assert visits.keys() <= distribution.keys(), "the chain left the support of p0"
    p_value = visits_p_value([visits[state] for state in states], exact, p0)
    assert p_value > MIN_P_VALUE, f"visits do not follow the distribution: p = {p_value:.1e}"


# Molecule spaces small enough to enumerate, their matrices, and q worked out by trying every action.


FLAT = (0.0, -1.0, 0.3, -0.2, 0.1, -0.4, 0.2, -0.1, 0.05, -0.3, 0.15, 0.4)


@dataclass(frozen=True)
class SmallSpace:
    """All that a vocabulary reaches from one molecule up to a size."""

    start: str
    fragments: tuple[tuple[str, float], ...]
    largest: int
    add: float = 0.5
    core: str = ""

    def distribution(self) -> MoleculeDistribution:
        """Sizes weighted unequally, so that a p0 left out of the ratio shows."""
        return MoleculeDistribution(tuple(0.7 * FLAT[n % len(FLAT)] for n in range(self.largest)), core=self.core)

    def kernel(self, convention="exact") -> FragmentMoves:
        return FragmentMoves(Vocabulary(self.fragments), self.distribution(), self.add, convention)

    def reachable(self) -> list[str]:
        return reachable(self.kernel(), self.start)


def plain(*fragments: str) -> tuple[tuple[str, float], ...]:
    return tuple((fragment, 1.0) for fragment in fragments)


SMALL_SPACES = {
    "alkanes": SmallSpace("CC", plain("*C"), 7),
    "symmetric": SmallSpace("c1ccccc1", plain("*C", "*F"), 9),
    "one fragment, another within it": SmallSpace("CC", plain("*C", "*CC", "*C(C)C", "*O"), 5),
    "duplicates": SmallSpace("CC", (*plain("*C", "C*", "*CO", "OC*", "*O"), ("[*]C", 2.5)), 5),
    "pyrrole": SmallSpace("c1cc[nH]c1", plain("*F", "*n1cccc1", "*c1ccc[nH]1"), 10, 0.3),
    "imidazole": SmallSpace("c1c[nH]cn1", plain("*C", "*Cl", "*C=O"), 7),
    "nitro": SmallSpace("c1ccccc1", plain("*[N+](=O)[O-]", "*O"), 10, 0.7),
    "ammonium": SmallSpace("C[NH3+]", plain("*C", "*[NH3+]", "*C(=O)[O-]", "*[O-]"), 5),
    "sulfonium": SmallSpace("C[S+](C)C", plain("*C", "*S(C)(=O)=O", "*[SH+]C"), 6),
    "small rings": SmallSpace("C1CC1", plain("*C1CC1", "*C", "*C1CO1"), 7),
    "pyridone": SmallSpace("O=c1cccc[nH]1", plain("*C", "*O"), 9),
    "centres": SmallSpace("CC(F)Cl", plain("*F", "*Br", "*C=CF"), 6),
}


def reachable(kernel: FragmentMoves, start: str) -> list[str]:
    """Return every state the kernel reaches, in alphabetical order."""
    seen, frontier = {start}, [start]
    while frontier:
        fresh = kernel.distribution(frontier.pop()).keys() - seen
        seen |= fresh
        frontier.extend(fresh)
    return sorted(seen)


def size_log_p0(distribution: MoleculeDistribution, states: list[str]) -> np.ndarray:
    """Return log p0 up to a constant, shape (n,)."""
    return np.array([distribution.log_p0(read_molecule(state).molecule) for state in states])


# The paper's synthetic space (appendix, synthetic validation), written down once for tests and benchmarks.


STATES = 241
GAMMA = 0.88

_PLACES = np.arange(STATES)


def _bump(centre: float, width: float) -> npt.NDArray[np.float64]:
    return np.exp(-(((_PLACES - centre) / width) ** 2) / 2)


LOG_P0 = np.log(_bump(68, 56) / _bump(68, 56).sum())
SCORE = 5 / 240 * _PLACES + 0.9 * _bump(60, 13) + 0.7 * _bump(130, 21) + 1.0 * _bump(200, 13)

# Half the local moves stay, a quarter go to each side; at an end, what would leave stays.
_LOCAL = (np.eye(STATES) / 2) + (np.eye(STATES, k=1) + np.eye(STATES, k=-1)) / 4
_LOCAL[0, 0] = _LOCAL[-1, -1] = 3 / 4
PROPOSALS = GAMMA / STATES + (1 - GAMMA) * _LOCAL


# Editors with fixed or counted numbers, and the matrices of the learned proposal and of its wrong ratios.


class FixedEditor:
    """Normal numbers that depend on the seed and the molecule alone: equivalent atoms get different ones."""

    def __init__(self, fragments: int, seed: int = 0, spread: float = 1.0) -> None:
        self._fragments, self._seed, self._spread = fragments, seed, spread

    @property
    def fingerprint(self) -> str:
        return f"fixed {self._seed} {self._spread}"

    def read(self, states: Sequence[str]) -> list[EditLogits]:
        return [self._logits(state) for state in states]

    def _logits(self, state: str) -> EditLogits:
        digest = hashlib.sha256(f"{self._seed} {state}".encode()).digest()
        rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
        graph = read_state(state)
        shapes = ((graph.size,), (graph.size, self._fragments), (len(graph.directed),))
        return EditLogits(*(self._spread * rng.standard_normal(shape) for shape in shapes))


class RestlessEditor(FixedEditor):
    """It learns while a proposal is drawn: every call of `read` has other numbers."""

    def read(self, states: Sequence[str]) -> list[EditLogits]:
        self._seed += 1
        return super().read(states)


def learned(space: SmallSpace, editor=None, convention="exact") -> LearnedFragments:
    """Return the kernel of a small space."""
    vocabulary = Vocabulary(space.fragments)
    return LearnedFragments(
        vocabulary, space.distribution(), editor or FixedEditor(len(vocabulary)), space.add, convention
    )


def q_matrix(kernel: FragmentMoves | LearnedFragments, states: list[str]) -> np.ndarray:
    """Return q(x'|x) by trying every action, shape (n, n)."""
    return matrix_of(states, [kernel.distribution(state) for state in states])


def claimed_ratios(kernel: LearnedFragments, states: list[str], q: np.ndarray) -> np.ndarray:
    """Return the log base ratio that the kernel's own sums give for every possible move, shape (n, n)."""
    ratios = np.full(q.shape, -np.inf)
    for i, state in enumerate(states):
        for j in np.flatnonzero(q[i]):
            ratios[i, j] = kernel.log_r0(state, states[j])
    return ratios


def single_path_chain(kernel: LearnedFragments, states: list[str], log_p0: np.ndarray) -> np.ndarray:
    """Return the chain whose ratio is of the action drawn and of the one that undoes it, not of all ways.

    Each action has its own ratio here, so the chain is worked out action by action, shape (n, n).
    """
    index = {state: i for i, state in enumerate(states)}
    chances = [{edit: chance for edit, chance, _ in kernel.actions(state)} for state in states]
    matrix = np.zeros((len(states), len(states)))
    for i, state in enumerate(states):
        for _, chance, reached in kernel.actions(state):
            j = index[reached]
            if i == j:
                continue
            low, high = sorted((state, reached), key=lambda each: read_state(each).size)
            ways = kernel.edits.ways(low, high)
            # Any one of the ways back; which one a program happens to find does not fix the ratio.
            undo = ways.deletions[0] if state == low else ways.additions[0]
            ratio = math.exp(log_p0[j] - log_p0[i]) * chances[j][undo] / chance
            matrix[i, j] += chance * min(1.0, ratio)
    np.fill_diagonal(matrix, 1 - matrix.sum(axis=1))
    return matrix


class CountingEditor:
    """An editor that learns without PyTorch: a fragment's logit is half as often as it was in an improving edit."""

    def __init__(self, fragments: int) -> None:
        self._counts = np.zeros(fragments)
        self.about = {"editor": "counts"}

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self._counts.tobytes()).hexdigest()

    def read(self, states: Sequence[str]) -> list[EditLogits]:
        return [self._logits(read_state(state)) for state in states]

    def _logits(self, graph: MoleculeGraph) -> EditLogits:
        fragments = np.tile(0.5 * self._counts, (graph.size, 1))
        return EditLogits(np.zeros(graph.size), fragments, np.zeros(len(graph.directed)))

    def learn(self, edits: Sequence[ImprovingEdit], rng: np.random.Generator) -> Update:
        fragments = [each.edit.fragment for each in edits if isinstance(each.edit, Addition)]
        np.add.at(self._counts, fragments, 1.0)
        return Update(len(fragments), float(rng.random()) if fragments else None)


# Small catalogs with every difficulty at once, and the proposal distributions that the kernels claim to have.


PATH = sampler.Catalog(np.array([1.0, 4.0, 2.0, 0.5]), ((1,), (0, 2), (1, 3), (2,)))
STAR = sampler.Catalog(np.array([3.0, 1.0, 1.0, 0.25, 2.0]), ((1, 2, 3, 4), (0,), (0,), (0,), (0,)))
LOPSIDED = sampler.Catalog(np.array([1.0, 2.0, 5.0, 0.5, 1.5]), ((1, 2, 3), (0, 2), (0, 1, 4), (0,), (2,)))
PAIR = sampler.Catalog(np.array([1.0, 3.0]), ((1,), (0,)))

SMALL_CATALOGS = {"pair": PAIR, "path": PATH, "star": STAR, "lopsided": LOPSIDED}


def independent_distribution(catalog: sampler.Catalog) -> Matrix:
    """q(x'|x) = p0(x') at [x, x']."""
    return np.tile(np.exp(catalog.log_p0), (len(catalog), 1))


def neighbours_distribution(catalog: sampler.Catalog) -> Matrix:
    """q(x'|x) = 1 / deg(x) at [x, x'] for each neighbour x' of x."""
    distribution = np.zeros((len(catalog), len(catalog)))
    for state, row in enumerate(catalog.neighbours):
        distribution[state, list(row)] = 1 / len(row)
    return distribution


def two_scores(catalog: sampler.Catalog) -> Matrix:
    """Scores of two judges that disagree, shape (2, n)."""
    indices = np.arange(len(catalog))
    return np.stack([np.sin(1.0 + 2.0 * indices), 0.6 * np.cos(indices) - 0.2 * indices])


# A campaign's record, as the export writes it: the config, and one list of rows for each CSV file.


def problems_of(config: object) -> dict[str, str]:
    """Return what is wrong with a config, by the path of the field; a line for each problem."""
    with pytest.raises(sampler.ConfigError) as refused:
        sampler.parse_config(config)
    told: dict[str, list[str]] = {}
    for problem in refused.value.problems:
        told.setdefault(problem.path, []).append(problem.message)
    return {path: "\n".join(messages) for path, messages in told.items()}


def mixture(*parts: tuple[float, str | Mapping[str, Any]]) -> dict[str, Any]:
    """Return the config of a mixture: each part's weight, and its kernel or the kind of that."""
    kernels = ((weight, {"kind": kernel} if isinstance(kernel, str) else kernel) for weight, kernel in parts)
    return {"kind": "mixture", "parts": [{"weight": weight, "kernel": kernel} for weight, kernel in kernels]}


RecordRow = dict[str, str]

CONTENTS = ("a castle", "a cat", "two\nlines", "42", "a crypt")

CONFIG: dict[str, Any] = {
    "space": {"kind": "catalog", "objects": "texts", "neighbours": 2},
    "kernel": mixture((0.3, "independent"), (0.7, "neighbours")),
    "judges": [{"question": "Which one is more gothic?", "votes": 3}, {"question": "Which is kinder?", "votes": 2}],
    "chains": 2,
    "steps": 25,
    "seed": 2026,
}


MOMENT = "2026-11-20T10:00:00.000+00:00"


def row_of(table: sampler.tables.Table, **cells: object) -> RecordRow:
    """Return a row of a table: these cells, some moment where one must be, and otherwise empty ones."""
    empty = {column.name: MOMENT if column.kind is MOMENTS and not column.optional else "" for column in table.columns}
    assert cells.keys() <= empty.keys(), cells.keys() - empty.keys()
    return empty | {name: str(cell) for name, cell in cells.items()}


def state_rows(catalog: sampler.Catalog, contents: Sequence[str] = CONTENTS) -> list[RecordRow]:
    return [
        row_of(
            sampler.tables.STATES,
            state_index=state,
            object_index=contents.index(contents[state]),
            weight=float(weight),
            neighbours=" ".join(map(str, catalog.neighbours[state])) if catalog.neighbours else "",
            content=contents[state],
        )
        for state, weight in enumerate(catalog.weights)
    ]


def make_record(open_votes: int | None = None, walk_length: int | None = None, **changes: Any) -> sampler.Record:
    """Run the config with simulated judges and write its record.

    Args:
        open_votes: when given, the last chain has one more step, still undecided after so many votes.
        walk_length: of the steps after a warm-up.
        changes: of the config.
    """
    config = sampler.parse_config(CONFIG | changes | {"steps": CONFIG["steps"] + (open_votes is not None)})
    judges = [Voters(scores) for scores in two_scores(LOPSIDED)]
    plan = config.build(LOPSIDED, walk_length=walk_length)
    return run_campaign(config, judges, state_rows(LOPSIDED), plan=plan, open_votes=open_votes)


# Records that are changed, and hashed again.


Files = dict[str, bytes]


def files_of(path: Path) -> Files:
    """Return what a ZIP holds."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(files: Mapping[str, bytes], path: Path) -> Path:
    """Write a ZIP, and return its path."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def hashed(files: Files) -> Files:
    """Return the files of a record with a manifest of them as they are."""
    manifest = sampler.Manifest()
    noted = (
        (name, manifest.streamed(name, [content])) for name, content in files.items() if name != sampler.tables.MANIFEST
    )
    kept = {name: b"".join(pieces) for name, pieces in noted}
    about = {"site": "https://prefmh.example", "campaign": 1, "written_at": "2026-11-25T10:00:00.000+00:00"}
    return kept | {sampler.tables.MANIFEST: manifest.document(**about)}


def rows_of(files: Files, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(files[name].decode("utf-8-sig"), newline="")))


def table_of(rows: list[dict[str, str]]) -> bytes:
    """Return rows as a CSV file; there must be one."""
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def with_rows(files: Files, name: str, change: Callable[[list[dict[str, str]]], object]) -> Files:
    """Return the files with a change to the rows of one of the tables, which is then written again."""
    rows = rows_of(files, name)
    change(rows)
    return files | {name: table_of(rows)}


_OTHER_CELLS: dict[Kind, Callable[[str], str]] = {
    **dict.fromkeys((WHOLE, ORDINAL), lambda cell: str(int(cell or 0) + 1)),
    NUMBER: lambda cell: repr(float(cell or 0) + 0.25),
    FLAG: lambda cell: "0" if cell == "1" else "1",
    WHOLES: lambda cell: f"{cell} 0".strip(),
}


def changes_not_found(record: sampler.Record, rng: random.Random, rows_of_each: int = 2) -> list[tuple[str, int, str]]:
    """Change one cell of a record after the other, in some rows of each table and each column that is not excused;
    return the file, the row and the column of each change whose consequences are told of no row.
    """
    missed = []
    for table in sampler.tables.CHECKED:
        rows = record[table.name]
        for index in rng.sample(range(len(rows)), min(len(rows), rows_of_each)):
            for column in (each for each in table.columns if not table.excuse(each)):
                honest = rows[index][column.name]
                other = next((word for word in column.words if word != honest), f"{honest}x")
                change = _OTHER_CELLS.get(column.kind)
                rows[index][column.name] = other if change is None else change(honest)
                found = checked(record)[1]
                rows[index][column.name] = honest
                # Neighbours are refused as a whole; the message names the object.
                if not (any(each.row is not None for each in found) or (found and column.kind is WHOLES)):
                    missed.append((table.file, index + 2, column.name))
    return missed


# Exports of campaigns whose voters are known: planted scores, a planted bias for each source, any orders of judges.


Row = dict[str, str]
PEOPLE: dict[str, Any] = {"kind": "people"}
# Of different lengths, so that something can be measured of each.
WORDS = ("ash", "the birch", "a red cedar", "an old elm", "fir", "hazel hedges", "larch", "a maple", "oak", "some pine")
CATALOG = {"kind": "catalog", "objects": "texts", "neighbours": 0}


def model(endpoint: str) -> dict[str, Any]:
    """Return the source of a judge that is a model."""
    return {"kind": "model", "endpoint": endpoint, "temperature": 1.0, "votes": "sampled", "first": False}


@dataclass(frozen=True)
class Voters:
    """A judge and who answers it: prefers by its scores, is biased to the first object by `bias`, both in nats.

    The scores are a list by the catalog's states, or a function of a generated state.
    """

    scores: Sequence[float] | Callable[[Any], float]
    bias: float = 0.0
    budget: int = 4
    order: str = "random"
    question: str = "Which is darker?"
    source: Mapping[str, Any] = field(default_factory=lambda: PEOPLE)

    def score(self, state: Any) -> float:
        return self.scores(state) if callable(self.scores) else self.scores[state]

    def chooses_left(self, rng: np.random.Generator, left: Any, right: Any) -> bool:
        log_odds = self.score(left) - self.score(right) + self.bias
        return bool(rng.random() < 1 / (1 + np.exp(-log_odds)))

    def proposal_is_left(self, rng: np.random.Generator) -> bool:
        drawn = bool(rng.random() < 0.5)
        return {"proposal-first": True, "proposal-second": False}.get(self.order, drawn)


def order_pair(scores: Any, bias: float, budget: int = 2, **changes: Any) -> list[Voters]:
    """Return the two judges of a question asked in both orders."""
    return [Voters(scores, bias, budget, order, **changes) for order in ("proposal-first", "proposal-second")]


def config_of(
    judges: Sequence[Voters], space: Mapping[str, Any], kernel: str = "independent", **run: Any
) -> sampler.ChainConfig:
    """Return the config of a campaign with these judges."""
    listed = [
        {"question": each.question, "votes": each.budget, "order": each.order, "source": dict(each.source)}
        for each in judges
    ]
    fixed = {"space": space, "kernel": {"kind": kernel}, "judges": listed, "chains": 40, "steps": 25, "seed": 1}
    return sampler.parse_config(fixed | run)


def exported(judges: Sequence[Voters], contents: Sequence[str] = WORDS, **run: Any) -> sampler.Record:
    """Run a campaign that picks from a catalog of as many texts as there are scores; see `run_campaign`."""
    catalog = sampler.Catalog(np.ones(len(judges[0].scores)))
    config = config_of(judges, CATALOG, **run)
    return run_campaign(config, judges, state_rows(catalog, contents), plan=config.build(catalog))


def run_campaign(
    config: sampler.ChainConfig,
    judges: Sequence[Voters],
    states: Sequence[Row] = (),
    *,
    plan: sampler.Plan[Any] | None = None,
    open_votes: int | None = None,
) -> sampler.Record:
    """Ask judge after judge, stopping as early as allowed, and return the export.

    Args:
        judges: who answers for each judge of the config.
        states: of a catalog; a generated space's are stored as the application stores them.
        plan: on a catalog, or with a model; else that of the config alone.
        open_votes: when given, the last step of the last chain is still undecided after so many votes, and the other
            chains do not come to theirs.
    """
    plan = plan or config.build()
    record = sampler.Record({sampler.tables.CONFIG: config.model_dump(mode="json")}, {"states": list(states)})
    campaign = _Campaign(config, judges, plan, record, bool(states))
    for chain in range(config.chains):
        position = sampler.begin(plan, chain)
        at = campaign.number(chain, 0, position.state)
        campaign.sample(chain, 0, at)
        while position.step < config.steps - (open_votes is not None and chain < config.chains - 1):
            drawn = sampler.ask(plan, position)
            numbers = at, at if drawn.is_identity else campaign.number(chain, drawn.step, drawn.proposal)
            verdict = campaign.ask_all(drawn, numbers, open_votes if drawn.step == config.steps else None)
            if verdict is sampler.Verdict.UNDECIDED:
                break
            position, at = sampler.advance(position, drawn, verdict), numbers[verdict is sampler.Verdict.ACCEPT]
            campaign.sample(chain, position.step, at)
    return record


@dataclass
class _Campaign:
    config: sampler.ChainConfig
    judges: Sequence[Voters]
    plan: sampler.Plan[Any]
    record: sampler.Record
    has_catalog: bool

    def number(self, chain: int, step: int, state: Any) -> int:
        """Return the number of a state, which is stored unless it is a catalog's."""
        if self.has_catalog:
            return int(state)
        number, content = sampler.state_number(chain, step, self.config.chains), self.plan.space.content(state)
        code = self.plan.space.encode(state)
        self.record["states"].append(row_of(sampler.tables.STATES, state_index=number, content=content, code=code))
        first: dict[str, str] = {}
        # Chains are made one after the other here, so a later one may have the lower number.
        for row in sorted(self.record["states"], key=lambda row: int(row["state_index"])):
            row["object_index"] = first.setdefault(row["content"], row["state_index"])
        return number

    def sample(self, chain: int, step: int, state: int) -> None:
        """Store where a chain is after a step."""
        content = next(row["content"] for row in reversed(self.record["states"]) if row["state_index"] == str(state))
        cells = {"chain_index": chain, "step": step, "state_index": state, "content": content}
        self.record["samples"].append(row_of(sampler.tables.SAMPLES, **cells, phase=self.config.phase_of(step)))

    def ask_all(self, drawn: sampler.Comparison[Any], numbers: tuple[int, int], most: int | None) -> sampler.Verdict:
        """Store a step and its votes, but no more than so many; numbers are those of the two objects."""
        config, of_step = self.config, {"chain_index": drawn.chain, "step": drawn.step}
        rng = sampler.stream(config.seed, drawn.chain, drawn.step, sampler.Purpose.JUDGES)
        tally, number = sampler.Tally.empty(len(self.judges)), 0
        while (verdict := sampler.tell(drawn, tally)) is sampler.Verdict.UNDECIDED and number != most:
            index = next(i for i, budget in enumerate(drawn.max_votes) if tally.votes_cast[i] < budget)
            voters, judge, number = self.judges[index], config.judges[index], number + 1
            proposal_first = voters.proposal_is_left(rng)
            shown = (drawn.proposal, drawn.current) if proposal_first else (drawn.current, drawn.proposal)
            chooses_first = voters.chooses_left(rng, *shown)
            for_proposal = chooses_first == proposal_first
            tally = tally.add(index, for_proposal)
            is_model = judge.source.kind == "model"
            by = {"endpoint": judge.source.endpoint, "slot": number} if is_model else {"voter": number}
            row = row_of(
                sampler.tables.VOTES,
                **of_step,
                **by,
                number=number,
                judge_index=index,
                question=judge.question,
                proposal_side="first" if proposal_first else "second",
                chosen_side="first" if chooses_first else "second",
                for_proposal=int(for_proposal),
                first_state=numbers[proposal_first],
                second_state=numbers[not proposal_first],
                chosen_state=numbers[for_proposal],
            )
            self.record["votes"].append(row)
        part = config.part_of(drawn.chain, drawn.step) if config.has_parts else None
        is_open = verdict is sampler.Verdict.UNDECIDED
        row = row_of(
            sampler.tables.STEPS,
            **of_step,
            current_state=numbers[0],
            proposal_state=numbers[1],
            log_r0=repr(float(drawn.log_r0)),
            uniform="" if is_open else repr(float(drawn.uniform)),
            verdict="" if is_open else verdict.value,
            part_index="" if part is None else part,
        )
        self.record["steps"].append(row)
        return verdict


def rows_in_file(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
