"""What chains say: how often they accept, and the numbers that can be followed along those of an exported campaign.

Measured by the sampler from states.csv, where it holds the object: texts, molecules, and pictures made of their codes.
Other pictures are measured by the application, which has them: its properties.csv holds what it found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sampler.objects.properties import measure_of
from sampler.record.differences import RecordError
from sampler.record.record import Record
from sampler.record.tables import SCORERS, Row

NO_PIXELS = "the export has no properties.csv, with what was measured of its objects"
_IDS = {
    "state_index": "numbers of states, which are arbitrary",
    "object_index": "numbers of states, which are arbitrary",
    "chain_index": "numbers of chains",
    "step": "numbers of steps",
    "phase": "what the samples are to an analysis",
    "neighbours": "numbers of states, which are arbitrary",
    "code": "what a state is made of again",
    "content": "the object itself, which is no measure of it",
}
# A property that happens to be a run of whole numbers, each once, has fewer objects than this.
_FEWEST_IDS = 10
_SHOWN_DRAWS = 3

Draws = dict[str, list[float]]
"""A number after each step, by chain."""


@dataclass(frozen=True)
class Acceptance:
    """How many of the proposals that differed from the current state were accepted, over decided steps of all phases.

    A proposal equal to the current state is accepted whatever anybody answers, so it is none of them.
    """

    accepted: int
    differed: int

    @property
    def share(self) -> float | None:
        """None where no proposal differed."""
        return self.accepted / self.differed if self.differed else None

    @property
    def percent(self) -> str:
        """The share as every page and report writes it."""
        return "–" if self.share is None else f"{self.share:.1%}".replace("%", " %")

    def __str__(self) -> str:
        return f"{self.percent} ({self.accepted:,} of {self.differed:,})"


@dataclass(frozen=True)
class Column:
    """One property along the chains, or the reason why it cannot be followed."""

    name: str
    draws: Draws
    problem: str = ""


@dataclass(frozen=True)
class Followed:
    """Everything numeric that a record holds or the sampler measures, by name, and what is missing."""

    columns: tuple[Column, ...]
    missing: str = ""


def followed(record: Record, name: str | None = None) -> Followed:
    """Return the properties along the chains: the one of this name, or all.

    Measures come first, then scores, then the columns of properties.csv, states.csv and samples.csv. Of two with one
    name properties.csv has the last word; the weight in p0 is called p0_weight where the objects have a weight
    themselves.

    Raises:
        RecordError: the property asked for is not there, holds ids, one value, or cells that are no numbers; or a table
            lacks a state.
        KeyError: a table lacks a column.
        ValueError: an object cannot be measured.
    """
    samples = [row for row in record["samples"] if row["step"] != "0"]
    visited = list(dict.fromkeys(row["state_index"] for row in samples))
    tables, missing = _tables(record, visited, samples)
    if name is None:
        found = (_column(each, cells, samples) for each, cells in tables.items() if _is_numeric(cells))
        return Followed(tuple(found), missing)
    if name in _IDS:
        raise RecordError(f"{name} cannot be followed: it holds {_IDS[name]}. Follow a property of the objects")
    if name not in tables:
        names = ", ".join(each for each, cells in tables.items() if _is_numeric(cells)) or "none"
        reason = f" {missing[0].upper()}{missing[1:]}" if missing else ""
        raise RecordError(f"there is no column of numbers {name!r}; there are {names}.{reason}")
    column = _column(name, tables[name], samples)
    if column.problem:
        raise RecordError(f"{name} cannot be followed: {column.problem}")
    return Followed((column,))


@dataclass(frozen=True)
class _Cells:
    """A column's cells, by state or, `of_samples`, one for each row of samples.csv after the start."""

    cells: Mapping[str, str] | Sequence[str]
    whole: Sequence[str]
    """The column as it stands in its table; empty for what was measured."""


