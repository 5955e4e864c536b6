"""Numbers along chains, as lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prefmh_web.console.plots.axes import EXTENT, Axis, axis_of
from prefmh_web.console.plots.plot import COLOURS, Mark, Plot, colour, in_few_paths

MOST_POINTS = 3_000
"""Of all lines of a plot together."""
_FEWEST_POINTS = 2


@dataclass(frozen=True)
class Line:
    """One chain's numbers.

    Args:
        label: of the chain.
        first: the step of the first of them; each of the others is one step further.
        values: shape (T,), finite.
        place: of the chain, which its colour goes by.
    """

    label: str
    first: int
    values: npt.ArrayLike
    place: int = 0


def every_for(lines: Sequence[Line], most_points: int = MOST_POINTS) -> int:
    """Return k such that every k-th number of each line makes at most so many points; 1 where all of them fit."""
    lengths = [np.size(line.values) for line in lines]
    room = max(_FEWEST_POINTS, most_points // max(1, len(lines)))
    return max(1, -(-max(lengths, default=0) // room))


def traces(
    title: str, lines: Sequence[Line], y_label: str, x_label: str = "step", most_points: int = MOST_POINTS
) -> Plot:
    """Return the plot of a number along several chains; the description says if not every step is drawn.

    Raises:
        ValueError: no line has a number.
    """
    shown = [(line, np.asarray(line.values, dtype=np.float64)) for line in lines if np.size(line.values)]
    if not shown:
        raise ValueError("a plot of chains needs a chain with a number")
    every = every_for(lines, most_points)
    x = axis_of(
        x_label, min(line.first for line, _ in shown), max(line.first + len(v) - 1 for line, v in shown), is_whole=True
    )
    y = axis_of(y_label, min(float(v.min()) for _, v in shown), max(float(v.max()) for _, v in shown))
    marks = in_few_paths([_mark(line, values, every, x, y) for line, values in shown])
    legend = marks if 1 < len(shown) <= COLOURS else ()
    return Plot(title, _description(shown, every, x_label), x, y, marks, legend, len(shown) > COLOURS)


def _mark(line: Line, values: npt.NDArray[np.float64], every: int, x: Axis, y: Axis) -> Mark:
    # The last one is always drawn: it is where the chain stands now.
    drawn = np.unique(np.append(np.arange(0, len(values), every), len(values) - 1))
    path = path_through(x.units(line.first + drawn), EXTENT - y.units(values[drawn]))
    return Mark(path, f"plot-line {colour(line.place)}", line.label)


def path_through(x: npt.NDArray[np.int64], y: npt.NDArray[np.int64]) -> str:
    """Return the path through points, in few characters: each as its distance from the one before."""
    if len(x) == 1:
        return f"M{x[0]} {y[0]}h1"
    steps = (f"{dx}{dy:+d}" for dx, dy in zip(np.diff(x).tolist(), np.diff(y).tolist(), strict=True))
    return f"M{x[0]} {y[0]}l{' '.join(steps)}"


def _description(shown: Sequence[tuple[Line, npt.NDArray[np.float64]]], every: int, x_label: str) -> str:
    lows = min(float(values.min()) for _, values in shown)
    highs = max(float(values.max()) for _, values in shown)
    lines = f"{len(shown):,} line{'' if len(shown) == 1 else 's'}, one a chain"
    thinned = "" if every == 1 else f" One {x_label} in {every:,} is drawn, and the last."
    return f"{lines}; the numbers lie between {lows:g} and {highs:g}.{thinned}"
