"""Chains of molecules driven by computed properties: the paper's MARS baseline (appendix "De novo molecular design").

    s(x) = (min(QED(x), 0.7) + min((10 - SA(x)) / 9, 0.7)) / 2
    accept with probability min(1, r0 (s(x') / s(x))^30)

as in MARS (Xie et al., ICLR 2021) and the rule `sampler.rules.scored`. No judge is asked. Fragments are drawn at random
(`sampler.kernels.fragments`), or by an editor that learns (`sampler.kernels.learned_fragments`).

With an editor all chains take step t under one frozen editor: it answers once for their states and once for their
proposals, and every forward and backward probability of the step is its own. Then it learns, from the edits drawn in
this step that raised the score, accepted or not; step t + 1 knows the result. Each step is a Metropolis-Hastings step
of an exact kernel, but which kernel depends on what the chains have seen. `learning_steps` ends that: from the step
after it on the chains are ordinary ones with the target p0(x) s(x)^30, under the convention "exact". With "paper", r0 =
1 as published, they target nothing that anybody wrote down.

Draws and verdicts are functions of (seed, chain, step) and of the editor's numbers; see `editor` for what holds of
those.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from sampler.experiments.settings import EXPERIMENTS
from sampler.kernels.editor import ImprovingEdit, Update
from sampler.kernels.fragments import FragmentsConfig
from sampler.kernels.learned_fragments import Editor, EditProposal, LearnedFragments
from sampler.objects.molecules import diversity, rate_molecule
from sampler.rules.scored import accept_by_power, mars_score
from sampler.spaces.molecules.graph import heavy_atoms
from sampler.spaces.molecules.space import GeneratedMolecules, MoleculesConfig
from sampler.streams import Purpose, stream

COLUMNS = ("seed", "chain", "smiles", "qed", "sa", "score", "heavy_atoms", "proposed", "moved")


class MarsSettings(BaseModel):
    """What fixes a run, up to the last digits of the editor's numbers.

    Args:
        seed: of proposals, uniforms, first weights and batches.
        chains, steps: how many.
        convention: how r0 is computed.
        learning_steps: after this step the editor stays as it is; None: it learns until the end, as in MARS.
        space: molecules, p0 and arms.
        editor: what the editor says about itself; for the reader, nothing follows from it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = 1
    seed: int = Field(default=0, ge=0)
    chains: int = Field(default=200, ge=1)
    steps: int = Field(default=1_000, ge=1)
    convention: Literal["exact", "paper"] = "paper"
    learning_steps: int | None = Field(default=None, ge=0)
    space: MoleculesConfig = MoleculesConfig()
    editor: dict[str, str | int] = Field(default_factory=dict)

    def learns_after(self, step: int) -> bool:
        """True when the editor may learn after this step."""
        return self.learning_steps is None or step <= self.learning_steps


class Learner(Editor, Protocol):
    """An editor that learns."""

    @property
    def about(self) -> Mapping[str, str | int]:
        """What to write down about it."""
        ...

    def learn(self, edits: Sequence[ImprovingEdit], rng: np.random.Generator) -> Update:
        """Learn from the edits of one step."""
        ...


class FinalMolecule(NamedTuple):
    """Where one chain ended.

    Args:
        chain: its number.
        smiles: its last state.
        proposed: steps whose proposal was another molecule.
        moved: of these, how many were accepted.
    """

    chain: int
    smiles: str
    proposed: int
    moved: int


class Draw(NamedTuple):
    """One chain's part in a step.

    `log_forward` and `log_backward` are None where the proposal is the state itself, and under "paper"; `score` is the
    proposal's.
    """

    chain: int
    proposal: str
    log_forward: float | None
    log_backward: float | None
    log_r0: float
    score: float
    uniform: float
    accepted: bool


class Step(NamedTuple):
    """A step of all chains: the editor that it was drawn by, the draws, and what the editor learned afterwards."""

    number: int
    editor: str
    draws: tuple[Draw, ...]
    update: Update


class Walkers:
    """Where the chains of a run stand, and how often each has moved."""

    def __init__(self, space: GeneratedMolecules, chains: int) -> None:
        self.states = [space.first] * chains
        self._proposed, self._moved = [0] * chains, [0] * chains

    def move(self, chain: int, proposal: str, *, accepted: bool) -> None:
        """Let a chain take its step."""
        if proposal != self.states[chain]:
            self._proposed[chain] += 1
            self._moved[chain] += accepted
        if accepted:
            self.states[chain] = proposal

    def final(self) -> list[FinalMolecule]:
        """Return where the chains are, in their order."""
        counts = zip(self.states, self._proposed, self._moved, strict=True)
        return [FinalMolecule(chain, *each) for chain, each in enumerate(counts)]


