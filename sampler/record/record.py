"""Read a campaign's export: JSON files and CSV tables in one ZIP; and say where it is not what it should be."""

from __future__ import annotations

import csv
import io
import json
import math
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from sampler.archives import BROKEN_ARCHIVE, Allowance, TooLargeError, pieces_of
from sampler.record import tables
from sampler.record.tables import Row as Row
from sampler.record.tables import Table

StepKey = tuple[int, int]
"""The chain and the step."""


def step_key(row: Row) -> StepKey:
    """Return the step that a row is about."""
    return int(row["chain_index"]), int(row["step"])


def vote_name(row: Row) -> str:
    """Return what a vote is called in a difference."""
    return f"vote {row['number']}" if row["number"] else "a late vote"


class RecordError(ValueError):
    """A record that cannot be read: a file, a column or a number is missing or malformed.

    Args:
        file, row: where, if that is known.
    """

    def __init__(self, message: str, file: str = "", row: Row | None = None) -> None:
        super().__init__(message)
        self.file, self.row = file, row


@contextmanager
def reading(file: str, row: Row | None = None) -> Iterator[None]:
    """Let errors of what is done with a file, or with one of its rows, say which one it is."""
    try:
        yield
    except RecordError:
        raise
    except KeyError as error:
        raise RecordError(f"The record cannot be read: {file} lacks {error}", file, row) from error
    except (TypeError, ValueError) as error:
        raise RecordError(f"The record cannot be read: {error}", file, row) from error


@dataclass(frozen=True)
class Difference:
    """One point where the record does not say what the recomputation gives.

    Args:
        where: of the record, in words.
        what: is recorded there.
        row: which one of the file, if the difference is about one that is there.
        step: that it is about, if it is about one; without a row, that of the step is meant.
    """

    where: str
    what: str
    recorded: str
    recomputed: str
    file: str
    row: Row | None = field(default=None, compare=False, repr=False)
    step: StepKey | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.what}: the export has {self.recorded}, expected {self.recomputed}"


def of_step(
    key: StepKey, what: str, recorded: object, recomputed: object, file: str = tables.STEPS.file, row: Row | None = None
) -> Difference:
    """Return a difference that is about a step."""
    where = f"chain {key[0]}, step {key[1]}"
    return Difference(where, what, str(recorded), str(recomputed), file, row, key)


def of_file(file: str, what: str, recorded: object, recomputed: object, row: Row | None = None) -> Difference:
    """Return a difference that is about a file, or about a row of it."""
    return Difference(file, what, str(recorded), str(recomputed), file, row)


def quoted(text: object) -> str:
    """Return the beginning of a text between quotation marks."""
    return f"“{str(text)[:60]}”"


# Documents that not every record has, and what each holds.
_DOCUMENTS: dict[str, type] = {tables.JUDGES: list, tables.TUNING: dict, tables.SCORERS: list}
_KINDS: dict[type, str] = {dict: "an object", list: "a list"}
# What a row, a cell beside its text, and a byte of JSON take in memory at most, in bytes; and the largest document.
_ROW, _CELL, _VALUE = 300, 100, 24
_LARGEST_DOCUMENT = 2**28