def _tables(record: Record, visited: list[str], samples: list[Row]) -> tuple[dict[str, _Cells], str]:
    if not samples:
        why = (
            "no sample is to be analysed yet"
            if any(row["verdict"] for row in record["steps"])
            else "no step is decided yet"
        )
        return {}, f"{why}, so there is nothing to follow"
    measure = measure_of(record.config["space"])
    rows = {row["state_index"]: row for row in record["states"]}
    tables: dict[str, _Cells] = {}
    if measure is not None:
        measured = {state: measure(rows[state]["content"], rows[state].get("code", "")) for state in visited}
        for name in measured[visited[0]]:
            tables[name] = _Cells({state: repr(measured[state][name]) for state in visited}, ())
    for name, cells in _scores(record, visited).items():
        # What is measured anyway is the same.
        tables.setdefault(name, cells)
    for name, cells in _of_states(record["properties"], visited, "properties.csv", record["states"]):
        tables[name] = cells
    for name, cells in _of_states(record["states"], visited, "states.csv"):
        tables["p0_weight" if name == "weight" and name in tables else name] = cells
    for name in _own(record["samples"]):
        column = [row[name] for row in samples]
        tables[name] = _Cells(column, column)
    return tables, "" if measure or record["properties"] or record["scores"] else NO_PIXELS


def _scores(record: Record, visited: list[str]) -> dict[str, _Cells]:
    """Return the scores of the states that were visited, by scorer; an empty cell where there is none."""
    found: dict[str, dict[str, str]] = {scorer["name"]: {} for scorer in record.documents.get(SCORERS, ())}
    for row in record["scores"]:
        found.setdefault(row["scorer"], {})[row["state_index"]] = row["score"]
    return {name: _Cells({state: cells.get(state, "") for state in visited}, ()) for name, cells in found.items()}


def _of_states(table: list[Row], visited: list[str], file: str, states: Sequence[Row] = ()) -> list[tuple[str, _Cells]]:
    rows = {row["state_index"]: row for row in table}
    for state in states:
        row = rows.get(state["state_index"])
        if row is not None and "content" in row and row["content"] != state["content"]:
            raise RecordError(
                f"{file} is of another campaign: of state {state['state_index']} it says {row['content'][:60]!r}"
            )
    if table and (lost := [state for state in visited if state not in rows]):
        raise RecordError(f"{file} has no row for state {lost[0]}; download it again, after the export")
    return [
        (name, _Cells({state: rows[state][name] for state in visited}, [row[name] for row in table]))
        for name in _own(table)
    ]


def _own(table: Sequence[Row]) -> list[str]:
    return [name for name in (table[0] if table else ()) if name not in _IDS]


def _column(name: str, found: _Cells, samples: list[Row]) -> Column:
    if problem := _ids(name, found):
        return Column(name, {}, problem)
    cells = found.cells
    drawn = cells if isinstance(cells, Sequence) else [cells[row["state_index"]] for row in samples]
    numbers = [_number(cell) for cell in drawn]
    if wrong := [place for place, number in enumerate(numbers) if number is None]:
        first = ", ".join(
            f"{drawn[place][:60]!r} (chain {samples[place]['chain_index']}, step {samples[place]['step']})"
            for place in wrong[:_SHOWN_DRAWS]
        )
        return Column(name, {}, f"{len(wrong):,} of {len(drawn):,} draws have no number there, the first ones {first}")
    if len(set(numbers)) == 1:
        return Column(name, {}, f"it has one value; every draw is {numbers[0]:g}")
    draws: Draws = {}
    for row, number in zip(samples, numbers, strict=True):
        draws.setdefault(row["chain_index"], []).append(number or 0.0)
    return Column(name, draws)


def _ids(name: str, found: _Cells) -> str:
    """Return why a column is one of ids: by its name, or as every row has its own whole number and all are a run."""
    whole, cells = found.whole, found.cells
    copied = isinstance(cells, Mapping) and len(cells) > 1 and all(cell == state for state, cell in cells.items())
    if whole and (copied or name.lower() == "id" or name.lower().endswith("_id")):
        return "it holds ids, which are arbitrary"
    numbers = [_number(cell) for cell in whole]
    known = sorted({number for number in numbers if number is not None})
    if len(known) < max(_FEWEST_IDS, len(whole)) or known[-1] - known[0] != len(known) - 1:
        return ""
    return f"it numbers the rows, {known[0]:g} to {known[-1]:g}, so it holds ids" if known[0].is_integer() else ""


def _is_numeric(found: _Cells) -> bool:
    """Tell whether a column has numbers to follow, be it only in some of its cells."""
    cells = found.cells if isinstance(found.cells, Sequence) else found.cells.values()
    return any(_number(cell) is not None for cell in cells)


def _number(cell: str) -> float | None:
    try:
        number = float(cell.removeprefix("'"))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
