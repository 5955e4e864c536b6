"""What a list's further columns say of objects, and how that is shown with them, to people and to models alike.

What all the objects that are shown together have in common stands once, above them. What differs is a property of each
object and stands with it. Neither depends on which of them is the proposal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ContextLine:
    """What stands in one column for an object, and what the researcher calls the column."""

    label: str
    text: str


Context = tuple[ContextLine, ...]
"""Of one object: a line for each column that is shown, in their order; empty cells included."""


@dataclass(frozen=True)
class SharedContext:
    """The context of objects that are shown together, without empty cells.

    Args:
        shared: what they have in common.
        own: what each has of its own, in the order of the objects.
    """

    shared: Context
    own: tuple[Context, ...]

    def __bool__(self) -> bool:
        return bool(self.shared) or any(self.own)


def shared_context(*contexts: Sequence[ContextLine]) -> SharedContext:
    """Return what the objects with these contexts have in common, and what each has of its own.

    Args:
        contexts: one an object, of the same columns; of an object that has none, as one of the researcher's own pairs,
            empty.
    """
    columns = dict.fromkeys(line.label for context in contexts for line in context)
    cells = [{line.label: line for line in context} for context in contexts]
    together = {label for label in columns if len({found.get(label) for found in cells}) == 1}
    shared = tuple(cells[0][label] for label in columns if label in together)
    own = tuple(tuple(found[label] for label in columns if label in found.keys() - together) for found in cells)
    return SharedContext(_filled(shared), tuple(map(_filled, own)))


def _filled(lines: Context) -> Context:
    return tuple(line for line in lines if line.text.strip())
