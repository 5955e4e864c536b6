"""The further columns of a list in a record: columns.csv has a cell for each object and column, shown ones included.

No verdict depends on what stands in them but by the votes: people and models have seen them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sampler.config import ChainConfig
from sampler.record import schema
from sampler.record.check_chain import Difference, Row
from sampler.record.schema import META, meta_names

_NO_STEP = 0


@dataclass(frozen=True)
class ColumnDifference(Difference):
    """A difference that is about an object's cell and no step; `chain` is the number of the state, -1 for all."""

    file: str = schema.COLUMNS.file

    def __str__(self) -> str:
        where = "columns.csv" if self.chain < 0 else f"state {self.chain} in columns.csv"
        return f"{where}: {self.what}: the export has {self.recorded}, expected {self.recomputed}"


def compare_columns(config: ChainConfig, states: Iterable[Row], rows: Iterable[Row] | None) -> Iterator[Difference]:
    """Yield where columns.csv cannot be right.

    Args:
        rows: of columns.csv, if the record has one.

    Raises:
        KeyError: a row lacks a column.
        ValueError: a number is none.
    """
    # Of texts that are written, what is shown with them stands in the config and among the scores.
    shown = set() if config.generates else {each.column for each in config.context}
    states, rows = list(states), list(rows or ())
    yield from _compare_metas(states, rows)
    cells: dict[int, set[str]] = {int(row["state"]): set() for row in states}
    columns: set[str] = set()
    for row in rows:
        state, name, _ = int(row["state"]), row["column"], row["value"]
        columns.add(name)
        if state not in cells:
            yield _difference(state, f"the cell of “{name}”", "one", "none: states.csv has no such state", row)
        elif name in cells[state]:
            yield _difference(state, f"a second cell of “{name}”", "one", "none", row)
        else:
            cells[state].add(name)
    for name in sorted(shown - columns):
        yield _difference(-1, f"the column “{name}”", "none", "one: campaign.json shows it with each pair")
    for state, found in cells.items():
        for name in sorted(columns - found):
            yield _difference(state, f"the cell of “{name}”", "none", "one: other states have it")
    if columns and config.generates:
        yield _difference(-1, "the file", "one", "none: the objects are from no list")


def _compare_metas(states: list[Row], rows: list[Row]) -> Iterator[Difference]:
    """Yield where states.csv has another cell of a column than columns.csv; older records have none of these cells."""
    if not any(name.startswith(META) for name in (states[0] if states else ())):
        return
    names = list(dict.fromkeys(row["column"] for row in rows))
    metas = dict(zip(names, meta_names(names), strict=True))
    if extra := [name for name in states[0] if name.startswith(META) and name not in metas.values()]:
        yield _difference(-1, f"the column “{extra[0]}” of states.csv", "one", "none: no column here is called so")
    held = {row["state"]: row for row in states}
    for row in rows:
        # A cell of no state is told of for that.
        recorded = held.get(row["state"], {}).get(metas[row["column"]], row["value"])
        if recorded != row["value"]:
            what = f"“{metas[row['column']]}” in states.csv"
            yield _difference(int(row["state"]), what, f"“{recorded[:60]}”", f"“{row['value'][:60]}”", row)


def _difference(state: int, what: str, recorded: str, expected: str, row: Row | None = None) -> Difference:
    return ColumnDifference(state, _NO_STEP, what, recorded, expected, row=row)
