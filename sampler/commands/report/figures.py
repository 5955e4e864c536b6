"""The figures of a run, each as SVG and PNG with the numbers behind it as CSV.

Colours are Okabe and Ito's, which people with any colour vision tell apart. Files hold no date and no random name, so
that the same numbers give the same bytes.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from sampler.commands.report import dots, radar, trajectories
from sampler.commands.report.run_files import RunFiles
from sampler.commands.report.table import ResultTable
from sampler.diagnostics.extras import analysis_library
from sampler.experiments import outputs

STYLE: Mapping[str, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "savefig.dpi": 200,
    # Text stays text, so that it can be searched; names inside the file come from its content.
    "svg.fonttype": "none",
    "svg.hashsalt": "prefmh",
}


class Drawing(Protocol):
    """A figure of a run: a module with its name, its numbers and how it is drawn."""

    NAME: str

    def rows(self, run: RunFiles, table: ResultTable) -> Iterable[Sequence[object]]:
        """Return the numbers behind it, a header first; no row at all where there is nothing to draw."""
        ...

    def draw(self, figure: Any, run: RunFiles, table: ResultTable) -> None:
        """Draw it on an empty figure of matplotlib."""
        ...


DRAWINGS: Mapping[str, tuple[Drawing, ...]] = {
    "stories": (radar,),
    "images": (trajectories, dots),
    "molecules": (dots,),
    "translation": (dots,),
}


def write_figures(run: RunFiles, table: ResultTable) -> list[Path]:
    """Write a run's figures, and return their paths. A figure without any number is left out.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    folder = run.folder / outputs.FIGURES
    folder.mkdir(exist_ok=True)
    return [path for drawing in DRAWINGS[run.options.experiment] for path in _written(drawing, folder, run, table)]


def _written(drawing: Drawing, folder: Path, run: RunFiles, table: ResultTable) -> Iterator[Path]:
    rows = list(drawing.rows(run, table))
    if len(rows) >= 2:
        yield from saved(folder, drawing.NAME, rows, lambda figure: drawing.draw(figure, run, table))


def saved(folder: Path, name: str, rows: Iterable[Sequence[object]], draw: Callable[[Any], None]) -> Iterator[Path]:
    """Write one figure as CSV, SVG and PNG, and yield the path of each.

    Args:
        rows: the numbers behind it, a header first.
        draw: draws it on an empty figure of matplotlib.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    path = folder / f"{name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    yield path
    matplotlib = analysis_library("matplotlib")
    with matplotlib.rc_context(dict(STYLE)):
        # A figure of its own, not pyplot's: no window system is asked for and nothing global remembers it.
        figure = analysis_library("matplotlib.figure").Figure(layout="constrained")
        draw(figure)
        for suffix, metadata in ((".svg", {"Date": None, "Creator": None}), (".png", {"Software": None})):
            path = folder / (name + suffix)
            figure.savefig(path, metadata=metadata)
            yield path
