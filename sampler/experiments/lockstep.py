"""Chains of molecules in step with one another, whose shared proposal learns between steps: the paper's MARS baseline.

All chains take step t under one frozen editor: it answers once for their states and once for their proposals, and every
forward and backward probability of the step is its own. Then it learns, from the edits drawn in this step that raised
the score, accepted or not; step t + 1 knows the result. The rule is MARS's, on its score (`sampler.rules.scored`).

Each step is a Metropolis-Hastings step of an exact kernel, but which kernel depends on what the chains have seen.
`learning_steps` ends that: from the step after it on the chains are ordinary ones with the target p0(x) s(x)^30, under
the convention "exact". With "paper", r0 = 1 as published, they target nothing that anybody wrote down.

Draws and verdicts are functions of (seed, chain, step) and of the editor's numbers; see `editor.torch_editor` for what
holds of those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from sampler.experiments.editor.learning import ImprovingEdit, Update
from sampler.experiments.mars import CHAINS, STEPS, FinalMolecule, score_of
from sampler.kernels.learned_fragments import EditLogits, EditProposal, LearnedFragments
from sampler.objects.molecules.measures import rate_molecule
from sampler.rules.scored import accept_by_power
from sampler.spaces.molecules.space import MoleculesConfig
from sampler.streams import Purpose, stream


class LockstepSettings(BaseModel):
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
    chains: int = Field(default=CHAINS, ge=1)
    steps: int = Field(default=STEPS, ge=1)
    convention: Literal["exact", "paper"] = "paper"
    learning_steps: int | None = Field(default=None, ge=0)
    space: MoleculesConfig = MoleculesConfig()
    editor: dict[str, str | int] = Field(default_factory=dict)

    def learns_after(self, step: int) -> bool:
        """True when the editor may learn after this step."""
        return self.learning_steps is None or step <= self.learning_steps


class Learner(Protocol):
    """An editor that learns; see `kernels.learned_fragments.Editor`."""

    @property
    def fingerprint(self) -> str:
        """A hash of all that its numbers depend on."""
        ...

    @property
    def about(self) -> Mapping[str, str | int]:
        """What to write down about it."""
        ...

    def read(self, states: Sequence[str]) -> Sequence[EditLogits]:
        """Return what it says of each molecule."""
        ...

    def learn(self, edits: Sequence[ImprovingEdit], rng: np.random.Generator) -> Update:
        """Learn from the edits of one step."""
        ...


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


def run_lockstep(
    settings: LockstepSettings, learner: Learner, on_step: Callable[[Step], object] = lambda step: None
) -> list[FinalMolecule]:
    """Run all chains to their end, and return where they ended.

    Args:
        settings: what fixes the run.
        learner: the editor, as its first weights have it.
        on_step: called after every step, such as `LockstepWriter.write`.
    """
    space = settings.space.build()
    kernel = LearnedFragments(space.vocabulary, space.law, learner, convention=settings.convention)
    states = [space.start(stream(settings.seed, chain, 0, Purpose.START), chain) for chain in range(settings.chains)]
    proposed, moved = [0] * settings.chains, [0] * settings.chains
    for number in range(1, settings.steps + 1):
        fingerprint = learner.fingerprint
        rngs = [stream(settings.seed, chain, number, Purpose.PROPOSAL) for chain in range(settings.chains)]
        proposals = kernel.propose_batch(rngs, states)
        draws = [_decide(settings.seed, number, chain, states[chain], each) for chain, each in enumerate(proposals)]
        improving = _improving(states, proposals, draws)
        for chain, draw in enumerate(draws):
            if draw.proposal != states[chain]:
                proposed[chain] += 1
                moved[chain] += draw.accepted
        states = [draw.proposal if draw.accepted else state for draw, state in zip(draws, states, strict=True)]
        update = Update(0, None)
        if settings.learns_after(number):
            update = learner.learn(improving, stream(settings.seed, 0, number, Purpose.EDITOR))
        on_step(Step(number, fingerprint, tuple(draws), update))
    return [
        FinalMolecule(chain, state, *rate_molecule(state), proposed[chain], moved[chain])
        for chain, state in enumerate(states)
    ]


def verdict(seed: int, step: int, chain: int, log_r0: float, before: float, after: float) -> tuple[float, bool]:
    """Return U and whether the step is accepted, from the two scores."""
    uniform = float(stream(seed, chain, step, Purpose.UNIFORM).random())
    return uniform, bool(uniform < accept_by_power(log_r0, before, after))


def _decide(seed: int, step: int, chain: int, state: str, proposal: EditProposal) -> Draw:
    score = score_of(proposal.state)
    uniform, accepted = verdict(seed, step, chain, proposal.log_r0, score_of(state), score)
    return Draw(
        chain,
        proposal.state,
        proposal.log_forward,
        proposal.log_backward,
        proposal.log_r0,
        score,
        uniform,
        accepted or proposal.state == state,
    )


def _improving(states: Sequence[str], proposals: Sequence[EditProposal], draws: Sequence[Draw]) -> list[ImprovingEdit]:
    return [
        ImprovingEdit(state, proposal.edit)
        for state, proposal, draw in zip(states, proposals, draws, strict=True)
        if proposal.edit is not None and draw.score > score_of(state)
    ]
