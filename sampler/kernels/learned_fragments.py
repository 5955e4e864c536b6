"""Moves by fragments that an editor chooses: the learned proposal of MARS (Xie et al., ICLR 2021). The ratio is exact.

An addition (probability P) draws an atom with a hydrogen, then a fragment given the atom; a deletion (1 - P) draws a
directed cut. An editor, any object with the two members of `Editor`, gives a number to each; with n atoms, V fragments:

    q(a, f | x) = P · softmax_a(atoms) · softmax_f(fragments[a] + log w)     over the atoms with a hydrogen
    q(c | x)    = (1 - P) · softmax_c(cuts)                                  over the directed cuts

w are the vocabulary's weights, so an editor that says 0 everywhere gives exactly `kernels.fragments`. An impossible
action proposes the state itself and keeps its share of q, as it does there.

The same molecule comes about in several ways, and an editor may like one of two equivalent atoms better. q(x'|x) sums
the chances of all atoms, fragments and cuts that make x' of x, q(x|x') of all that go back (`spaces.molecules.edits`):

    log r0(x, x') = log p0(x') - log p0(x) + log q(x|x') - log q(x'|x)       convention "exact"

Convention "paper": log r0 = 0, as in the published experiment. Inexact: the chain does not target p0.

Numbers are read at the state and at the proposal from the same editor, or the two halves of the ratio belong to two
proposal distributions: the editor's fingerprint is compared before and after, and a change is an error. An editor that
learns between steps is allowed. Every step then has its own exact kernel; the sequence of them adapts to the past of
the chains, and only once learning has stopped is the chain a Markov chain with the stated target.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sampler.chain import Proposal
from sampler.kernels.fragments import Convention
from sampler.spaces.molecules.edits import Addition, Deletion, Edit, Edits
from sampler.spaces.molecules.graph import MoleculeGraph
from sampler.spaces.molecules.space import MoleculeDistribution
from sampler.spaces.molecules.vocabulary import Vocabulary

Numbers = npt.NDArray[np.floating]


@dataclass(frozen=True)
class EditLogits:
    """What an editor says of one molecule of n atoms and d directed cuts, for a vocabulary of V fragments.

    Args:
        atoms: shape (n,), in the order in which the SMILES names the atoms; those without a hydrogen are not used.
        fragments: shape (n, V).
        cuts: shape (d,), in the order of `MoleculeGraph.directed`.
    """

    atoms: Numbers
    fragments: Numbers
    cuts: Numbers


class Editor(Protocol):
    """What chooses edits. The same fingerprint must mean the same numbers for the same molecule."""

    @property
    def fingerprint(self) -> str:
        """A hash of all that its numbers depend on."""
        ...

    def read(self, states: Sequence[str]) -> Sequence[EditLogits]:
        """Return what it says of each molecule."""
        ...


class EditorChangedError(RuntimeError):
    """The editor was updated between a proposal's forward and backward probability."""


@dataclass(frozen=True)
class EditProposal(Proposal[str]):
    """A draw with what made it.

    Args:
        edit: the action drawn; None where there was none to draw.
        log_forward: log q(x'|x), all ways summed; None for a proposal that is the state itself, and under "paper".
        log_backward: log q(x|x'), likewise.
    """

    edit: Edit | None
    log_forward: float | None
    log_backward: float | None


class LearnedFragments:
    """Propose to add or to delete a fragment, as an editor chooses.

    States are canonical SMILES as `canonical_state` returns them, inside the distribution's support.

    Args:
        vocabulary: the fragments.
        distribution: p0; also sets the largest molecule.
        editor: gives the logits.
        add: probability of an addition, inside (0, 1); otherwise a deletion.
        convention: "exact", or "paper" for log r0 = 0, which samples another distribution than p0.

    Raises:
        ValueError: `add` or `convention` is neither.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        distribution: MoleculeDistribution,
        editor: Editor,
        add: float = 0.5,
        convention: Convention = "exact",
    ) -> None:
        if not 0 < add < 1:
            raise ValueError(f"add must be a probability above 0 and below 1, not {add}")
        if convention not in ("exact", "paper"):
            raise ValueError(f"convention must be 'exact' or 'paper', not {convention!r}")
        self.edits = Edits(vocabulary, distribution)
        self._editor, self._add, self._is_exact = editor, add, convention == "exact"
        self._log_weights = np.log([vocabulary.weights[fragment.smiles] for fragment in vocabulary])

    def propose(self, rng: np.random.Generator, state: str) -> EditProposal:
        """Draw x' ~ q(.|state); raises as `propose_batch` does."""
        return self.propose_batch([rng], [state])[0]

    def propose_batch(self, rngs: Sequence[np.random.Generator], states: Sequence[str]) -> list[EditProposal]:
        """Draw x' ~ q(.|x) for each state, with two calls of the editor: one for the states, one for the proposals.

        Raises:
            ValueError: a state is no molecule or outside the support of p0, or the editor's numbers do not fit it.
            EditorChangedError: the editor changed on the way.
        """
        before = self._editor.fingerprint
        chances = self._read(states)
        drawn = [each.draw(rng, self._add) for rng, each in zip(rngs, chances, strict=True)]
        made = [edit and self.edits.made(each.graph, edit) for edit, each in zip(drawn, chances, strict=True)]
        moves = [index for index, product in enumerate(made) if product not in (None, states[index])]
        proposals = [EditProposal(state, 0.0, edit, None, None) for state, edit in zip(states, drawn, strict=True)]
        products = [product for index in moves if (product := made[index])]
        backward = self._read(products) if self._is_exact else [None] * len(moves)
        for index, product, back in zip(moves, products, backward, strict=True):
            proposals[index] = self._priced(chances[index], states[index], product, back, drawn[index])
        self._check_unchanged(before)
        return proposals

    def _check_unchanged(self, fingerprint: str) -> None:
        if self._editor.fingerprint != fingerprint:
            raise EditorChangedError("the editor must stay as it is between a proposal's forward and backward chances")

    def _priced(
        self, chances: _Chances, state: str, product: str, back: _Chances | None, edit: Edit | None
    ) -> EditProposal:
        if back is None:
            return EditProposal(product, 0.0, edit, None, None)
        forward, backward = self._log_q(chances, state, product), self._log_q(back, product, state)
        log_r0 = base_ratio(self.edits, state, product, forward, backward)
        return EditProposal(product, log_r0, edit, forward, backward)

    def _log_q(self, chances: _Chances, state: str, proposal: str) -> float:
        is_addition = chances.graph.size < self.edits.read(proposal).size
        low, high = (state, proposal) if is_addition else (proposal, state)
        ways = self.edits.ways(low, high)
        edits: Iterable[Edit] = ways.additions if is_addition else ways.deletions
        return _log_sum([chances.log_chance(edit, self._add) for edit in edits])

    def _read(self, states: Sequence[str]) -> list[_Chances]:
        graphs = [self.edits.read(state) for state in states]
        if not graphs:
            return []
        logits = self._editor.read(states)
        return [_Chances(graph, each, self._log_weights) for graph, each in zip(graphs, logits, strict=True)]


