"""What only tests ask of proposals, grammars and finite chains: everything tried out, with none of their short cuts."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from sampler.chain import Tokens
from sampler.exact import Matrix, log_base_ratio, transitions_of
from sampler.kernels import fragments, learned_fragments
from sampler.kernels.learned_fragments import base_ratio
from sampler.spaces import story_grammar
from sampler.spaces.molecules.edits import Addition, Deletion, Edit, Edits
from sampler.spaces.molecules.graph import MoleculeGraph, attach


class FragmentMoves(fragments.FragmentMoves):
    """The kernel, with the ratio of any move and the whole of q."""

    def log_r0(self, state: str, proposal: str) -> float:
        """Return the log base ratio of a move, worked out from the two molecules; -inf if it cannot be proposed.

        Raises:
            ValueError: either is no molecule, or outside the support of p0.
        """
        one, other = self._edits.read(state), self._edits.read(proposal)
        if state == proposal:
            return 0.0
        (low, kept), (high, _) = sorted(((one, state), (other, proposal)), key=_size)
        for cut in high.cuts:
            if cut.size != high.size - low.size:
                continue
            pieces = high.pieces(cut)
            if self._edits.keeps(kept, high, cut):
                add, delete = self._log_q(low, high, cut, pieces)
                gain = delete - add if one is low else add - delete
                return self._edits.log_p0(other) - self._edits.log_p0(one) + gain
        return -math.inf

    def distribution(self, state: str) -> dict[str, float]:
        """Return q(.|state) by trying every action, with none of the short cuts that `propose` takes.

        Slow: one product for each atom and fragment. Raises ValueError as `propose` does.
        """
        graph = self._edits.read(state)
        shares: dict[str, list[float]] = {state: []}
        if not graph.rooms:
            shares[state].append(self._add)
        for fragment in self._vocabulary:
            share = self._add * self._vocabulary.weights[fragment.smiles] / max(len(graph.rooms), 1)
            for atom in graph.rooms:
                product = attach(graph, atom, fragment)
                reached = self._is_allowed(product)
                shares.setdefault(product.smiles if product and reached else state, []).append(share)
        if not graph.cuts:
            shares[state].append(1 - self._add)
        for cut in graph.cuts:
            reached = graph.pieces(cut).kept if self._is_allowed(self._edits.left(graph, cut)) else state
            shares.setdefault(reached, []).append((1 - self._add) / len(graph.cuts))
        return {reached: math.fsum(parts) for reached, parts in shares.items()}

    def _is_allowed(self, graph: MoleculeGraph | None) -> bool:
        return graph is not None and self._edits.log_p0(graph) > -math.inf


class LearnedFragments(learned_fragments.LearnedFragments):
    """The kernel, with the ratio of any move and the whole of q."""

    def log_q(self, state: str, proposal: str) -> float:
        """Return log q(proposal|state), all ways summed; minus infinity for a move that is impossible.

        Raises:
            ValueError: as `propose_batch`, or the two are the same state (`distribution` gives that).
        """
        if state == proposal:
            raise ValueError("proposal must be another state; distribution(state) gives the chance to stay")
        return self._log_q(self._read([state])[0], state, proposal)

    def log_r0(self, state: str, proposal: str) -> float:
        """Return the exact log base ratio of a move; minus infinity if it cannot be proposed.

        Raises:
            ValueError: as `log_q`.
            EditorChangedError: as `propose_batch`.
        """
        if state == proposal:
            return 0.0
        before = self._editor.fingerprint
        forward, backward = self.log_q(state, proposal), self.log_q(proposal, state)
        self._check_unchanged(before)
        return -math.inf if forward == -math.inf else base_ratio(self.edits, state, proposal, forward, backward)

    def actions(self, state: str) -> Iterator[tuple[Edit | None, float, str]]:
        """Yield every action with its chance and the state that it proposes; chances sum to 1.

        None stands for an addition or a deletion where there is no atom or no cut to draw. Slow: one product for each.
        """
        chances = self._read([state])[0]
        yield None, _nothing(chances, self._add), state
        for edit in every_edit(self.edits, chances.graph):
            yield edit, math.exp(chances.log_chance(edit, self._add)), self.edits.made(chances.graph, edit) or state

    def distribution(self, state: str) -> dict[str, float]:
        """Return q(.|state) by trying every action, with none of the short cuts that `propose` takes.

        Raises ValueError as `propose` does.
        """
        shares: dict[str, list[float]] = {}
        for _, chance, reached in self.actions(state):
            shares.setdefault(reached, []).append(chance)
        return {reached: math.fsum(parts) for reached, parts in shares.items()}


class Grammar(story_grammar.Grammar):
    """The grammar, with the chance of any derivation and all of them."""

    def score(self, prompt: str, tokens: Tokens) -> float:
        """Return log p0 of a whole derivation. Raises ValueError if it is none."""
        derivation = self._derive(prompt, tokens)
        if derivation.choice is not None:
            raise ValueError(f"tokens must be a whole derivation; after these {len(tokens)} a choice is still open")
        return math.fsum(derivation.log_p)

    def derivations(self, prompt: str) -> Iterator[Tokens]:
        """Yield every whole derivation under a prompt, in the order of its tokens. For small grammars.

        Raises:
            ValueError: the prompt is unknown.
        """
        begun: list[Tokens] = [()]
        while begun:
            tokens = begun.pop()
            choice = self._derive(prompt, tokens).choice
            if choice is None:
                yield tokens
            else:
                begun.extend((*tokens, token) for token in reversed(range(len(choice.alternatives))))


def every_edit(edits: Edits, graph: MoleculeGraph) -> Iterator[Edit]:
    """Yield every edit that can be drawn, possible or not."""
    for atom in graph.rooms:
        for fragment in range(len(edits.vocabulary)):
            yield Addition(atom, fragment)
    for cut in range(len(graph.directed)):
        yield Deletion(cut)


def _nothing(chances: learned_fragments._Chances, add: float) -> float:
    """Return the chance to be told to add where no atom has a hydrogen, or to delete where nothing can be cut."""
    return (0.0 if len(chances._rooms) else add) + (0.0 if len(chances._log_cuts) else 1 - add)


def _size(one: tuple[MoleculeGraph, str]) -> int:
    return one[0].size


def base_chain(log_p0: npt.ArrayLike, q: npt.ArrayLike) -> Matrix:
    """Return the chain without judges: q accepted with min(1, r0), which is reversible for p0; shape (n, n)."""
    return transitions_of(q, np.exp(np.minimum(0.0, log_base_ratio(log_p0, q))))


def walk_distribution(log_p0: npt.ArrayLike, q: npt.ArrayLike, length: int) -> Matrix:
    """Return what a walk of q proposes (`sampler.kernels.walk`): `base_chain` taken `length` times, shape (n, n).

    Its base ratio is 1: give the functions below zeros as `log_r0`, for what they would work out from tiny
    probabilities is full of rounding.
    """
    return np.linalg.matrix_power(base_chain(log_p0, q), length)


def imbalance(distribution: Matrix, transitions: Matrix) -> float:
    """Return max |pi(x) P(x, x') - pi(x') P(x', x)|; 0 is detailed balance."""
    flow = distribution[:, None] * transitions
    return float(np.abs(flow - flow.T).max())
