"""Colours of methods in figures: Okabe and Ito's, in the table's order."""

from __future__ import annotations

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def colour_of(number: int) -> str:
    """Return the colour of the method in this place of the table; the eighth has the first one again."""
    return _COLOURS[number % len(_COLOURS)]
