"""Each column of the table as a panel: our number with its interval, the paper's as a ring beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sampler.commands.report.colours import colour_of
from sampler.commands.report.run_files import RunFiles
from sampler.commands.report.table import Cell, ResultTable, ShownColumn

NAME = "measures"
_IN_A_ROW = 4


def rows(run: RunFiles, table: ResultTable) -> Iterator[Sequence[object]]:
    """Yield method, column, our number with its interval, and the paper's on the same scale."""
    yield "method", "column", "ours", "low", "high", "paper"
    for shown in _drawn(table):
        for method in table.methods:
            cell = table.cells[method.name, shown.key]
            numbers = (cell.ours.value, cell.ours.low, cell.ours.high, cell.compared)
            yield method.name, shown.key, *("" if number is None else repr(number) for number in numbers)


def draw(figure: Any, run: RunFiles, table: ResultTable) -> None:
    """Draw the columns that we have a number for."""
    drawn = _drawn(table)
    across = min(_IN_A_ROW, len(drawn))
    down = -(-len(drawn) // across)
    figure.set_size_inches(1.4 + 1.9 * across, down * (0.9 + 0.24 * len(table.methods)))
    figure.supxlabel("dots: this run, with 95 % intervals; rings: the paper", fontsize=8)
    panels = figure.subplots(down, across, sharey=True, squeeze=False)
    for axes in panels.flat[len(drawn) :]:
        axes.set_axis_off()
    for axes, shown in zip(panels.flat, drawn, strict=False):
        for place, method in enumerate(table.methods):
            _draw_cell(axes, place, table.cells[method.name, shown.key])
        axes.set_title(f"{shown.label} {'↑' if shown.column.higher_is_better else '↓'}")
        axes.set_yticks(range(len(table.methods)), [method.label for method in table.methods])
        axes.set_ylim(len(table.methods) - 0.5, -0.5)
        axes.grid(axis="x", color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)


def _drawn(table: ResultTable) -> list[ShownColumn]:
    return [
        shown
        for shown in table.columns
        if any(table.cells[method.name, shown.key].ours.value is not None for method in table.methods)
    ]


def _draw_cell(axes: Any, place: int, cell: Cell) -> None:
    ours = cell.ours
    if ours.value is not None:
        if ours.low is not None and ours.high is not None:
            axes.plot([ours.low, ours.high], [place, place], color=colour_of(place), linewidth=1.4)
        axes.plot([ours.value], [place], marker="o", color=colour_of(place), markersize=4)
    if cell.compared is not None:
        ring = {"markerfacecolor": "none", "markeredgecolor": "0.4", "markersize": 6}
        axes.plot([cell.compared], [place], marker="o", linestyle="none", **ring)