@dataclass
class Record:
    """What an export holds: the rows of each of its tables by the table's name, and its documents.

    Args:
        documents: what its JSON files hold, by the file's name; campaign.json is always there.
        tables: the rows of each table; one that the record does not have is empty.
    """

    documents: dict[str, Any]
    tables: dict[str, list[Row]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> list[Row]:
        return self.tables.setdefault(name, [])

    def but(self, **changed: list[Row]) -> Record:
        """Return the record with other rows of some tables."""
        return Record(self.documents, self.tables | changed)

    @property
    def config(self) -> dict[str, Any]:
        """What campaign.json holds."""
        found: dict[str, Any] = self.documents[tables.CONFIG]
        return found

    @property
    def study(self) -> dict[str, Any]:
        """What campaign.json says of who votes and on what; empty of a record that does not.

        Raises:
            RecordError: it is no object.
        """
        found = self.config.get("study", {})
        if not isinstance(found, dict):
            raise RecordError(f"The record cannot be read: study in {tables.CONFIG} must be an object", tables.CONFIG)
        return found

    def of_file(self, file: str) -> list[Row]:
        """Return the rows of a table by the name of its file; of another file none."""
        return self.tables.get(file.removesuffix(".csv"), [])


class Finding(NamedTuple):
    """One place where a record is not what it should be.

    Args:
        file: of the ZIP.
        row: in it, as a spreadsheet counts: the header is row 1; None where no single row is meant.
    """

    file: str
    row: int | None
    message: str

    def __str__(self) -> str:
        where = self.file if self.row is None else f"{self.file}, row {self.row}"
        return f"{where}: {self.message}"


def malformed_in(record: Record) -> Iterator[Finding]:
    """Yield every cell of a record's tables that is not what its column holds, and every column that is missing."""
    for table in tables.CHECKED:
        rows = record[table.name]
        if rows and len(rows[0]) == 1:
            yield Finding(table.file, None, "the header has one cell: save the table with commas between its cells")
            continue
        missing = [column.name for column in table.columns if rows and column.name not in rows[0]]
        yield from (Finding(table.file, None, f"there is no column “{name}”") for name in missing)
        columns = [column for column in table.columns if column.name not in missing]
        for number, row in enumerate(rows, start=2):
            if row.keys() != rows[0].keys() or None in row.values():
                yield Finding(table.file, number, "it does not have as many cells as the header")
                continue
            problems = (column.problem(row[column.name]) for column in columns)
            yield from (Finding(table.file, number, problem) for problem in problems if problem)
            if row.get("verdict") and not row.get("uniform"):
                yield Finding(table.file, number, "“uniform” is empty, although the step has a verdict")


def read_record(path: Path) -> Record:
    """Return the record that the application exported to this ZIP.

    Raises:
        RecordError: the file is not there, is no ZIP, lacks a table, or a table is malformed.
    """
    with _opened(path) as archive:
        return record_in(archive)


def read_samples(path: Path) -> list[Row]:
    """Return the rows of an export's samples alone: codes of states, which may be large, are not read.

    Raises:
        RecordError: the file is not there, is no ZIP, or has no such table.
    """
    with _opened(path) as archive:
        return _table(archive, tables.SAMPLES, Allowance(math.inf))


def record_in(archive: zipfile.ZipFile, allowance: Allowance | None = None) -> Record:
    """Return the record that an archive holds.

    Args:
        allowance: how much memory its tables and documents may take; None for no bound.

    Raises:
        RecordError: it lacks a table, or a table is malformed; the message lacks the name of the archive.
        TooLargeError: the allowance does not cover it.
        BROKEN_ARCHIVE: it cannot be unpacked.
    """
    names = set(archive.namelist())
    allowance = allowance or Allowance(math.inf)
    held = {tables.CONFIG: dict} | {file: kind for file, kind in _DOCUMENTS.items() if file in names}
    documents = {file: _document(archive, file, kind, allowance) for file, kind in held.items()}
    scorers = documents.get(tables.SCORERS, ())
    if not all(isinstance(scorer, dict) and isinstance(scorer.get("name"), str) for scorer in scorers):
        raise RecordError(f"cannot be read: {tables.SCORERS} must hold objects, each with a name", tables.SCORERS)
    read = [table for table in tables.CHECKED if table is not tables.CHECKS or table.file in names]
    read += [tables.PROPERTIES] if tables.PROPERTIES.file in names else []
    return Record(documents, {table.name: _table(archive, table, allowance) for table in read})


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except RecordError as error:
        raise RecordError(f"{path} {error}", error.file) from error
    except BROKEN_ARCHIVE as error:
        raise RecordError(f"{path} cannot be read: {error}") from error


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Let errors of what is done with a file of the archive say which one it is."""
    try:
        yield
    except KeyError as error:
        raise RecordError(f"is not a complete export: {error.args[0]}", name) from error
    except (TooLargeError, RecordError):
        raise
    except UnicodeDecodeError as error:
        raise RecordError(f"cannot be read: {name} is not in UTF-8; save it so", name) from error
    except (ValueError, csv.Error, RecursionError) as error:
        raise RecordError(f"cannot be read: {name}: {error}", name) from error


def _table(archive: zipfile.ZipFile, table: Table, allowance: Allowance) -> list[Row]:
    name = table.file
    rows: list[Row] = []
    # A spreadsheet that saves a CSV again puts a byte order mark in front.
    with _reading(name), io.TextIOWrapper(archive.open(name), encoding="utf-8-sig", newline="") as text:
        reader = csv.DictReader(text)
        if twice := next((column for column, count in Counter(reader.fieldnames or ()).items() if count > 1), None):
            raise ValueError(f"two columns are called {quoted(twice)}")
        for number, row in enumerate(reader, start=2):
            if None in row or None in row.values():
                raise ValueError(f"row {number} does not have as many cells as the header")
            allowance.take(_ROW + sum(_CELL + len(cell) for cell in row.values()), name)
            table.unescape(row)
            rows.append(row)
    return rows


def _document(archive: zipfile.ZipFile, name: str, kind: type, allowance: Allowance) -> Any:
    with _reading(name):
        content = b"".join(pieces_of(archive, name, Allowance(min(allowance.left, _LARGEST_DOCUMENT))))
        allowance.take(_VALUE * len(content), name)
        found = json.loads(content)
    if not isinstance(found, kind):
        raise RecordError(f"cannot be read: {name} must hold {_KINDS[kind]}", name)
    return found
