"""Plots as SVG, drawn on the server: no script, no inline style, colours by classes of the style sheet.

    traces        a number along several chains
    rank_overlay  how the ranks of each chain's draws are spread over those of all
    rank_bars     the same of one chain, small enough for a table
    histogram     how a number is spread, beside a second one if there is one

Each takes plain numbers and returns a `Plot` (`rank_bars` a `Mark`), which the template `console/_plot.html` shows:

    {% include "console/_plot.html" with plot=plot %}

A plot stretches to the width of its place. Its labels are text of the page, so they stay legible on a narrow screen.
How many points are drawn is bounded, whatever there is to draw: `MOST_POINTS` for all lines of a plot together.
"""

from prefmh_web.console.plots.axes import Axis, axis_of
from prefmh_web.console.plots.bars import histogram, rank_bars, rank_overlay
from prefmh_web.console.plots.lines import MOST_POINTS, Line, traces
from prefmh_web.console.plots.plot import Mark, Plot

__all__ = [
    "MOST_POINTS",
    "Axis",
    "Line",
    "Mark",
    "Plot",
    "axis_of",
    "histogram",
    "rank_bars",
    "rank_overlay",
    "traces",
]
