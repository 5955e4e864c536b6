"""Plots: what is drawn lies where the numbers say, its size is bounded, and somebody who does not see it is told."""

import re

import numpy as np
import pytest
from django.template.loader import render_to_string

from prefmh_web.console.plots import MOST_POINTS, Line, traces

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


def test_who_does_not_see_a_plot_is_told_what_it_shows_and_labels_are_escaped():
    page = shown(traces("<b>Words</b>", [Line("chain <0>", 0, [1, 2])], "words"))
    assert (
        'role="img" aria-label="&lt;b&gt;Words&lt;/b&gt;. 1 line, one a chain; the numbers lie between 1 and 2."'
        in page
    )
    assert "chain &lt;0&gt;" in page
    assert "<b>" not in page
    assert "style=" not in page
