"""MARS with its learned proposals from its settings to its record: what an experiment runs for the method `mars`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from sampler.diagnostics.extras import torch_library
from sampler.experiments.editor.torch_editor import TorchEditor
from sampler.experiments.lockstep import LockstepSettings, Step, run_lockstep
from sampler.experiments.lockstep_archive import write_archive
from sampler.experiments.lockstep_record import LockstepWriter
from sampler.spaces.molecules.space import MoleculesConfig


def check_lockstep() -> None:
    """Check that a lockstep run can be made here.

    Raises:
        MissingExtra: PyTorch is not installed.
    """
    torch_library()


def record_lockstep(
    path: Path,
    *,
    seed: int,
    chains: int,
    steps: int,
    convention: Literal["exact", "paper"],
    vocabulary: Literal["default"] | tuple[str, ...] = "default",
    progress: Callable[[int], object] = lambda step: None,
) -> None:
    """Run chains in step with one another, whose shared editor learns between steps, and write their record.

    The record is written whole or not at all. A run that was stopped starts again from its beginning; on the same
    machine it gives the same record, byte for byte (`editor.torch_editor`).

    Args:
        path: of the ZIP (`experiments.lockstep_archive`).
        seed: of proposals, uniforms, first weights and batches.
        chains, steps: how many.
        convention: how r0 is computed.
        vocabulary: the arms, as `MoleculesConfig` has them.
        progress: called with the number of every step that is done.

    Raises:
        MissingExtra: PyTorch is not installed.
        OSError: the record cannot be written.
    """
    check_lockstep()
    space = MoleculesConfig(vocabulary=vocabulary)
    editor = TorchEditor(space.build().vocabulary, seed)
    settings = LockstepSettings(
        seed=seed, chains=chains, steps=steps, convention=convention, space=space, editor=editor.about
    )
    unfinished, part = path.with_suffix(".unfinished"), path.with_suffix(".part")
    if unfinished.exists():
        shutil.rmtree(unfinished)
    with LockstepWriter(unfinished, settings) as writer:

        def on_step(step: Step) -> None:
            writer.write(step)
            progress(step.number)

        run_lockstep(settings, editor, on_step)
    write_archive(unfinished, part)
    part.replace(path)
    shutil.rmtree(unfinished)
