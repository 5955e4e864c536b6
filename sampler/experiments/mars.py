"""Chains of molecules driven by computed properties: the paper's MARS baseline (appendix "De novo molecular design").

    s(x) = (min(QED(x), 0.7) + min((10 - SA(x)) / 9, 0.7)) / 2
    accept with probability min(1, r0 (s(x') / s(x))^30)

as in MARS (Xie et al., ICLR 2021) and the rule `sampler.rules.scored`. No judge is asked. The moves are those of
`sampler.kernels.fragments` with our own arms; `lockstep.py` has the same chains with MARS's learned proposals. With
the convention "exact" the chains target p0(x) s(x)^30; with "paper", r0 = 1 as published, a law that nobody wrote
down.

Every draw is a function of (seed, chain, step), so results do not depend on the number of processes.
"""

from __future__ import annotations

import csv
import itertools
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sampler.kernels.fragments import Convention, FragmentsConfig
from sampler.objects.molecules.diversity import diversity, novelty, uniqueness
from sampler.objects.molecules.measures import rate_molecule
from sampler.rules.scored import accept_by_power, mars_score
from sampler.spaces.molecules.graph import heavy_atoms
from sampler.spaces.molecules.space import MoleculesConfig
from sampler.streams import Purpose, stream

CHAINS, STEPS = 200, 1_000
_REMEMBERED_SCORES = 10_000
COLUMNS = ("chain", "smiles", "qed", "sa", "score", "heavy_atoms", "proposed", "moved")


@dataclass(frozen=True)
class MarsRun:
    """What fixes a run: equal runs give equal molecules."""

    seed: int = 0
    steps: int = STEPS
    convention: Convention = "exact"


@dataclass(frozen=True)
class FinalMolecule:
    """Where one chain ended.

    Args:
        chain: its number.
        smiles: its last state.
        qed, sa: of that state, SA from 1 (easy) to 10 (hard).
        proposed: steps whose proposal was another molecule.
        moved: of these, how many were accepted.
    """

    chain: int
    smiles: str
    qed: float
    sa: float
    proposed: int
    moved: int

    @property
    def score(self) -> float:
        """The score of MARS, at most 0.7."""
        return float(mars_score(self.qed, self.sa))


def run_chain(run: MarsRun, chain: int) -> FinalMolecule:
    """Run one chain from `CC` to its end."""
    space = MoleculesConfig().build()
    kernel = FragmentsConfig(convention=run.convention).build(space)
    state = space.start(stream(run.seed, chain, 0, Purpose.START), chain)
    proposed = moved = 0
    for step in range(1, run.steps + 1):
        proposal = kernel.propose(stream(run.seed, chain, step, Purpose.PROPOSAL), state)
        if proposal.state == state:
            continue
        proposed += 1
        uniform = stream(run.seed, chain, step, Purpose.UNIFORM).random()
        if uniform < accept_by_power(proposal.log_r0, score_of(state), score_of(proposal.state)):
            state = proposal.state
            moved += 1
    return FinalMolecule(chain, state, *rate_molecule(state), proposed, moved)


def run_chains(
    run: MarsRun, chains: int = CHAINS, processes: int = 1, progress: Callable[[int], object] = lambda chains: None
) -> list[FinalMolecule]:
    """Run chains 0, 1, ... and return where they ended, in that order.

    Args:
        run: seed, steps and convention.
        chains: how many.
        processes: how many at a time.
        progress: called with 1 after every chain.
    """
    ended = []
    with mapping(processes) as each:
        for final in each(_run_numbered, zip(itertools.repeat(run, chains), range(chains), strict=True)):
            ended.append(final)
            progress(1)
    return sorted(ended, key=_by_chain)


def summary(run: MarsRun, ended: Sequence[FinalMolecule], reference: Iterable[str] | None = None) -> list[str]:
    """Return what is to be said of the final molecules, a line each.

    Args:
        run: what made them.
        ended: the final molecules.
        reference: canonical SMILES that novelty is measured against; None leaves novelty out.

    Raises:
        ValueError: fewer than two chains.
    """
    smiles = [final.smiles for final in ended]
    proposed, moved = sum(final.proposed for final in ended), sum(final.moved for final in ended)
    values: dict[str, list[float]] = {
        "QED": [final.qed for final in ended],
        "SA, 1 (easy) to 10": [final.sa for final in ended],
        "SA as (10 - SA) / 9": [(10 - final.sa) / 9 for final in ended],
        "heavy atoms": [float(heavy_atoms(each)) for each in smiles],
    }
    lines = [
        *(f"{name:21} {np.mean(of):.3f}, standard deviation {np.std(of, ddof=1):.3f}" for name, of in values.items()),
        f"{'diversity':21} {diversity(smiles):.3f}",
        f"{'uniqueness':21} {uniqueness(smiles):.3f}",
        f"{'accepted':21} {moved / max(proposed, 1):.3f} of the proposals that differed; "
        f"{moved / (len(ended) * run.steps):.3f} of the steps have moved",
    ]
    if reference is not None:
        lines.append(
            f"{'novelty':21} {novelty(smiles, reference):.3f} against the molecules that the arms were cut from"
        )
    return lines


def write_molecules(ended: Sequence[FinalMolecule], out: Path) -> None:
    """Write the final molecules as CSV.

    Raises:
        OSError: the file cannot be written.
    """
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(row_of(final) for final in ended)


def row_of(final: FinalMolecule) -> tuple[str | int, ...]:
    """Return the cells of a final molecule, in the order of `COLUMNS`."""
    scores = (f"{value:.4f}" for value in (final.qed, final.sa, final.score))
    return (final.chain, final.smiles, *scores, heavy_atoms(final.smiles), final.proposed, final.moved)


@contextmanager
def mapping(processes: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """Give a function like `map` that runs in so many processes, and returns results as they come."""
    if processes == 1:
        yield map
        return
    # Spawned, not forked: a process forked while another thread holds a lock may wait for it for ever.
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield pool.imap_unordered


def _run_numbered(numbered: tuple[MarsRun, int]) -> FinalMolecule:
    return run_chain(*numbered)


def _by_chain(final: FinalMolecule) -> int:
    return final.chain


def forget(run: MarsRun) -> None:
    """Drop the molecules and scores kept from earlier runs in this process, so that a run's cost is its own."""
    score_of.cache_clear()
    FragmentsConfig(convention=run.convention).build(MoleculesConfig().build()).forget()


@lru_cache(maxsize=_REMEMBERED_SCORES)
def score_of(state: str) -> float:
    """Return the score of MARS of a molecule, at most 0.7."""
    return float(mars_score(*rate_molecule(state)))
