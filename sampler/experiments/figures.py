"""How figures are written: as SVG and PNG with the numbers behind them as CSV, the same bytes for the same numbers."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sampler.diagnostics.extras import analysis_library

Rows = Iterable[Sequence[object]]
"""The numbers behind a figure, a header first; no row beside it where there is nothing to draw."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, which people with any colour vision tell apart."""
_STYLE: Mapping[str, Any] = {
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


def write_csv(path: Path, rows: Rows) -> None:
    """Write rows as a table.

    Raises:
        OSError: the file cannot be written.
    """
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def write_figure(folder: Path, name: str, rows: Rows, draw: Callable[[Any], None]) -> list[Path]:
    """Write one figure as CSV, SVG and PNG, and return the paths. Files hold no date and no random name.

    Args:
        draw: draws it on an empty figure of matplotlib.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{ending}" for ending in ("csv", "svg", "png")]
    write_csv(paths[0], rows)
    with analysis_library("matplotlib").rc_context(dict(_STYLE)):
        # A figure of its own, not pyplot's: no window system is asked for and nothing global remembers it.
        figure = analysis_library("matplotlib.figure").Figure(layout="constrained")
        draw(figure)
        for path, metadata in zip(paths[1:], ({"Date": None, "Creator": None}, {"Software": None}), strict=True):
            figure.savefig(path, metadata=metadata)
    return paths
