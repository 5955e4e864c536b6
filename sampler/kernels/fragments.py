"""Moves by fragments: attach a fragment of the vocabulary at an atom, or cut one off. The Hastings ratio is exact.

An addition (probability P) draws an atom with a hydrogen, uniformly among n(x), and a fragment f with its weight w_f. A
deletion (1 - P) draws a directed cut uniformly among the 2 m(x) of the m(x) acyclic single bonds. The same molecule
can come about in several ways: at any equivalent atom, with any of several fragments, by any of several cuts. q sums
over all of them. Additions only grow and deletions only shrink, so for lo → hi (lo the smaller)

    q(hi|lo) = P / n(lo) · Σ_f w_f |A_f|        A_f: the atoms of lo where fragment f gives hi
    q(lo|hi) = (1 - P) |D| / 2m(hi)             D: the directed cuts of hi that keep lo and drop a known fragment
    log r0(lo, hi) = log p0(hi) - log p0(lo) + log q(lo|hi) - log q(hi|lo), and r0(hi, lo) = 1 / r0(lo, hi)

An action that is impossible proposes the state itself and keeps its share of q: no atom with a hydrogen, no bond to
cut, a product that is no molecule or too large or outside p0's filters, a dropped side that is not in the vocabulary,
a move that cannot be undone.

Both sums come from one list. Attaching and cutting are inverse (`molecules.graph`), so each (atom, fragment) that makes
hi is undone by a cut of hi, and each cut in D by an addition; what RDKit's clean-up would keep from being undone is
impossible both ways. Only cuts that drop as many atoms as the move itself
are looked at, one for each class of equivalent ones.

The pilot finds log-weights per molecule size that give a chain without judges a stated distribution of sizes.

Stochastic approximation Monte Carlo (Liang, Liu and Carroll, JASA 102, 2007), which is Wang-Landau with a gain that
falls as 1/t and so converges: the chain targets exp(w[n]) within sizes; at every step w moves by gain times (v - e_n),
v being how often each size should be visited and e_n one at the size the chain stands in. Then log v - w is, up to a
constant, the log of the number of molecules of n heavy atoms that the vocabulary reaches. Half of v is the wanted
distribution and half is uniform, so that the chain passes through small molecules often and starts afresh there; the
answer is shifted from v to the wanted distribution. A campaign takes the weights as they are: p0 is one fixed
distribution, and an inaccurate pilot costs drug-likeness, never exactness.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field

from sampler.chain import Proposal, Purpose, stream
from sampler.declared import Declared, ui
from sampler.spaces.molecules.edits import Edits
from sampler.spaces.molecules.graph import Cut, MoleculeGraph, Pieces, attach, heavy_atoms, inverse_cut
from sampler.spaces.molecules.space import MAX_HEAVY_ATOMS, START, GeneratedMolecules, MoleculeDistribution
from sampler.spaces.molecules.vocabulary import Vocabulary, default_vocabulary, load_vocabulary

# "paper": log r0 = 0 whatever the move, as in the published experiment. Inexact: the chain does not target p0.
Convention = Literal["exact", "paper"]
_CONVENTIONS = {
    "exact": "exact",
    "paper": "1, as in the published experiment: not exact, samples from another distribution",
}
_REMEMBERED_KERNELS = 16
Thing = TypeVar("Thing")


class FragmentsConfig(Declared):
    """The part of a config that says: add a fragment, or delete one.

    Args:
        add: probability of an addition.
        convention: "paper" reproduces the published experiment and is inexact.
    """

    model_config = ConfigDict(title="A fragment is added or deleted")

    moves_in: ClassVar[tuple[str, ...]] = ("molecules",)
    """The kinds of space."""
    kind: Literal["fragments"] = "fragments"
    add: float = Field(
        default=0.5,
        gt=0,
        lt=1,
        title="Additions, in percent",
        description="The rest are deletions.",
        json_schema_extra=ui(unit="percent"),
    )
    convention: Convention = Field(
        default="exact",
        title="Hastings ratio",
        description="It corrects for moves that are likelier in one direction than back.",
        json_schema_extra=ui(labels=_CONVENTIONS),
    )

    def build(self, space: GeneratedMolecules) -> FragmentMoves:
        """Return the kernel on this space; the same one for the same space, with the molecules it has read."""
        return _build(self, space)


class FragmentMoves:
    """Propose to add or to delete a fragment.

    States are canonical SMILES as `canonical_state` returns them, inside the distribution's support.

    Args:
        vocabulary: the fragments.
        distribution: p0; also sets the largest molecule.
        add: probability of an addition, inside (0, 1); otherwise a deletion.
        convention: "exact", or "paper" for log r0 = 0, which samples another distribution than p0.

    Raises:
        ValueError: `add` or `convention` is neither.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        distribution: MoleculeDistribution,
        add: float = 0.5,
        convention: Convention = "exact",
    ) -> None:
        if not 0 < add < 1:
            raise ValueError(f"add must be a probability above 0 and below 1, not {add}")
        if convention not in ("exact", "paper"):
            raise ValueError(f"convention must be 'exact' or 'paper', not {convention!r}")
        self._vocabulary, self._edits = vocabulary, Edits(vocabulary, distribution)
        self._add, self._is_exact = add, convention == "exact"

    def propose(self, rng: np.random.Generator, state: str) -> Proposal[str]:
        """Draw x' ~ q(.|state).

        Raises:
            ValueError: the state is no molecule, or outside the support of p0.
        """
        graph = self._edits.read(state)
        found = self._grow(rng, graph, state) if rng.random() < self._add else self._shrink(rng, graph)
        if found is None:
            return Proposal(state, 0.0)
        product, log_p0, log_q_ratio = found
        return Proposal(product, log_p0 - self._edits.log_p0(graph) + log_q_ratio if self._is_exact else 0.0)

    def _grow(self, rng: np.random.Generator, graph: MoleculeGraph, state: str) -> tuple[str, float, float] | None:
        fragment = self._vocabulary.draw(rng)
        uniform = rng.random()
        if not graph.rooms or graph.size + fragment.size > self._edits.distribution.largest:
            return None
        atom = _pick(graph.rooms, uniform)
        product = attach(graph, atom, fragment)
        if product is None or (log_p0 := self._edits.log_p0(product)) == -math.inf:
            return None
        if (undo := inverse_cut(product, atom, graph.size)) is None:
            return None
        pieces = Pieces(state, fragment.smiles, atom)
        add, delete = self._log_q(graph, product, undo, pieces)
        return product.smiles, log_p0, delete - add

    def _shrink(self, rng: np.random.Generator, graph: MoleculeGraph) -> tuple[str, float, float] | None:
        uniform = rng.random()
        if not graph.directed:
            return None
        cut = graph.cut(*_pick(graph.directed, uniform))
        if cut.size > self._vocabulary.largest:
            return None
        kept, pieces = self._edits.left(graph, cut), graph.pieces(cut)
        if kept is None or (log_p0 := self._edits.log_p0(kept)) == -math.inf:
            return None
        add, delete = self._log_q(kept, graph, cut, pieces)
        return pieces.kept, log_p0, add - delete

    def _log_q(self, low: MoleculeGraph, high: MoleculeGraph, made: Cut, pieces: Pieces) -> tuple[float, float]:
        """Return log q(high|low) and log q(low|high), given one cut of `high` that keeps `low` and what it makes.

        `Pieces.atom` names an atom of `low`: `low` is numbered as its SMILES is written wherever other pieces than
        the ones given may have to be compared with them.
        """
        directed = 0
        sites: dict[str, set[int]] = {}
        for same in high.alike(made):
            each = pieces if made in same else high.pieces(same[0])
            if each.kept == pieces.kept and each.fragment in self._vocabulary and high.undoes(same[0]):
                directed += len(same)
                sites.setdefault(each.fragment, set()).add(low.ranks[each.atom])
        ways = math.fsum(
            self._vocabulary.weights[fragment] * sum(rank in ranks for rank in low.ranks)
            for fragment, ranks in sites.items()
        )
        add = math.log(self._add) - math.log(len(low.rooms)) + math.log(ways)
        return add, math.log(1 - self._add) + math.log(directed) - math.log(2 * len(high.bonds))


