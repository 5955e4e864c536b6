"""Plots: what is drawn lies where the numbers say, its size is bounded, and somebody who does not see it is told."""

import re

import numpy as np
import pytest
from django.template.loader import render_to_string

from prefmh_web.console.plots import MOST_POINTS, Line, axis_of, histogram, rank_bars, rank_overlay, traces

_NUMBERS = re.compile(r"-?\d+")


def points_of(path):
    """The points of a path that `traces` has drawn, in units of the drawing."""
    head, _, steps = path.partition("l")
    first = [int(each) for each in _NUMBERS.findall(head)]
    moves = np.array([int(each) for each in _NUMBERS.findall(steps)]).reshape(-1, 2)
    return np.concatenate([[first[:2]], first[:2] + moves.cumsum(axis=0)]) if len(moves) else np.array([first[:2]])


def shown(plot):
    return render_to_string("console/_plot.html", {"plot": plot})


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 1, ["0.00", "0.25", "0.50", "0.75", "1.00"]),
        (0.31, 0.78, ["0.2", "0.4", "0.6", "0.8"]),
        (3, 3, ["1", "2", "3", "4", "5"]),
        (0, 0, ["0.00", "0.25", "0.50", "0.75", "1.00"]),
        (-1234, 4321, ["-2,000", "0", "2,000", "4,000", "6,000"]),
    ],
)
def test_the_ticks_of_an_axis_are_round_and_include_everything(low, high, ticks):
    axis = axis_of("number", low, high)
    assert axis.ticks == ticks
    assert axis.low <= low <= high <= axis.high


def test_a_line_passes_through_its_numbers():
    plot = traces("Words", [Line("chain 0", 0, [0, 10, 5])], "words")
    assert plot.x.ticks == ["0", "1", "2"]
    assert points_of(plot.marks[0].path).tolist() == [[0, 1000], [500, 0], [1000, 500]]


@pytest.mark.parametrize(
    ("chains", "steps", "drawn", "told", "most_bytes"),
    [
        (200, 1001, 200, "One step in 72 is drawn", 30_000),
        (5000, 50, 1000, "1,000 lines, one a chain, chosen evenly from 5,000 chains;", 60_000),
    ],
)
def test_a_page_stays_small_however_many_chains_are_drawn_and_says_what_is_left_out(
    chains, steps, drawn, told, most_bytes
):
    numbers = np.random.default_rng(3).normal(size=(chains, steps))
    plot = traces("Words", [Line(f"chain {c}", 0, each, c) for c, each in enumerate(numbers)], "words")
    lines = [points_of(f"M{path}") for mark in plot.marks for path in mark.path.split("M")[1:]]
    assert len(lines) == drawn
    assert sum(map(len, lines)) <= MOST_POINTS
    assert told in plot.description
    assert len(shown(plot)) < most_bytes


def test_where_a_chain_stands_now_is_drawn_though_steps_are_left_out():
    plot = traces("Words", [Line("chain 0", 0, np.r_[np.zeros(9999), 8.0])], "words", most_points=100)
    assert points_of(plot.marks[0].path)[-1].tolist() == [1000, 0]


def test_bars_show_the_share_of_each_bin():
    plot = histogram("Words", [1, 1, 1, 2], "words", beside=[2, 2])
    bars = re.findall(r"M(\d+) 1000V(\d+)H(\d+)", plot.marks[0].path)
    assert plot.x.ticks == ["1", "2", "3"]
    # 75 % and 25 % of an axis that ends at 100 %, the share of the second spread in its only bin.
    assert bars == [("0", "250", "500"), ("500", "750", "1000")]
    assert plot.marks[1].path == "M0 1000v0h500v-1000h500"
    assert [mark.label for mark in plot.legend] == ["samples", "base distribution"]


def test_chains_of_one_law_have_level_ranks_and_a_chain_apart_has_not():
    rng = np.random.default_rng(11)
    ranks = rng.permutation(4000).reshape(4, 1000)
    alike = rank_overlay("Ranks", [(f"chain {c}", c, each) for c, each in enumerate(ranks)], 3999)
    apart = rank_overlay("Ranks", [(f"chain {c}", c, np.arange(c * 1000, c * 1000 + 1000)) for c in range(4)], 3999)
    highest = [float(re.search(r"fullest bin has ([\d.]+)", plot.description)[1]) for plot in (alike, apart)]
    # 50 draws are expected in each of 80 bins; five standard deviations of a Poisson number make 1.7 times as many.
    assert highest[0] < 1.7
    assert highest[1] == pytest.approx(4.0, abs=0.1)


def test_the_bars_of_an_even_spread_end_half_way_up():
    assert set(re.findall(r"V(\d+)H", rank_bars("chain 0", np.arange(100), 99).path)) == {"500"}


def test_who_does_not_see_a_plot_is_told_what_it_shows_and_labels_are_escaped():
    page = shown(traces("<b>Words</b>", [Line("chain <0>", 0, [1, 2])], "words"))
    assert (
        'role="img" aria-label="&lt;b&gt;Words&lt;/b&gt;. 1 line, one a chain; the numbers lie between 1 and 2."'
        in page
    )
    assert "chain &lt;0&gt;" in page
    assert "<b>" not in page
    assert "style=" not in page
