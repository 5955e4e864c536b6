"""What `python -m sampler mars` hands to processes: a seed's run with the learned proposal, and its rivals with the
plain one at equal steps and at equal processor time.

Processor time is read here and in no module that computes: it decides how long the third run is, and nothing else. What
it decided is printed, and that run can be repeated by its number of steps.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from sampler.experiments.editor.torch_editor import TorchEditor
from sampler.experiments.lockstep import LockstepSettings, run_lockstep
from sampler.experiments.lockstep_record import LockstepWriter
from sampler.experiments.mars import FinalMolecule, MarsRun, forget, run_chains
from sampler.spaces.molecules.space import MoleculesConfig

_WARM_UP = 2


@dataclass(frozen=True)
class LearnedJob:
    """One seed.

    Args:
        run: seed, steps and convention.
        chains: how many.
        learning_steps: see `LockstepSettings`.
        device: of the editor, as PyTorch names it.
        record: the folder of its record; None writes none.
        against_plain: run the plain proposal too.
    """

    run: MarsRun
    chains: int
    learning_steps: int | None
    device: str
    record: Path | None
    against_plain: bool


@dataclass(frozen=True)
class Timed:
    """A run's final molecules, its steps for each chain, and the seconds of processor time that it took."""

    ended: list[FinalMolecule]
    steps: int
    seconds: float


@dataclass(frozen=True)
class LearnedResult:
    """What a job gave; the two plain runs only where they were asked for."""

    seed: int
    learned: Timed
    equal_steps: Timed | None = None
    equal_time: Timed | None = None


def run_job(job: LearnedJob) -> LearnedResult:
    """Run one seed."""
    # PyTorch loads parts of itself at its first update, and the package its arms: no run is charged for that.
    _run_learned(replace(job, run=replace(job.run, steps=_WARM_UP), record=None))
    forget(job.run)
    learned = _timed(job.run.steps, lambda: _run_learned(job))
    if not job.against_plain:
        return LearnedResult(job.run.seed, learned)
    equal_steps = _run_plain(job, job.run.steps)
    affordable = max(1, round(job.run.steps * learned.seconds / equal_steps.seconds))
    return LearnedResult(job.run.seed, learned, equal_steps, _run_plain(job, affordable))


def _run_learned(job: LearnedJob) -> list[FinalMolecule]:
    vocabulary = MoleculesConfig().build().vocabulary
    editor = TorchEditor(vocabulary, job.run.seed, device=job.device)
    settings = LockstepSettings(
        seed=job.run.seed,
        chains=job.chains,
        steps=job.run.steps,
        convention=job.run.convention,
        learning_steps=job.learning_steps,
        editor=editor.about,
    )
    if job.record is None:
        return run_lockstep(settings, editor)
    with LockstepWriter(job.record, settings) as writer:
        return run_lockstep(settings, editor, writer.write)


def _run_plain(job: LearnedJob, steps: int) -> Timed:
    forget(job.run)
    return _timed(steps, lambda: run_chains(replace(job.run, steps=steps), job.chains))


def _timed(steps: int, work: Callable[[], list[FinalMolecule]]) -> Timed:
    before = os.times()
    ended = work()
    after = os.times()
    return Timed(ended, steps, after.user + after.system - before.user - before.system)
