"""Editors with fixed or counted numbers, and the matrices of the learned proposal and of its wrong ratios."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np

from sampler.experiments.editor.learning import ImprovingEdit, Update
from sampler.kernels.learned_fragments import EditLogits, LearnedFragments
from sampler.spaces.molecules.edits import Addition
from sampler.spaces.molecules.graph import MoleculeGraph, read_state
from sampler.spaces.molecules.vocabulary import Vocabulary
from tests.support.kernels import matrix_of
from tests.support.molecules import SmallSpace


class FixedEditor:
    """Normal numbers that depend on the seed and the molecule alone: equivalent atoms get different ones."""

    def __init__(self, arms: int, seed: int = 0, spread: float = 1.0) -> None:
        self._arms, self._seed, self._spread = arms, seed, spread

    @property
    def fingerprint(self) -> str:
        return f"fixed {self._seed} {self._spread}"

    def read(self, states: Sequence[str]) -> list[EditLogits]:
        return [self._logits(state) for state in states]

    def _logits(self, state: str) -> EditLogits:
        digest = hashlib.sha256(f"{self._seed} {state}".encode()).digest()
        rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
        graph = read_state(state)
        shapes = ((graph.size,), (graph.size, self._arms), (len(graph.directed),))
        return EditLogits(*(self._spread * rng.standard_normal(shape) for shape in shapes))


class RestlessEditor(FixedEditor):
    """It learns while a proposal is drawn: every call of `read` has other numbers."""

    def __init__(self, arms: int, declares: bool = True) -> None:
        super().__init__(arms)
        self._declares = declares

    @property
    def fingerprint(self) -> str:
        return str(self._seed) if self._declares else "always the same"

    def read(self, states: Sequence[str]) -> list[EditLogits]:
        self._seed += 1
        return super().read(states)


def learned(space: SmallSpace, editor=None, convention="exact") -> LearnedFragments:
    """Return the kernel of a small space."""
    vocabulary = Vocabulary(space.arms)
    return LearnedFragments(vocabulary, space.law(), editor or FixedEditor(len(vocabulary)), space.add, convention)


def q_matrix(kernel: LearnedFragments, states: list[str]) -> np.ndarray:
    """Return q(x'|x) by trying every action, shape (n, n)."""
    return matrix_of(states, [kernel.law(state) for state in states])


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
    place = {state: i for i, state in enumerate(states)}
    chances = [{edit: chance for edit, chance, _ in kernel.actions(state)} for state in states]
    matrix = np.zeros((len(states), len(states)))
    for i, state in enumerate(states):
        for _, chance, reached in kernel.actions(state):
            j = place[reached]
            if i == j:
                continue
            low, high = sorted((state, reached), key=lambda each: read_state(each).size)
            ways = kernel.edits.ways(low, high)
            # Any one of the ways back; which one a program happens to find does not mend the ratio.
            undo = ways.deletions[0] if state == low else ways.additions[0]
            ratio = math.exp(log_p0[j] - log_p0[i]) * chances[j][undo] / chance
            matrix[i, j] += chance * min(1.0, ratio)
    np.fill_diagonal(matrix, 1 - matrix.sum(axis=1))
    return matrix


class CountingEditor:
    """An editor that learns without PyTorch: the logit of an arm is how often it was in an improving edit, halved."""

    def __init__(self, arms: int) -> None:
        self._counts = np.zeros(arms)
        self.about = {"editor": "counts"}

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self._counts.tobytes()).hexdigest()

    def read(self, states: Sequence[str]) -> list[EditLogits]:
        return [self._logits(read_state(state)) for state in states]

    def _logits(self, graph: MoleculeGraph) -> EditLogits:
        arms = np.tile(0.5 * self._counts, (graph.size, 1))
        return EditLogits(np.zeros(graph.size), arms, np.zeros(len(graph.directed)))

    def learn(self, edits: Sequence[ImprovingEdit], rng: np.random.Generator) -> Update:
        arms = [each.edit.arm for each in edits if isinstance(each.edit, Addition)]
        np.add.at(self._counts, arms, 1.0)
        return Update(len(arms), float(rng.random()) if arms else None)
