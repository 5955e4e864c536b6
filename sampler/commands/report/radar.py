"""Stories: ratings and Bradley-Terry strengths, normalised across methods by min-max, for showing only (L641-651)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sampler.commands.report.colours import colour_of
from sampler.commands.report.run_files import RunFiles
from sampler.commands.report.strengths import PREFIX
from sampler.commands.report.table import ResultTable

NAME = "radar"
_PANELS = ("Pointwise scores", "Bradley-Terry strengths")


def rows(run: RunFiles, table: ResultTable) -> Iterator[Sequence[object]]:
    """Yield method, column, value and value on the scale from the lowest method (0) to the highest (1)."""
    yield "method", "column", "value", "normalised"
    for key in (key for panel in _axes(run) for key in panel):
        for method, value, scaled in _normalised(table, key):
            yield method, key, repr(value), repr(scaled)


def draw(figure: Any, run: RunFiles, table: ResultTable) -> None:
    """Draw two radars side by side; a panel without a number stays empty."""
    figure.set_size_inches(7.2, 3.8)
    panels = figure.subplots(1, 2, subplot_kw={"projection": "polar"})
    labels = {shown.key: shown.label.removeprefix("BT ").capitalize() for shown in table.columns}
    for axes, keys, title in zip(panels, _axes(run), _PANELS, strict=True):
        angles = np.linspace(0, 2 * np.pi, len(keys), endpoint=False)
        axes.set_title(title)
        axes.set_theta_offset(np.pi / 2)
        axes.set_xticks(angles, [labels[key] for key in keys])
        axes.set_ylim(0, 1.05)
        axes.set_yticks([0.5, 1.0], ["", ""])
        scaled = {key: {method: place for method, _, place in _normalised(table, key)} for key in keys}
        for number, method in enumerate(table.methods):
            values = [scaled[key].get(method.name) for key in keys]
            if None not in values:
                closed = [*values, values[0]]
                axes.plot(
                    [*angles, angles[0]], closed, color=colour_of(number), label=method.label, marker="o", markersize=3
                )
    handles, names = panels[0].get_legend_handles_labels()
    if not handles:
        handles, names = panels[1].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3)


def _axes(run: RunFiles) -> tuple[list[str], list[str]]:
    names = [asked.name for asked in run.options.of_experiment.compared]
    return names, [PREFIX + name for name in names]


def _normalised(table: ResultTable, key: str) -> list[tuple[str, float, float]]:
    """Return method, value and place between the lowest and the highest; all at 1 where they do not differ."""
    found = [(method.name, table.cells[method.name, key].ours.value) for method in table.methods]
    values = {name: value for name, value in found if value is not None}
    if not values:
        return []
    low, high = min(values.values()), max(values.values())
    return [(name, value, (value - low) / (high - low) if high > low else 1.0) for name, value in values.items()]
