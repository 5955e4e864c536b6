"""Whether each cell of a record is what its column holds: what is malformed is told with its file and row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from sampler.record import cells, schema
from sampler.record.reader import Record, Row

# What records of simulations lack; and columns that only some records have.
_STATES = {"first_state", "second_state", "chosen_state"}
_NOT_ALWAYS = {"lease", *_STATES, "hidden_ms", "layout", "translated", "identity", "asks"}
_WHOLE, _NUMBER = r"-?\d{1,18}", r"-?(\d+(\.\d*)?(e[+-]?\d+)?|inf)"
_MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d|Z)"
_FORMS: dict[Callable[..., Any], tuple[re.Pattern[str], str]] = {
    cells.whole: (re.compile(f"({_WHOLE})?"), "a whole number"),
    cells.wholes: (re.compile(rf"({_WHOLE}( {_WHOLE})*)?"), "whole numbers, separated by spaces"),
    cells.number: (re.compile(f"({_NUMBER})?"), "a number"),
    cells.numbers: (re.compile(rf"({_NUMBER}( {_NUMBER})*)?"), "numbers, separated by spaces"),
    cells.yes_or_no: (re.compile("[01]"), "1 or 0"),
    cells.if_known: (re.compile("[01]?"), "1, 0 or empty"),
    cells.moment: (re.compile(f"({_MOMENT})?"), "a moment as ISO 8601 writes it"),
}
_TABLES = (
    *schema.TABLES,
    schema.CHAINS,
    schema.SUSPENDED,
    schema.EXTENSIONS,
    schema.CHECKS,
    schema.COLUMNS,
    schema.SCORES,
)
_WIDEST = {schema.CHECKS.file: schema.CHECKS_WITH_KINDS.columns}
"""All columns that a table may have, where only some records have them all."""
_FILLED = {
    schema.VOTES.file: ("chain", "step", "judge", "proposal_side", "chosen_side"),
    schema.STEPS.file: ("chain", "step", "current", "proposal", "log_r0"),
    schema.STATES.file: ("state",),
    schema.SAMPLES.file: ("chain", "step", "state"),
    schema.CHECKS.file: ("annotator", "after_votes"),
    schema.COLUMNS.file: ("state",),
}
"""Columns whose cells are never empty."""
_SHOWN = 60


class Malformed(NamedTuple):
    """Something in a table that is not what it should be.

    Args:
        file: which one.
        row: in it, as a spreadsheet counts: the header is row 1; None where it is about all of them.
    """

    file: str
    row: int | None
    message: str


def malformed_in(record: Record) -> Iterator[Malformed]:
    """Yield every cell of a record's tables that is not what its column holds, and every column that is missing."""
    for table in _TABLES:
        rows: list[Row] = getattr(record, table.name) or []
        if rows:
            yield from _missing(table, rows[0])
        columns = _WIDEST.get(table.file, table.columns)
        kept = [column for column in columns if rows and column.name in rows[0]]
        for number, row in enumerate(rows, start=2):
            yield from _cells(table, kept, number, row)


def _missing(table: schema.Table, row: Row) -> Iterator[Malformed]:
    for column in table.columns:
        if column.name not in row and column.name not in _NOT_ALWAYS:
            yield Malformed(table.file, None, f"there is no column “{column.name}”")


def _cells(table: schema.Table, columns: list[schema.Column], number: int, row: Row) -> Iterator[Malformed]:
    filled = _FILLED.get(table.file, ())
    for column in columns:
        cell, form = row[column.name], _FORMS.get(column.cell)
        if form is not None and not form[0].fullmatch(cell):
            yield Malformed(table.file, number, f"“{column.name}” must be {form[1]}, not “{cell[:_SHOWN]}”")
        elif not cell and column.name in filled:
            yield Malformed(table.file, number, f"“{column.name}” is empty")
    if table is schema.STEPS and row.get("verdict") and not row.get("uniform"):
        yield Malformed(table.file, number, "“uniform” is empty, although the step has a verdict")
