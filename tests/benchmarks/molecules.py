"""Molecule proposals against the RDKit calls they cannot do without, in one run.

    python -m tests.benchmarks.molecules [--proposals 4000] [--moves 0]

States are the molecules of 25 to 40 heavy atoms in RDKit's own list of screening compounds, the vocabulary is the
default, p0 weighs all sizes alike up to 50 heavy atoms so that few additions are too large. The floor of a proposal
is what any kernel must do: sanitise the product and write its canonical SMILES. Timed are

    fresh state       the state is read from its SMILES too, as in the step after an acceptance
    known state       the state was read before, as in the step after a rejection

each over the proposals that lead to a new molecule, growing and shrinking apart and together, and over all of them
(those that are impossible cost less), in seconds of processor time, so that what else runs matters less. Each proposal
is timed next to its floor: both find the processor's caches as they are in a chain, and the same machine where it is
shared. Both are the best of three. Then, of the same proposals, the share of each part: sanitising, SMILES (read and
written), matches and ranks, the sums of q, and the rest, which is our graph code.
With --moves N, the fuzz: a chain without judges, every state checked and every move undone, N moves in all.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from rdkit import Chem

from sampler import Purpose, stream
from sampler.kernels.fragments import FragmentMoves
from sampler.spaces.molecules.graph import MoleculeGraph, canonical_state, heavy_atoms
from sampler.spaces.molecules.law import MoleculeLaw, default_size_log_weights
from sampler.spaces.molecules.vocabulary import default_vocabulary, rdkit_sources, read_smiles
from tests.benchmarks.shares import Shares

SMALLEST, LARGEST = 25, 40
STATES = 400
_STATES = (("fresh state", False), ("known state", True))
_WAYS = (("growing",), ("shrinking",), ("growing", "shrinking"))
_OURS = "our graphs"
_PARTS: dict[str, list[tuple[Any, str]]] = {
    "sanitising": [(Chem, "SanitizeMol"), (Chem, "FastFindRings"), (Chem.Mol, "UpdatePropertyCache")],
    "SMILES": [(Chem, "MolFromSmiles"), (Chem, "MolToSmiles")],
    "matches": [
        (Chem, "CanonicalRankAtoms"),
        *((Chem.Mol, name) for name in ("GetSubstructMatches", "HasSubstructMatch", "GetAtomsMatchingQuery")),
    ],
    "sums": [(FragmentMoves, "_log_q"), (MoleculeGraph, "alike")],
}
_ORDER = (*_PARTS, _OURS)


def states(smallest: int = SMALLEST, largest: int = LARGEST) -> list[str]:
    """Return molecules of the sizes wanted, the first of the list that fit."""
    found = []
    for smiles in read_smiles(rdkit_sources()[1]):
        try:
            state = canonical_state(smiles)
        except ValueError:
            continue
        if smallest <= heavy_atoms(state) <= largest:
            found.append(state)
        if len(found) == STATES:
            break
    return found


class Timed(NamedTuple):
    """A proposal: its seconds, and those of its floor."""

    seconds: float
    floor: float
    state: str
    product: str


def floor(product: str) -> float:
    """Return the seconds that sanitising a product and writing its SMILES takes."""
    molecule = Chem.MolFromSmiles(product, sanitize=False)
    begun = time.process_time()
    Chem.SanitizeMol(molecule)
    Chem.MolToSmiles(molecule)
    return time.process_time() - begun


def proposals(pool: list[str], count: int, *, known: bool) -> list[Timed]:
    """Time `count` proposals, each next to its floor; the best of three, always with the same draws."""
    rounds = []
    for _ in range(3):
        kernel, timed = FragmentMoves(default_vocabulary(), MoleculeLaw((0.0,) * 50)), []
        for step in range(count):
            state = pool[step % len(pool)]
            if step % len(pool) == 0:
                kernel.forget()
            if known:
                kernel.propose(stream(2, 0, step, Purpose.PROPOSAL), state)
            rng = stream(1, 0, step, Purpose.PROPOSAL)
            begun = time.process_time()
            proposal = kernel.propose(rng, state)
            timed.append(Timed(time.process_time() - begun, floor(proposal.state), state, proposal.state))
        rounds.append(timed)
    return [
        Timed(min(each.seconds for each in same), min(each.floor for each in same), same[0].state, same[0].product)
        for same in zip(*rounds, strict=True)
    ]


def shares(pool: list[str], count: int, *, known: bool) -> list[tuple[Counter[str], str, str]]:
    """Return the seconds of each part, state and proposal of `count` proposals; the best of three, same draws."""
    clocks, rounds = Shares(_PARTS), []
    for _ in range(3):
        kernel, timed = FragmentMoves(default_vocabulary(), MoleculeLaw((0.0,) * 50)), []
        for step in range(count):
            state = pool[step % len(pool)]
            if step % len(pool) == 0:
                kernel.forget()
            if known:
                kernel.propose(stream(2, 0, step, Purpose.PROPOSAL), state)
            rng = stream(1, 0, step, Purpose.PROPOSAL)
            with clocks.wrapped():
                seconds, proposal = clocks.of(_OURS, kernel.propose, rng, state)
            timed.append((seconds, state, proposal.state))
        rounds.append(timed)
    return [(_least([each for each, _, _ in same]), *same[0][1:]) for same in zip(*rounds, strict=True)]


def _least(same: list[Counter[str]]) -> Counter[str]:
    return Counter({part: min(each[part] for each in same) for part in _ORDER})


def way(state: str, product: str) -> str:
    """Return which way a proposal goes; "" where it is the state itself."""
    return "" if product == state else "growing" if heavy_atoms(product) > heavy_atoms(state) else "shrinking"


def report(pool: list[str], count: int) -> None:
    """Print the ratios to the floor, then the shares."""
    print(f"{'':<24}{'proposals/s':>12}{'/ floor':>10}{'all/s':>12}{'new':>8}")
    for name, known in _STATES:
        timed = proposals(pool, count, known=known)
        rate = len(timed) / sum(each.seconds for each in timed)
        for ways in _WAYS:
            new = [each for each in timed if way(each.state, each.product) in ways]
            ours, floors = sum(each.seconds for each in new), sum(each.floor for each in new)
            row = f"{len(new) / ours:>12,.0f}{ours / floors:>10.2f}{rate:>12,.0f}{len(new) / len(timed):>8.0%}"
            print(f"{name + ', ' + ' or '.join(ways):<24}{row}" if len(ways) == 1 else f"{name:<24}{row}")
    print(f"\n{'':<24}" + "".join(f"{part:>12}" for part in _ORDER))
    for name, known in _STATES:
        parted = shares(pool, count, known=known)
        for ways in _WAYS[:2]:
            seconds = sum((each for each, state, product in parted if way(state, product) in ways), Counter())
            print(
                f"{name + ', ' + ways[0]:<24}" + "".join(f"{seconds[part] / seconds.total():>12.0%}" for part in _ORDER)
            )


def fuzz(moves: int) -> None:
    """Make moves; raise AssertionError at the first state that is none, or move that cannot be undone."""
    kernel = FragmentMoves(default_vocabulary(), MoleculeLaw(default_size_log_weights()))
    state, moved, accepted, sizes = "CC", 0, 0, []
    begun, step = time.process_time(), 0
    while moved < moves:
        step += 1
        rng = stream(3, 0, step, Purpose.PROPOSAL)
        proposal = kernel.propose(rng, state)
        if proposal.state != state:
            moved += 1
            if canonical_state(proposal.state) != proposal.state or heavy_atoms(proposal.state) > LARGEST:
                raise AssertionError(f"{proposal.state}, proposed from {state}, is no state")
            if not abs(kernel.log_r0(proposal.state, state) + proposal.log_r0) < 1e-9:
                raise AssertionError(f"from {state} to {proposal.state} and back: the ratios are not inverse")
            if rng.random() < math.exp(min(0.0, proposal.log_r0)):
                state, accepted = proposal.state, accepted + 1
        sizes.append(heavy_atoms(state))
    print(f"{moved:,} moves of {step:,} proposals, each checked and undone, in {time.process_time() - begun:.0f} s")
    print(f"accepted {accepted / step:.1%}; sizes {np.mean(sizes):.1f} ± {np.std(sizes):.1f} heavy atoms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--proposals", type=int, default=4000)
    parser.add_argument("--moves", type=int, default=0)
    options = parser.parse_args()
    pool = states()
    report(pool, options.proposals)
    if options.moves:
        fuzz(options.moves)


if __name__ == "__main__":
    main()
