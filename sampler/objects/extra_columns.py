"""The columns of a catalog's table beside those that a catalog is made of: kept by name, and never part of the law.

Bounds, each with a message that names the row and the column: `MAX_COLUMNS` of them; `MAX_NAME_CHARACTERS` characters
to a name and `MAX_CELL_CHARACTERS` to a cell. Of all cells together, see `Collector`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sampler.objects.characters import demand_storable, quoted

MAX_COLUMNS = 50
MAX_NAME_CHARACTERS = 100
MAX_CELL_CHARACTERS = 20_000


@dataclass(frozen=True)
class ExtraColumns:
    """The extra columns of one table: their places in a row, by their names. A column without a name is not kept."""

    places: Mapping[str, int]

    @classmethod
    def of(cls, names: Sequence[str], read: Collection[str]) -> ExtraColumns:
        """Return the columns of a header.

        Args:
            names: of all columns, in order.
            read: the names of the columns that the catalog is made of.

        Raises:
            ValueError: there are too many, one has too long a name, or two columns have the same.
        """
        twice = [name for name, count in Counter(filter(None, names)).items() if count > 1]
        if twice:
            raise ValueError(f"The first row names the column {quoted(twice[0], 40)} twice; rename one of the two")
        places = {name: place for place, name in enumerate(names) if name and name not in read}
        for name in places:
            if len(name) > MAX_NAME_CHARACTERS:
                raise ValueError(
                    f"The name of the column {quoted(name, 40)} has {len(name):,} characters; at most "
                    f"{MAX_NAME_CHARACTERS} are allowed"
                )
        if len(places) > MAX_COLUMNS:
            raise ValueError(
                f"The first row names {len(places)} further columns; at most {MAX_COLUMNS} are kept. Remove those that "
                "nobody needs"
            )
        return cls(places)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order of the table."""
        return tuple(self.places)

    def cells(self, cells: Sequence[str]) -> dict[str, str]:
        """Return the cells of a row by their columns, without white space at their ends.

        Args:
            cells: of all columns.

        Raises:
            ValueError: one is too long or holds what cannot be kept; the message names its column.
        """
        found = {name: cells[place].strip() for name, place in self.places.items()}
        for name, cell in found.items():
            demand_storable(cell, f"the cell of {quoted(name)}")
            if len(cell) > MAX_CELL_CHARACTERS:
                raise ValueError(
                    f"the cell of {quoted(name)} has {len(cell):,} characters; at most {MAX_CELL_CHARACTERS:,} are "
                    "kept. Shorten it, or remove the column"
                )
        return found
