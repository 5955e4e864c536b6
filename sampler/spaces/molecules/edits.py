"""Edits of a molecule by its numbers: which atom, fragment or cut; and every edit that leads from one to another.

A learned proposal prefers some atoms, fragments and cuts to others, equivalent ones included, so that counting the ways
between two molecules (`kernels.fragments`) is not enough: they must be named. Atoms are those of the state as its
SMILES names them, fragments are numbered as the vocabulary lists them, cuts as `MoleculeGraph.directed` lists them.
States are always read from their SMILES, so a number means the same in both directions of a move.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from sampler.spaces.molecules.graph import Cut, MoleculeGraph, attach, read_state
from sampler.spaces.molecules.space import MoleculeDistribution
from sampler.spaces.molecules.vocabulary import Vocabulary

_REMEMBERED_STATES = 1_024


class Addition(NamedTuple):
    """Attach a fragment at an atom."""

    atom: int
    fragment: int


class Deletion(NamedTuple):
    """Cut, and drop the far side."""

    cut: int


Edit = Addition | Deletion


class Ways(NamedTuple):
    """All edits between two molecules: those that make the larger of the smaller, and those that go back."""

    additions: tuple[Addition, ...]
    deletions: tuple[Deletion, ...]


class Edits:
    """What edits do to the states of a space.

    An edit is possible where its product is a molecule inside the distribution's support, its fragment is in the
    vocabulary, and an edit goes back; the same moves as those of `kernels.fragments`.

    Args:
        vocabulary: the fragments.
        distribution: p0; also sets the largest molecule.
    """

    def __init__(self, vocabulary: Vocabulary, distribution: MoleculeDistribution) -> None:
        self.vocabulary, self.distribution = vocabulary, distribution
        self._fragments = tuple(vocabulary)
        self._number = {fragment.smiles: number for number, fragment in enumerate(self._fragments)}
        self._graph = lru_cache(maxsize=_REMEMBERED_STATES)(read_state)

    def read(self, state: str) -> MoleculeGraph:
        """Return the graph of a state.

        Raises:
            ValueError: it is no molecule, or outside the distribution's support.
        """
        graph = self._graph(state)
        if self.log_p0(graph) == -math.inf:
            raise ValueError(f"state must lie inside the distribution's support, and {state} does not")
        return graph

    def log_p0(self, graph: MoleculeGraph) -> float:
        """Return log p0 up to a constant; minus infinity outside its support."""
        if not self.distribution.is_by_size:
            graph.sanitise()
        return self.distribution.log_p0(graph.molecule)

    def made(self, graph: MoleculeGraph, edit: Edit) -> str | None:
        """Return the state that an edit makes; None where it is impossible."""
        return self._grown(graph, edit) if isinstance(edit, Addition) else self._shrunk(graph, edit)

    def ways(self, low: str, high: str) -> Ways:
        """Return every edit that makes `high` of `low`, the smaller, and every one that makes `low` of `high`.

        Both come from one list: attaching and cutting are inverse, so each cut of `high` that keeps `low` is undone
        by attaching what it drops at any atom equivalent to the one it bares.
        """
        small, large = self.read(low), self.read(high)
        made = self._cut_that_keeps(low, large, large.size - small.size)
        if made is None:
            return Ways((), ())
        indices = {bond: index for index, bond in enumerate(large.directed)}
        additions: set[Addition] = set()
        deletions: list[Deletion] = []
        for alike in large.alike(made):
            if not self.keeps(low, large, alike[0]):
                continue
            pieces = large.pieces(alike[0])
            deletions += [Deletion(indices[cut.keep, cut.drop]) for cut in alike]
            rank, fragment = small.ranks[pieces.atom], self._number[pieces.fragment]
            additions |= {Addition(atom, fragment) for atom in small.rooms if small.ranks[atom] == rank}
        return Ways(tuple(sorted(additions)), tuple(sorted(deletions)))

    def _grown(self, graph: MoleculeGraph, edit: Addition) -> str | None:
        fragment = self._fragments[edit.fragment]
        if graph.size + fragment.size > self.distribution.largest:
            return None
        product = attach(graph, edit.atom, fragment)
        return product.smiles if product is not None and self.log_p0(product) > -math.inf else None

    def _shrunk(self, graph: MoleculeGraph, edit: Deletion) -> str | None:
        cut = graph.cut(*graph.directed[edit.cut])
        if cut.size > self.vocabulary.largest:
            return None
        kept = self.left(graph, cut)
        return graph.pieces(cut).kept if kept is not None and self.log_p0(kept) > -math.inf else None

    def left(self, graph: MoleculeGraph, cut: Cut) -> MoleculeGraph | None:
        """Return what a cut keeps, whatever p0 is there; None where the move cannot be undone."""
        pieces = graph.pieces(cut)
        if pieces.fragment not in self.vocabulary or not graph.undoes(cut):
            return None
        try:
            return self._graph(pieces.kept)
        except ValueError:
            return None

    def _cut_that_keeps(self, low: str, large: MoleculeGraph, size: int) -> Cut | None:
        candidates = (cut for cut in large.cuts if cut.size == size and self.keeps(low, large, cut))
        return next(candidates, None)

    def keeps(self, low: str, large: MoleculeGraph, cut: Cut) -> bool:
        """True where a cut leaves this state, and the move can be undone."""
        pieces = large.pieces(cut)
        return pieces.kept == low and pieces.fragment in self.vocabulary and large.undoes(cut)
