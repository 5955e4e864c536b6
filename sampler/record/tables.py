"""What a table of the record is: its columns, how its rows are written and read, and the names of uploaded columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from sampler.record.cells import Cell, escaped, measure, unescaped, value_of

META = "meta_"
"""In states.csv, what the columns begin with that are an uploaded list's own."""


def meta_names(names: Iterable[str]) -> list[str]:
    """Return what the further columns of an uploaded list are called in states.csv, in their order.

    Whatever is no letter, digit or underscore becomes an underscore, so that programs can use the names as they are;
    of two that are then the same, in whichever case, the later one gets a number.
    """
    found: list[str] = []
    taken: set[str] = set()
    for name in names:
        safe = META + (re.sub(r"\W+", "_", name).strip("_") or "column")
        unique, number = safe, 1
        while unique.casefold() in taken:
            number += 1
            unique = f"{safe}_{number}"
        taken.add(unique.casefold())
        found.append(unique)
    return found


@dataclass(frozen=True)
class Column:
    """A column: its name in the header, and how it writes a value."""

    name: str
    cell: Callable[[Any], Cell]


@dataclass(frozen=True)
class Table:
    """A CSV file of the record, its columns in order."""

    name: str
    columns: tuple[Column, ...]

    @property
    def file(self) -> str:
        """The file's name."""
        return f"{self.name}.csv"

    @property
    def header(self) -> list[Cell]:
        """The first row."""
        return [column.name for column in self.columns]

    def row(self, **values: Any) -> list[Cell]:
        """Return the cells for a value of each column, in the columns' order.

        Raises:
            KeyError: a column has no value.
            TypeError: a value is of no column.
        """
        ordered = self.ordered(**values)
        return [column.cell(value) for column, value in zip(self.columns, ordered, strict=True)]

    def ordered(self, **values: Any) -> list[Any]:
        """Return what is given for each column as it is, in the columns' order: cells, or what will give the cells.

        Raises:
            KeyError: a column has no value.
            TypeError: a value is of no column.
        """
        if len(values) > len(self.columns):
            raise TypeError(f"{self.file} has no column {(values.keys() - set(self.header)).pop()}")
        return [values[column.name] for column in self.columns]

    def values(self, row: Iterable[Cell | None]) -> dict[str, Any]:
        """Return what a row says, by the columns' names, as JSON can say it; see `cells.value_of`."""
        return {column.name: value_of(column.cell, cell) for column, cell in zip(self.columns, row, strict=True)}

    def unescape(self, row: dict[str, str]) -> None:
        """Take the apostrophes from the texts of a row that was read, in place; columns that it lacks stay missing.

        Which `meta_*` columns states.csv has depends on the list, so that those of a row are found by their names.
        """
        for column in self.columns:
            if column.cell is escaped and column.name in row:
                row[column.name] = unescaped(row[column.name])
        if self.name == "states":
            row |= {name: unescaped(cell) for name, cell in row.items() if name.startswith(META)}

    def with_measures(self, names: Iterable[str]) -> Table:
        """Return the table with a further column for each property that was measured."""
        return replace(self, columns=(*self.columns, *(Column(name, measure) for name in names)))
