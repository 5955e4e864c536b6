"""Numbers counted in bins, as bars and as outlines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from prefmh_web.console.plots.axes import EXTENT, Axis, axis_of
from prefmh_web.console.plots.plot import COLOURS, Mark, Plot, colour, in_few_paths

_BINS = 20
# With more chains than this, each has few draws to fill bins with, and the page many lines to send.
_MANY, _FEW_BINS = 20, 10
_MOST_OUTLINES = 500

Counts = npt.NDArray[np.float64]


def histogram(
    title: str,
    values: npt.ArrayLike,
    x_label: str,
    label: str = "samples",
    beside: npt.ArrayLike | None = None,
    beside_label: str = "base distribution",
    bins: int = _BINS,
) -> Plot:
    """Return how numbers are spread: bars of the share in each bin, and beside them the outline of a second spread.

    Args:
        values: shape (n,), finite.
        label: what they are, for the legend.
        beside: other numbers to compare with, shape (m,), finite.

    Raises:
        ValueError: there is no number, or one is not finite.
    """
    first = np.asarray(values, dtype=np.float64).ravel()
    second = np.zeros(0) if beside is None else np.asarray(beside, dtype=np.float64).ravel()
    everything = np.concatenate([first, second])
    if not len(first) or not np.all(np.isfinite(everything)):
        raise ValueError("a histogram needs finite numbers")
    x, edges = _binned(everything, x_label, bins)
    shares = [np.histogram(each, edges)[0] / len(each) * 100 for each in (first, second) if len(each)]
    y = axis_of("% of them", 0.0, max(float(each.max()) for each in shares))
    marks = [Mark(_bars(shares[0], y), f"plot-bar {colour(0)}", label)]
    if len(shares) > 1:
        marks.append(Mark(_outline(shares[1], y), f"plot-line {colour(1)}", beside_label))
    description = f"{label}: {_spread(first)}." + (f" {beside_label}: {_spread(second)}." if len(second) else "")
    return Plot(title, description, x, y, tuple(marks), tuple(marks) if len(marks) > 1 else ())


def rank_overlay(title: str, ranks: Sequence[tuple[str, int, npt.ArrayLike]], most: float) -> Plot:
    """Return how the ranks of each chain's draws among all draws are spread, an outline for each chain.

    Chains that sample one law have outlines around the level line, where each bin has an equal share (Vehtari et al.
    2021, section 4.4).

    Args:
        ranks: of each chain its label, its place, and the ranks of its draws, from 0 to `most`; equal draws may have
            ranks between whole numbers.
        most: the highest rank that there is.
    """
    counts = _rank_counts([each for _, _, each in ranks], most, _FEW_BINS if len(ranks) > _MANY else _BINS)
    relative = [each / max(1e-12, each.mean()) for each in counts]
    y = axis_of("relative to an equal share", 0.0, max(2.0, *(float(each.max()) for each in relative)))
    x = Axis("rank among draws of one law, in %", 0.0, 100.0, 4)
    outlines = [
        Mark(_outline(each, y), f"plot-line {colour(place)}", label)
        for (label, place, _), each in zip(ranks[:_MOST_OUTLINES], relative, strict=False)
    ]
    level = Mark(f"M0 {EXTENT - int(y.units(1.0))}H{EXTENT}", "plot-level", "equal shares")
    highest, lowest = max(float(each.max()) for each in relative), min(float(each.min()) for each in relative)
    drawn = "" if len(ranks) <= _MOST_OUTLINES else f" The first {_MOST_OUTLINES} chains are drawn."
    description = (
        f"{len(ranks):,} outline{'' if len(ranks) == 1 else 's'}, one a chain, in {len(counts[0])} bins of ranks. "
        f"The fullest bin has {highest:.1f} times its equal share, the emptiest {lowest:.1f} times.{drawn}"
    )
    marks = (*in_few_paths(outlines), level)
    legend = marks if 1 < len(outlines) <= COLOURS else ()
    return Plot(title, description, x, y, marks, legend, len(outlines) > COLOURS)


def rank_bars(label: str, ranks: npt.ArrayLike, most: float) -> Mark:
    """Return the bars of one chain's ranks, as `rank_overlay` takes them, without axes.

    A bin with its equal share is half as high as the drawing.
    """
    counts = _rank_counts([ranks], most, _FEW_BINS)[0]
    relative = np.minimum(counts / max(1e-12, counts.mean()), 2.0)
    return Mark(_bars(relative, Axis("", 0.0, 2.0, 2)), f"plot-bar {colour(0)}", label)


def _binned(numbers: Counts, x_label: str, bins: int) -> tuple[Axis, Counts]:
    """Return an axis around numbers and the edges of bins on it: of whole numbers, as many of them in each bin."""
    if not np.array_equal(numbers, np.rint(numbers)):
        x = axis_of(x_label, float(numbers.min()), float(numbers.max()))
        return x, np.linspace(x.low, x.high, bins + 1)
    x = axis_of(x_label, float(numbers.min()), float(numbers.max()) + 1, is_whole=True)
    between = round((x.high - x.low) / x.intervals)
    parts = max(d for d in range(1, between + 1) if between % d == 0 and (d == 1 or x.intervals * d <= bins))
    return x, np.linspace(x.low, x.high, x.intervals * parts + 1)


def _rank_counts(ranks: Sequence[npt.ArrayLike], most: float, bins: int) -> list[Counts]:
    edges = np.linspace(0.0, max(1.0, most), bins + 1)
    return [np.histogram(np.asarray(each, dtype=np.float64), edges)[0].astype(np.float64) for each in ranks]


def _bars(heights: Counts, y: Axis) -> str:
    tops, edges = EXTENT - y.units(heights), np.rint(np.linspace(0, EXTENT, len(heights) + 1)).astype(int)
    return "".join(
        f"M{left} {EXTENT}V{top}H{right}V{EXTENT}z"
        for left, right, top in zip(edges[:-1].tolist(), edges[1:].tolist(), tops.tolist(), strict=True)
        if top < EXTENT
    )


def _outline(heights: Counts, y: Axis) -> str:
    tops, edges = EXTENT - y.units(heights), np.rint(np.linspace(0, EXTENT, len(heights) + 1)).astype(int)
    widths, rises = np.diff(edges).tolist(), np.diff(tops, prepend=tops[0]).tolist()
    return f"M0 {tops[0]}" + "".join(f"v{rise}h{width}" for rise, width in zip(rises, widths, strict=True))


def _spread(values: Counts) -> str:
    low, middle, high = np.quantile(values, (0.05, 0.5, 0.95))
    return f"{len(values):,} numbers, median {middle:.4g}, 90 % of them between {low:.4g} and {high:.4g}"
