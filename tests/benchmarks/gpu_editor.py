"""The part of the run for a machine with a GPU that is about MARS's learned editor."""

from __future__ import annotations

import itertools
import time

from sampler.experiments.mars import FinalMolecule, LockstepRecord, MarsSettings, Step, replay_lockstep, run_mars
from sampler.kernels.editor import TorchEditor
from tests.benchmarks.gpu_run import SEED, Run


def editor(run: Run) -> None:
    """Let chains learn together on the device, replay their record on the CPU, and take the first steps there too."""
    chains, steps, beside = run.size.molecules
    files, ended, taken = _walked(run.device, chains, steps)
    run.found(f"seconds a step of {chains} chains, mean of {steps}", sum(taken) / steps)
    replayed = replay_lockstep(files)
    same = replayed.final == ended
    run.found("replay on the CPU", same, "agrees", same)
    run.found("updates of the editor", replayed.updates, "some", replayed.updates > 0)
    slower, _, slowly = _walked("cpu", chains, beside)
    run.found(f"seconds a step, mean of the first {beside}", sum(taken[:beside]) / beside)
    run.found(f"seconds a step on the CPU, mean of the first {beside}", sum(slowly) / beside)
    rows = [[row.split(",")[:3] for row in each["lockstep/steps.csv"].splitlines()] for each in (files, slower)]
    alike = [one == other for one, other in zip(*rows, strict=False)]
    run.found(f"proposals that the CPU makes too, in the first {beside} steps", sum(alike) / len(alike))


def _walked(device: str, chains: int, steps: int) -> tuple[dict[str, str], list[FinalMolecule], list[float]]:
    """Return the record of a run, where its chains ended, and the seconds that each step took."""
    settings = MarsSettings(seed=SEED, chains=chains, steps=steps, convention="exact")
    learner = TorchEditor(settings.space.build().vocabulary, settings.seed, device=device)
    settings = settings.model_copy(update={"editor": learner.about})
    record, moments = LockstepRecord(settings), [time.perf_counter()]

    def on_step(step: Step) -> None:
        record.write(step)
        moments.append(time.perf_counter())

    ended = run_mars(settings, learner, on_step)
    return record.files(), ended, [after - before for before, after in itertools.pairwise(moments)]
