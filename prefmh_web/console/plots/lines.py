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
# Of a line that is drawn: one at the start, one on the way and the last.
_FEWEST_POINTS = 3


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


_Drawn = tuple[Line, npt.NDArray[np.float64]]


def traces(
    title: str, lines: Sequence[Line], y_label: str, x_label: str = "step", most_points: int = MOST_POINTS
) -> Plot:
    """Return the plot of a number along several chains; the description says if some chains or steps are not drawn.

    Raises:
        ValueError: no line has a number.
    """
    found = [(line, np.asarray(line.values, dtype=np.float64)) for line in lines if np.size(line.values)]
    if not found:
        raise ValueError("a plot of chains needs a chain with a number")
    shown = _evenly(found, most_points // _FEWEST_POINTS)
    # The last number of each line is always drawn.
    every = max(1, -(-max(len(values) for _, values in shown) // (most_points // len(shown) - 1)))
    x = axis_of(
        x_label, min(line.first for line, _ in shown), max(line.first + len(v) - 1 for line, v in shown), is_whole=True
    )
    y = axis_of(y_label, min(float(v.min()) for _, v in shown), max(float(v.max()) for _, v in shown))
    marks = in_few_paths([_mark(line, values, every, x, y) for line, values in shown])
    legend = marks if 1 < len(shown) <= COLOURS else ()
    return Plot(title, _description(shown, len(found), every, x_label), x, y, marks, legend, len(shown) > COLOURS)


def _evenly(lines: list[_Drawn], most: int) -> list[_Drawn]:
    """Return so many lines at most, chosen evenly."""
    if len(lines) <= most:
        return lines
    return [lines[place] for place in np.linspace(0, len(lines) - 1, most).round().astype(int).tolist()]


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


def _description(shown: Sequence[_Drawn], there: int, every: int, x_label: str) -> str:
    lows = min(float(values.min()) for _, values in shown)
    highs = max(float(values.max()) for _, values in shown)
    lines = f"{len(shown):,} line{'' if len(shown) == 1 else 's'}, one a chain"
    if there > len(shown):
        lines += f", chosen evenly from {there:,} chains"
    thinned = "" if every == 1 else f" One {x_label} in {every:,} is drawn, and the last."
    numbers = f"the numbers lie between {lows:g} and {highs:g}" if lows < highs else f"each number is {lows:g}"
    return f"{lines}; {numbers}.{thinned}"
