"""What the template of a plot shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prefmh_web.console.plots.axes import EXTENT, Axis

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
        return "".join(f"M0 {EXTENT - place}h{EXTENT}" for place in self.y.places)

    @property
    def y_ticks(self) -> list[str]:
        """From the top."""
        return self.y.ticks[::-1]


def in_few_paths(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Return marks, or one for each look where there are more than colours: nobody tells so many lines apart, and a
    path for each would make the page several times as large.
    """
    if len(marks) <= COLOURS:
        return tuple(marks)
    looks = dict.fromkeys(mark.look for mark in marks)
    return tuple(Mark("".join(mark.path for mark in marks if mark.look == look), look) for look in looks)


def colour(place: int) -> str:
    """Return the class of the colour of a line or chain, by its place."""
    return f"plot-{place % COLOURS + 1}"
