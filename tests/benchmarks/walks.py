"""How long a walk takes, beside as many single moves of the same kernel, in one run.

    python -m tests.benchmarks.walks [--json]

Medians of processor time over walks from many states; `moves` is the same number of moves one by one, each proposed,
accepted or rejected by itself. A walk of at most 512 moves on a list must take less than a millisecond, because it is
made while the vote's transaction is open (`Plan.is_cheap_at`); 256 fragment moves from 20 heavy atoms less than 100 ms.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from sampler import Catalog, Kernel, Proposal
from sampler.kernels.crank_nicolson import CrankNicolson
from sampler.kernels.fragments import FragmentsRecipe
from sampler.kernels.independent import Independent
from sampler.kernels.inner_chain import after_steps
from sampler.kernels.mixture import Mixture
from sampler.kernels.neighbours import Neighbours
from sampler.kernels.suffix import LeastCut, Suffix
from sampler.kernels.walk import WalkKernel
from sampler.spaces.images.latent_space import LatentSpace
from sampler.spaces.molecules.space import MoleculesRecipe
from sampler.spaces.texts.space import TextsRecipe
from tests.benchmarks.molecules import states as molecules_of

SEED = 3
ATOMS = 20


class Case(NamedTuple):
    """A kernel, how far it walks, and from where."""

    name: str
    kernel: Kernel[Any]
    length: int
    states: Sequence[Any]
    whole: Kernel[Any]


class OneByOne:
    """A kernel with nothing but `propose`, so that a walk of it goes move by move."""

    def __init__(self, kernel: Kernel[Any]) -> None:
        self._kernel = kernel

    def propose(self, rng: np.random.Generator, state: Any) -> Proposal[Any]:
        """Propose as the kernel does."""
        return self._kernel.propose(rng, state)


def cases() -> Iterator[Case]:
    """Yield every space's walk."""
    rng = np.random.default_rng(SEED)
    catalog = _catalog(rng, 10_000, 8)
    items = rng.integers(len(catalog), size=200).tolist()
    neighbours, fresh = Neighbours(catalog), Independent(catalog)
    both = Mixture((0.3, 0.7), (fresh, neighbours))
    for name, kernel in (("list, neighbours", neighbours), ("list, 30 % fresh draws", both)):
        yield Case(name, kernel, 512, items, WalkKernel(kernel, 512))
    molecules = MoleculesRecipe().build()
    fragments = FragmentsRecipe().build(molecules)
    for length in (64, 256):
        yield Case(
            "molecules, fragments", fragments, length, molecules_of(ATOMS, ATOMS)[:20], WalkKernel(fragments, length)
        )
    texts = TextsRecipe().build()
    openings = [texts.start(rng, chain) for chain in range(50)]
    yield Case("texts, suffix", Suffix(texts), 64, openings, LeastCut(texts, 64))
    latents = LatentSpace(64)
    vectors, steps = [latents.start(rng, chain) for chain in range(50)], CrankNicolson(0.08)
    yield Case("latents, one β", steps, 256, vectors, WalkKernel(steps, 256))


def _catalog(rng: np.random.Generator, items: int, nearest: int) -> Catalog:
    linked: list[set[int]] = [set() for _ in range(items)]
    for item in range(items):
        for other in rng.integers(items, size=nearest // 2).tolist():
            if other != item:
                linked[item].add(other)
                linked[other].add(item)
        linked[item].add((item + 1) % items)
        linked[(item + 1) % items].add(item)
    return Catalog(rng.uniform(0.5, 2, items), tuple(tuple(sorted(row)) for row in linked))


def milliseconds(work: Callable[[Any], object], states: Sequence[Any]) -> float:
    """Return the median of processor time over these states."""
    found = []
    for state in states:
        begun = time.process_time()
        work(state)
        found.append(1000 * (time.process_time() - begun))
    return statistics.median(found)


def measured(case: Case) -> dict[str, object]:
    """Return what a walk costs, and as many single moves."""
    rng = np.random.default_rng(SEED)
    single = OneByOne(case.kernel)
    walk = milliseconds(lambda state: case.whole.propose(rng, state), case.states)
    moves = milliseconds(lambda state: after_steps(single, rng, state, case.length), case.states)
    return {"space": case.name, "length": case.length, "walk_ms": walk, "moves_ms": moves, "ratio": walk / moves}


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="for programs")
    options = parser.parse_args()
    rows = [measured(case) for case in cases()]
    if options.json:
        json.dump(rows, sys.stdout, indent=2)
        return
    print(f"{'space':<26}{'L':>6}{'walk, ms':>12}{'moves, ms':>12}{'ratio':>8}")
    for row in rows:
        print("{space:<26}{length:>6}{walk_ms:>12.3f}{moves_ms:>12.3f}{ratio:>8.3f}".format(**row))


if __name__ == "__main__":
    main()
