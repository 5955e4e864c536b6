"""Read a campaign's export: JSON files and CSV tables in one ZIP."""

from __future__ import annotations

import csv
import io
import json
import math
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from sampler.record import schema
from sampler.record.archives import Allowance, TooLargeError, pieces_of
from sampler.record.replay import RecordError

Row = dict[str, str]
_NOT_ALWAYS = (
    schema.CHAINS,
    schema.SUSPENDED,
    schema.CHECKS,
    schema.COLUMNS,
    schema.SCORES,
    schema.EXTENSIONS,
)
# Documents that not every record has: by the name of their field, their file and what this holds.
_DOCUMENTS: dict[str, tuple[str, type]] = {
    "judges": (schema.JUDGES, list),
    "tuning": (schema.TUNING, dict),
    "protocol": (schema.PROTOCOL, dict),
    "scorers": (schema.SCORERS, list),
}
_KINDS: dict[type, str] = {dict: "an object", list: "a list"}
# What a row, a cell beside its text, and a byte of JSON take in memory at most, in bytes; and the largest document.
_ROW, _CELL, _VALUE = 300, 100, 24
_LARGEST_DOCUMENT = 2**28


@dataclass(frozen=True)
class Record:
    """What an export holds; the rows as they stand there, texts without their protecting apostrophe."""

    config: dict[str, Any]
    states: list[Row]
    steps: list[Row]
    votes: list[Row]
    samples: list[Row]
    ratings: list[Row] = field(default_factory=list)
    judges: list[dict[str, Any]] | None = None
    properties: list[Row] = field(default_factory=list)
    """What the application measured of the objects; no part of the export, see `read_properties`."""
    tuning: dict[str, Any] | None = None
    """What a warm-up has chosen; None where there was none, or while it goes on."""
    chains: list[Row] | None = None
    """When and why each chain opened; None where all did at the start."""
    suspended: list[Row] | None = None
    """Steps that nobody was asked about for a while, or for ever, and why; None where there were none."""
    protocol: dict[str, Any] | None = None
    """What shaped who voted and on what, if the record says it."""
    checks: list[Row] | None = None
    """The trials between people's pairs that are no votes, if there were some."""
    columns: list[Row] | None = None
    """The further columns of the list that the objects are from; None where it has no others."""
    scores: list[Row] | None = None
    """The numbers that scorers gave objects; None where there are no scorers."""
    scorers: list[dict[str, Any]] | None = None
    """What each of these scorers said of itself when the campaign started."""
    extensions: list[Row] | None = None
    """What a researcher added to the steps after the start; None where nothing was added."""


def read_record(path: Path) -> Record:
    """Return the record that the application exported to this ZIP.

    Raises:
        RecordError: the file is not there, is no ZIP, lacks a table, or a table is malformed.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return record_in(archive)
    except RecordError as error:
        raise RecordError(f"{path} {error}", error.file) from error
    except (OSError, zipfile.BadZipFile, zlib.error) as error:
        raise RecordError(f"{path} cannot be read: {error}") from error


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
    config = _document(archive, schema.CONFIG, dict, allowance)
    # Exports were once written without ratings, and without judges.json.
    held = [table for table in schema.TABLES if table is not schema.RATINGS or table.file in names]
    held += [table for table in _NOT_ALWAYS if table.file in names]
    tables: dict[str, Any] = {table.name: _table(archive, table, allowance) for table in held}
    documents: dict[str, Any] = {
        name: _document(archive, file, kind, allowance) for name, (file, kind) in _DOCUMENTS.items() if file in names
    }
    scorers = documents.get("scorers", ())
    if not all(isinstance(scorer, dict) and isinstance(scorer.get("name"), str) for scorer in scorers):
        raise RecordError(f"cannot be read: {schema.SCORERS} must hold objects, each with a name", schema.SCORERS)
    return Record(config, **tables, **documents)


def read_samples(path: Path) -> list[Row]:
    """Return the rows of an export's samples alone: codes of states, which may be large, are not read.

    Raises:
        RecordError: the file is not there, is no ZIP, or has no such table.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _table(archive, schema.SAMPLES, Allowance(math.inf))
    except RecordError as error:
        raise RecordError(f"{path} {error}", error.file) from error
    except (OSError, zipfile.BadZipFile, zlib.error) as error:
        raise RecordError(f"{path} cannot be read: {error}") from error


def read_properties(path: Path) -> list[Row]:
    """Return the rows of the properties.csv that the application wrote beside an export.

    Raises:
        RecordError: the file is not there, or is no table with a column `state` and another.
    """
    try:
        with path.open("rb") as file:
            rows = _rows(file, schema.PROPERTIES, path.name, Allowance(math.inf))
    except (OSError, ValueError, csv.Error) as error:
        raise RecordError(f"{path} cannot be read: {error}") from error
    if not rows or "state" not in rows[0]:
        raise RecordError(f"{path} is no properties.csv: it has no row, or no column 'state'")
    if len({row["state"] for row in rows}) < len(rows):
        raise RecordError(f"{path} cannot be read: it has two rows for one state")
    return rows


def _table(archive: zipfile.ZipFile, table: schema.Table, allowance: Allowance) -> list[Row]:
    try:
        with archive.open(table.file) as entry:
            return _rows(entry, table, table.file, allowance)
    except KeyError as error:
        raise RecordError(f"is not a complete export: {error.args[0]}", table.file) from error
    except (TooLargeError, RecordError):
        raise
    except (ValueError, csv.Error) as error:
        raise RecordError(f"cannot be read: {error}", table.file) from error


def _rows(file: IO[bytes], table: schema.Table, name: str, allowance: Allowance) -> list[Row]:
    # A spreadsheet that saves a CSV again puts a byte order mark in front.
    rows: list[Row] = []
    with io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        for number, row in enumerate(csv.DictReader(text), start=2):
            if None in row or None in row.values():
                raise ValueError(f"row {number} of {name} does not have as many cells as the header")
            allowance.take(_ROW + sum(_CELL + len(cell) for cell in row.values()), name)
            table.unescape(row)
            rows.append(row)
    return rows


def _document(archive: zipfile.ZipFile, name: str, kind: type, allowance: Allowance) -> Any:
    try:
        content = b"".join(pieces_of(archive, name, Allowance(min(allowance.left, _LARGEST_DOCUMENT))))
        allowance.take(_VALUE * len(content), name)
        found = json.loads(content)
    except KeyError as error:
        raise RecordError(f"is not a complete export: {error.args[0]}", name) from error
    except TooLargeError:
        raise
    except (ValueError, RecursionError) as error:
        raise RecordError(f"cannot be read: {error}", name) from error
    if not isinstance(found, kind):
        raise RecordError(f"cannot be read: {name} must hold {_KINDS[kind]}", name)
    return found
