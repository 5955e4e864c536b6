"""Images: pictures along the chains, a column for each method and a row for each step (L682, L1425-1436)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sampler.commands.report.run_files import RunFiles
from sampler.commands.report.table import ResultTable
from sampler.diagnostics.extras import analysis_library
from sampler.experiments import outputs
from sampler.experiments.kept import shown_steps

NAME = "trajectories"


def rows(run: RunFiles, table: ResultTable) -> Iterator[Sequence[object]]:
    """Yield step, method and the picture's path in the run's folder, of those that are there."""
    yield "step", "method", "image"
    for step in shown_steps(run.options):
        for method in table.methods:
            path = _path(run, method.name, step)
            if path.exists():
                yield step, method.name, path.relative_to(run.folder).as_posix()


def draw(figure: Any, run: RunFiles, table: ResultTable) -> None:
    """Draw the pictures of the first seed; one that is missing leaves its place empty."""
    steps = shown_steps(run.options)
    figure.set_size_inches(1.3 * len(table.methods) + 0.6, 1.3 * len(steps) + 0.4)
    panels = figure.subplots(len(steps), len(table.methods), squeeze=False)
    images = analysis_library("matplotlib.image")
    for row, step in enumerate(steps):
        for column, method in enumerate(table.methods):
            axes = panels[row][column]
            axes.set_xticks([])
            axes.set_yticks([])
            for spine in axes.spines.values():
                spine.set_visible(False)
            path = _path(run, method.name, step)
            if path.exists():
                axes.imshow(images.imread(path), interpolation="none")
            if row == 0:
                axes.set_title(method.label)
            if column == 0:
                axes.set_ylabel(f"{step:,}")


def _path(run: RunFiles, method: str, step: int) -> Path:
    return run.folder / outputs.IMAGES / outputs.image_name(method, run.options.seeds[0], step)