@lru_cache(maxsize=_REMEMBERED_KERNELS)
def _build(config: FragmentsConfig, space: GeneratedMolecules) -> FragmentMoves:
    return FragmentMoves(space.vocabulary, space.distribution, config.add, config.convention)


def _pick(things: Sequence[Thing], uniform: float) -> Thing:
    return things[min(int(uniform * len(things)), len(things) - 1)]


MEAN_SIZE, SIZE_DEVIATION = 24.0, 6.0
# A first guess, steeper than the truth (1 to 3 per atom) wherever it matters: the chain then conquers sizes from below.
# With a flat one it lies among the largest molecules until their weights have fallen far too low to come back.
_LOG_GROWTH_PER_ATOM = 3.0
_FIRST_GAIN = 0.1
# The gain stays at its first value for this share of the run.
_HOT_SHARE = 0.05


def drug_like_sizes(largest: int = MAX_HEAVY_ATOMS) -> npt.NDArray[np.float64]:
    """Return the log of the wanted distribution of sizes 1 to `largest`: normal, mean 24, deviation 6, cut off."""
    atoms = np.arange(1, largest + 1)
    log_distribution = -0.5 * ((atoms - MEAN_SIZE) / SIZE_DEVIATION) ** 2
    return np.asarray(log_distribution - np.log(np.exp(log_distribution).sum()))