def base_ratio(edits: Edits, state: str, proposal: str, log_forward: float, log_backward: float) -> float:
    """Return log p0(x') - log p0(x) + log q(x|x') - log q(x'|x), by the same operations whoever works it out."""
    log_p0_ratio = edits.log_p0(edits.read(proposal)) - edits.log_p0(edits.read(state))
    return log_p0_ratio + log_backward - log_forward


class _Chances:
    """The log-chances of every action at one molecule, in double precision whatever the editor's."""

    def __init__(self, graph: MoleculeGraph, logits: EditLogits, log_weights: Numbers) -> None:
        wanted = {
            "atoms": (graph.size,),
            "fragments": (graph.size, len(log_weights)),
            "cuts": (len(graph.directed),),
        }
        for name, shape in wanted.items():
            found = getattr(logits, name)
            if found.shape != shape:
                raise ValueError(f"{name} of an editor must have the shape {shape} here, not {found.shape}")
        self.graph = graph
        self._fragment_logits, self._log_weights = logits.fragments, log_weights
        self._rooms = np.array(graph.rooms, dtype=np.intp)
        self._log_rooms = _log_softmax("atoms", logits.atoms[self._rooms])
        self._index = {atom: index for index, atom in enumerate(graph.rooms)}
        self._log_cuts = _log_softmax("cuts", logits.cuts)
        self._log_fragments: dict[int, Numbers] = {}

    def draw(self, rng: np.random.Generator, add: float) -> Edit | None:
        if rng.random() < add:
            if not len(self._rooms):
                return None
            atom = int(self._rooms[_pick(rng, self._log_rooms)])
            return Addition(atom, _pick(rng, self._fragments(atom)))
        return Deletion(_pick(rng, self._log_cuts)) if len(self._log_cuts) else None

    def log_chance(self, edit: Edit, add: float) -> float:
        if isinstance(edit, Addition):
            chance = self._log_rooms[self._index[edit.atom]] + self._fragments(edit.atom)[edit.fragment]
            return math.log(add) + float(chance)
        return math.log(1 - add) + float(self._log_cuts[edit.cut])

    def _fragments(self, atom: int) -> Numbers:
        if atom not in self._log_fragments:
            self._log_fragments[atom] = _log_softmax("fragments", self._fragment_logits[atom] + self._log_weights)
        return self._log_fragments[atom]


def _log_softmax(name: str, logits: Numbers) -> Numbers:
    """Return log-probabilities, shape (n,); nothing for no logit. Raises ValueError for one that is not finite."""
    numbers = np.asarray(logits, dtype=np.float64)
    if not np.all(np.isfinite(numbers)):
        raise ValueError(f"{name} of an editor must be finite numbers")
    if not len(numbers):
        return numbers
    centred = numbers - numbers.max()
    return np.asarray(centred - np.log(np.exp(centred).sum()))


def _pick(rng: np.random.Generator, log_chances: Numbers) -> int:
    """Draw an index by inversion of the distribution function."""
    cumulative = np.cumsum(np.exp(log_chances)).tolist()
    return min(bisect_right(cumulative, rng.random() * cumulative[-1]), len(cumulative) - 1)


def _log_sum(logs: Sequence[float]) -> float:
    """Return log Σ exp; minus infinity for none."""
    if not logs:
        return -math.inf
    most = max(logs)
    return most + math.log(math.fsum(math.exp(each - most) for each in logs))
