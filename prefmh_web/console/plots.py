"""Plots as SVG, drawn on the server: no script, no inline style, colours by classes of the style sheet.

    traces        a number along several chains
    rank_overlay  how the ranks of each chain's draws are spread over those of all
    histogram     how a number is spread, beside a second one if there is one

Each takes plain numbers and returns a `Plot`, which the template `console/_plot.html` shows:

    {% include "console/_plot.html" with plot=plot %}

A plot stretches to the width of its place. Its labels are text of the page, so they stay legible on a narrow screen.
How many points are drawn is bounded, whatever there is to draw: `MAX_POINTS` for all lines of a plot together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import sampler

# Drawings are so wide and so high, in units that the page stretches.
EXTENT = 1000
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_MAX_DIGITS = 7
# Beyond these, the round numbers around a number may be no doubles. A scorer may give any finite number.
_SMALLEST, _LARGEST = 1e-300, 1e300


@dataclass(frozen=True)
class Axis:
    """One axis, from one round number to another, with evenly spaced ticks that include both ends."""

    label: str
    low: float
    high: float
    intervals: int

    @property
    def ticks(self) -> list[str]:
        """The numbers at the ticks, from low to high."""
        step = (self.high - self.low) / self.intervals
        digits = next((d for d in range(_MAX_DIGITS) if math.isclose(round(step, d), step, rel_tol=1e-6)), None)
        numbers = (self.low + k * step for k in range(self.intervals + 1))
        return [f"{each:.3g}" if digits is None else f"{each:,.{digits}f}" for each in numbers]

    def units(self, values: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return where numbers lie, in units of the drawing from the low end, rounded."""
        scaled = (np.asarray(values, dtype=np.float64) - self.low) / (self.high - self.low) * EXTENT
        return np.rint(np.clip(scaled, 0, EXTENT)).astype(np.int64)


def axis_of(label: str, low: float, high: float, intervals: int = 4, is_whole: bool = False) -> Axis:
    """Return an axis of about so many intervals whose ends are round numbers around `low` and `high`.

    Args:
        is_whole: there is nothing between two whole numbers, as with steps.

    Raises:
        ValueError: an end is not finite.
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError("an axis needs finite numbers")
    low, high = (0.0 if abs(end) < _SMALLEST else max(-_LARGEST, min(end, _LARGEST)) for end in (low, high))
    if high <= low:
        # One value: it lies in the middle, or, if that is 0, at the low end: what is counted has nothing below.
        around = abs(low) / 2
        low, high = low - around, (high + around) or 1.0
    rough = (high - low) / intervals
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in _STEPS if power * each >= rough * (1 - 1e-9))
    if is_whole:
        step = max(1.0, float(math.ceil(step)))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return Axis(label, first * step, last * step, max(1, last - first))


# As many colours as the style sheet has: `--plot-1` and so on.
COLOURS = 6


@dataclass(frozen=True)
class Mark:
    """One path of a drawing.

    Args:
        path: in units of the drawing, `EXTENT` wide and high.
        look: its classes in the style sheet.
        label: what it stands for; empty where it stands for several things.
    """

    path: str
    look: str
    label: str = ""


@dataclass(frozen=True)
class Plot:
    """One plot.

    Args:
        title: what it shows.
        description: what somebody who does not see it has to know, in a sentence or two; the page shows it below.
        marks: in the order in which they are drawn.
        legend: the marks that a legend names; empty where there are too many to tell apart, or only one.
        is_crowded: there are more lines than colours, so each is thin.
    """

    title: str
    description: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    legend: tuple[Mark, ...] = ()
    is_crowded: bool = False

    @property
    def grid(self) -> str:
        """The path of the lines at the ticks of the upright axis."""
        heights = np.linspace(EXTENT, 0, self.y.intervals + 1).round().astype(int)
        return "".join(f"M0 {height}h{EXTENT}" for height in heights.tolist())


def in_few_paths(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Return marks, or one for each look where there are more than colours: nobody tells so many lines apart, and a
    path for each would make the page several times as large.
    """
    if len(marks) <= COLOURS:
        return tuple(marks)
    looks = dict.fromkeys(mark.look for mark in marks)
    return tuple(Mark("".join(mark.path for mark in marks if mark.look == look), look) for look in looks)


def colour(index: int) -> str:
    """Return the class of the colour of a line or chain, by its index."""
    return f"plot-{index % COLOURS + 1}"