def pilot(
    vocabulary: Vocabulary,
    distribution: MoleculeDistribution,
    rng: np.random.Generator,
    steps: int,
    start: str = START,
    progress: Callable[[int], object] = lambda steps: None,
) -> npt.NDArray[np.float64]:
    """Return log-weights that give sizes the distribution of `drug_like_sizes`, shape (distribution.largest,); the
    largest is 0.

    Args:
        vocabulary: the fragments.
        distribution: its filters and its largest size; its weights are the first guess, all finite.
        rng: draws moves and verdicts.
        steps: moves; the weights are averaged over the second half.
        start: the first molecule.
        progress: called with 1 after every step.
    """
    wanted = drug_like_sizes(distribution.largest)
    visits = 0.5 * np.exp(wanted) + 0.5 / distribution.largest
    weights = np.array(distribution.size_log_weights)
    total = np.zeros(distribution.largest)
    kernel = FragmentMoves(vocabulary, replace(distribution, size_log_weights=(0.0,) * distribution.largest))
    hot = max(1.0, _HOT_SHARE * steps)
    state, size = start, heavy_atoms(start)
    for step in range(1, steps + 1):
        proposal = kernel.propose(rng, state)
        if proposal.state != state:
            proposed = heavy_atoms(proposal.state)
            log_ratio = proposal.log_r0 + weights[proposed - 1] - weights[size - 1]
            if rng.random() < math.exp(min(0.0, log_ratio)):
                state, size = proposal.state, proposed
        gain = _FIRST_GAIN * hot / max(hot, step)
        weights += gain * visits
        weights[size - 1] -= gain
        if 2 * step > steps:
            total += weights
        progress(1)
    found = total / (steps - steps // 2) - np.log(visits) + wanted
    return np.asarray(found - found.max())


def write_pilot(
    fragments: Path | None, out: Path, steps: int, seed: int, progress: Callable[[int], object] = lambda steps: None
) -> None:
    """Run the pilot on a vocabulary, and write the weights.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the file of fragments is none.
    """
    vocabulary = load_vocabulary(fragments) if fragments else default_vocabulary()
    # Nobody wants to hear only after minutes that the file cannot be written.
    with out.open("a", encoding="utf-8"):
        pass
    guess = tuple(-_LOG_GROWTH_PER_ATOM * n for n in range(MAX_HEAVY_ATOMS))
    weights = pilot(
        vocabulary, MoleculeDistribution(guess), stream(seed, 0, 0, Purpose.PROPOSAL), steps, START, progress
    )
    frozen = MoleculeDistribution(tuple(round(float(weight), 3) for weight in weights))
    header = (
        "# log-weights of p0 per number of heavy atoms, found by "
        f"`python -m sampler pilot --steps {steps} --seed {seed}`\n"
        f"# on {fragments.name if fragments else 'the default vocabulary'} ({len(vocabulary)} fragments)\n"
        "# heavy atoms, tab, log-weight"
    )
    lines = (f"{n}\t{weight:.3f}" for n, weight in enumerate(frozen.size_log_weights, start=1))
    out.write_text("\n".join([header, *lines, ""]), encoding="utf-8")