def run_mars(
    settings: MarsSettings, learner: Learner | None = None, on_step: Callable[[Step], object] = lambda step: None
) -> list[FinalMolecule]:
    """Run all chains to their end, and return where they ended.

    Args:
        settings: what fixes the run.
        learner: the editor, as its first weights have it; None draws fragments at random.
        on_step: called after every step, such as `LockstepRecord.write`.
    """
    space = settings.space.build()
    propose = _proposing(settings, space, learner)
    walkers = Walkers(space, settings.chains)
    for number in range(1, settings.steps + 1):
        fingerprint, before = learner.fingerprint if learner else "", list(walkers.states)
        rngs = [stream(settings.seed, chain, number, Purpose.PROPOSAL) for chain in range(settings.chains)]
        proposals = propose(rngs, before)
        draws = [_decide(settings.seed, number, chain, before[chain], each) for chain, each in enumerate(proposals)]
        for draw in draws:
            walkers.move(draw.chain, draw.proposal, accepted=draw.accepted)
        update = Update(0, None)
        if learner and settings.learns_after(number):
            improving = _improving(before, proposals, draws)
            update = learner.learn(improving, stream(settings.seed, 0, number, Purpose.EDITOR))
        on_step(Step(number, fingerprint, tuple(draws), update))
    return walkers.final()


def verdict(seed: int, step: int, chain: int, log_r0: float, before: str, after: str) -> tuple[float, bool]:
    """Return U and whether the step from one molecule to another is accepted; one to itself always is."""
    uniform = float(stream(seed, chain, step, Purpose.UNIFORM).random())
    return uniform, before == after or bool(uniform < accept_by_power(log_r0, score_of(before), score_of(after)))


def score_of(state: str) -> float:
    """Return the score of MARS of a molecule, at most 0.7."""
    return float(mars_score(*_rated(state)))


def measures_of(smiles: Sequence[str]) -> dict[str, float]:
    """Return mean QED, mean (10 - SA)/9 and the diversity of a set; of one molecule, no diversity; of none, nothing.

    Raises:
        ValueError: one of them is no molecule.
    """
    if not smiles:
        return {}
    rated = np.array([_rated(each) for each in smiles])
    found = {"qed": float(rated[:, 0].mean()), "sa": float(((10 - rated[:, 1]) / 9).mean())}
    return {**found, "diversity": diversity(smiles)} if len(smiles) > 1 else found


def table(runs: Sequence[Sequence[FinalMolecule]]) -> Iterator[str]:
    """Yield a line for each metric over runs, mean ± SD / √n, with the paper's number where it has one."""
    found = [_metrics(ended) for ended in runs]
    paper = EXPERIMENTS["molecules"].method("mars").published
    for name in found[0]:
        values = [each[name] for each in found]
        error = f" ± {np.std(values, ddof=1) / math.sqrt(len(values)):.3f}" if len(values) > 1 else ""
        beside = f"; paper's MARS {paper[name].value:.3f} ± {paper[name].spread:.3f}" if name in paper else ""
        yield f"{name:12} {np.mean(values):.3f}{error} over {len(runs)} seeds{beside}"


def write_molecules(runs: Mapping[int, Sequence[FinalMolecule]], out: Path) -> None:
    """Write the final molecules of each seed as CSV.

    Raises:
        OSError: the file cannot be written.
    """
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for seed, ended in runs.items():
            for chain, smiles, proposed, moved in ended:
                scores = (f"{value:.4f}" for value in (*_rated(smiles), score_of(smiles)))
                writer.writerow((seed, chain, smiles, *scores, heavy_atoms(smiles), proposed, moved))


@lru_cache(maxsize=1 << 16)
def _rated(smiles: str) -> tuple[float, float]:
    return rate_molecule(smiles)


def _metrics(ended: Sequence[FinalMolecule]) -> dict[str, float]:
    smiles = [each.smiles for each in ended]
    return {
        **measures_of(smiles),
        "score": float(np.mean([score_of(each) for each in smiles])),
        "heavy atoms": float(np.mean([heavy_atoms(each) for each in smiles])),
        "accepted": sum(each.moved for each in ended) / max(1, sum(each.proposed for each in ended)),
    }


def _proposing(
    settings: MarsSettings, space: GeneratedMolecules, learner: Learner | None
) -> Callable[[Sequence[np.random.Generator], Sequence[str]], Sequence[EditProposal]]:
    """Return what proposes a step of all chains."""
    if learner:
        kernel = LearnedFragments(space.vocabulary, space.law, learner, convention=settings.convention)
        return kernel.propose_batch
    plain = FragmentsConfig(convention=settings.convention).build(space)

    def propose(rngs: Sequence[np.random.Generator], states: Sequence[str]) -> list[EditProposal]:
        drawn = [plain.propose(rng, state) for rng, state in zip(rngs, states, strict=True)]
        return [EditProposal(each.state, each.log_r0, None, None, None) for each in drawn]

    return propose


def _decide(seed: int, step: int, chain: int, state: str, proposal: EditProposal) -> Draw:
    uniform, accepted = verdict(seed, step, chain, proposal.log_r0, state, proposal.state)
    return Draw(
        chain,
        proposal.state,
        proposal.log_forward,
        proposal.log_backward,
        proposal.log_r0,
        score_of(proposal.state),
        uniform,
        accepted,
    )


def _improving(states: Sequence[str], proposals: Sequence[EditProposal], draws: Sequence[Draw]) -> list[ImprovingEdit]:
    return [
        ImprovingEdit(state, proposal.edit)
        for state, proposal, draw in zip(states, proposals, draws, strict=True)
        if proposal.edit is not None and draw.score > score_of(state)
    ]