MAX_POINTS = 3_000
"""Of all lines of a plot together."""
# Of a line that is drawn: one at the start, one on the way and the last.
_MIN_POINTS = 3


FloatArray = npt.NDArray[np.float64]
Chains = Sequence[tuple[int, FloatArray]]
"""Of some chains the index of each, which its colour goes by, and its finite numbers, shape (T_c,)."""


def traces(name: str, chains: Chains, max_points: int = MAX_POINTS) -> Plot | None:
    """Return the plot of a number along several chains, from step 0 on; the description says if some chains or steps
    are not drawn. None where no chain has a number.

    Args:
        name: of the number.
    """
    found = [(index, values) for index, values in chains if len(values)]
    if not found:
        return None
    shown = _evenly(found, max_points // _MIN_POINTS)
    longest = max(len(values) for _, values in shown)
    # The last number of each line is always drawn.
    every = max(1, -(-longest // (max_points // len(shown) - 1)))
    x = axis_of("step", 0, longest - 1, is_whole=True)
    y = axis_of(name, min(float(v.min()) for _, v in shown), max(float(v.max()) for _, v in shown))
    marks = in_few_paths([_mark(index, values, every, x, y) for index, values in shown])
    legend = marks if 1 < len(shown) <= COLOURS else ()
    description = _description(shown, len(found), every)
    return Plot(f"Trace of {name}", description, x, y, marks, legend, len(shown) > COLOURS)


def _evenly(lines: Chains, most: int) -> Chains:
    """Return so many lines at most, chosen evenly."""
    if len(lines) <= most:
        return lines
    return [lines[index] for index in np.linspace(0, len(lines) - 1, most).round().astype(int).tolist()]


def _mark(index: int, values: FloatArray, every: int, x: Axis, y: Axis) -> Mark:
    # The last one is always drawn: it is where the chain stands now.
    drawn = np.unique(np.append(np.arange(0, len(values), every), len(values) - 1))
    path = path_through(x.units(drawn), EXTENT - y.units(values[drawn]))
    return Mark(path, f"plot-line {colour(index)}", f"chain {index}")


def path_through(x: npt.NDArray[np.int64], y: npt.NDArray[np.int64]) -> str:
    """Return the path through points, in few characters: each as its distance from the one before."""
    if len(x) == 1:
        return f"M{x[0]} {y[0]}h1"
    steps = (f"{dx}{dy:+d}" for dx, dy in zip(np.diff(x).tolist(), np.diff(y).tolist(), strict=True))
    return f"M{x[0]} {y[0]}l{' '.join(steps)}"


def _description(shown: Chains, there: int, every: int) -> str:
    lows = min(float(values.min()) for _, values in shown)
    highs = max(float(values.max()) for _, values in shown)
    lines = f"{len(shown):,} line{'' if len(shown) == 1 else 's'}, one a chain"
    if there > len(shown):
        lines += f", chosen evenly from {there:,} chains"
    thinned = "" if every == 1 else f" One step in {every:,} is drawn, and the last."
    numbers = (
        f"the numbers lie between {sampler.figure(lows, 6)} and {sampler.figure(highs, 6)}"
        if lows < highs
        else f"each number is {sampler.figure(lows, 6)}"
    )
    return f"{lines}; {numbers}.{thinned}"


_BINS = 20
# With more chains than this, each has few draws to fill bins with, and the page many lines to send.
_MANY, _FEW_BINS = 20, 10
_MAX_OUTLINES = 500


def histogram(name: str, samples: npt.ArrayLike, draws: npt.ArrayLike = ()) -> Plot:
    """Return how a number is spread over samples: bars of the share in each bin, and beside them the outline of how it
    is spread over draws from the base distribution.

    Args:
        name: of the number.
        samples: shape (n,), finite.
        draws: shape (m,), finite; there may be none.

    Raises:
        ValueError: there is no number, or one is not finite.
    """
    first, second = (np.asarray(each, dtype=np.float64).ravel() for each in (samples, draws))
    everything = np.concatenate([first, second])
    if not len(first) or not np.all(np.isfinite(everything)):
        raise ValueError("a histogram needs finite numbers")
    x, edges = _binned(everything, name)
    shares = [np.histogram(each, edges)[0] / len(each) * 100 for each in (first, second) if len(each)]
    y = axis_of("% of them", 0.0, max(float(each.max()) for each in shares))
    marks = [Mark(_bars(shares[0], y), f"plot-bar {colour(0)}", "samples")]
    description = f"samples: {_spread(first)}."
    if len(second):
        marks.append(Mark(_outline(shares[1], y), f"plot-line {colour(1)}", "base distribution"))
        description += f" base distribution: {_spread(second)}."
    return Plot(name, description, x, y, tuple(marks), tuple(marks) if len(marks) > 1 else ())


def rank_overlay(name: str, ranks: Chains) -> Plot:
    """Return how the ranks of each chain's draws among all draws are spread, an outline for each chain.

    Chains that sample one distribution have outlines around the level line, where each bin has an equal share (Vehtari
    et al. 2021, section 4.4).

    Args:
        name: of the number.
        ranks: from 0 to 1.
    """
    edges = np.linspace(0.0, 1.0, (_FEW_BINS if len(ranks) > _MANY else _BINS) + 1)
    counts = [np.histogram(each, edges)[0].astype(np.float64) for _, each in ranks]
    relative = [each / max(1e-12, each.mean()) for each in counts]
    y = axis_of("relative to an equal share", 0.0, max(2.0, *(float(each.max()) for each in relative)))
    x = Axis("rank among draws of one distribution, in %", 0.0, 100.0, 4)
    outlines = [
        Mark(_outline(each, y), f"plot-line {colour(index)}", f"chain {index}")
        for (index, _), each in zip(ranks[:_MAX_OUTLINES], relative, strict=False)
    ]
    level = Mark(f"M0 {EXTENT - int(y.units(1.0))}H{EXTENT}", "plot-level", "equal shares")
    highest, lowest = max(float(each.max()) for each in relative), min(float(each.min()) for each in relative)
    drawn = "" if len(ranks) <= _MAX_OUTLINES else f" The first {_MAX_OUTLINES} chains are drawn."
    description = (
        f"{len(ranks):,} outline{'' if len(ranks) == 1 else 's'}, one a chain, in {len(counts[0])} bins of ranks. "
        f"The fullest bin has {highest:.1f} times its equal share, the emptiest {lowest:.1f} times.{drawn}"
    )
    marks = (*in_few_paths(outlines), level)
    legend = marks if 1 < len(outlines) <= COLOURS else ()
    return Plot(f"Ranks of {name}", description, x, y, marks, legend, len(outlines) > COLOURS)


def _binned(numbers: FloatArray, x_label: str) -> tuple[Axis, FloatArray]:
    """Return an axis around numbers and the edges of bins on it: of whole numbers, as many of them in each bin."""
    if not np.array_equal(numbers, np.rint(numbers)):
        x = axis_of(x_label, float(numbers.min()), float(numbers.max()))
        return x, np.linspace(x.low, x.high, _BINS + 1)
    x = axis_of(x_label, float(numbers.min()), float(numbers.max()) + 1, is_whole=True)
    between = round((x.high - x.low) / x.intervals)
    parts = max(
        d for d in range(1, min(between, _BINS) + 1) if between % d == 0 and (d == 1 or x.intervals * d <= _BINS)
    )
    return x, np.linspace(x.low, x.high, x.intervals * parts + 1)


def _bars(heights: FloatArray, y: Axis) -> str:
    tops, edges = EXTENT - y.units(heights), np.rint(np.linspace(0, EXTENT, len(heights) + 1)).astype(int)
    return "".join(
        f"M{left} {EXTENT}V{top}H{right}V{EXTENT}z"
        for left, right, top in zip(edges[:-1].tolist(), edges[1:].tolist(), tops.tolist(), strict=True)
        if top < EXTENT
    )


def _outline(heights: FloatArray, y: Axis) -> str:
    tops, edges = EXTENT - y.units(heights), np.rint(np.linspace(0, EXTENT, len(heights) + 1)).astype(int)
    widths, rises = np.diff(edges).tolist(), np.diff(tops, prepend=tops[0]).tolist()
    return f"M0 {tops[0]}" + "".join(f"v{rise}h{width}" for rise, width in zip(rises, widths, strict=True))


def _spread(values: FloatArray) -> str:
    low, middle, high = map(sampler.figure, np.quantile(values, (0.05, 0.5, 0.95)).tolist())
    return f"{len(values):,} numbers, median {middle}, 90 % of them between {low} and {high}"
