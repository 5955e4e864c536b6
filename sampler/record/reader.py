"""Read a campaign's export: recipe.json, judges.json and five CSV tables in one ZIP."""

from __future__ import annotations

import csv
import io
import json
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from sampler.record.replay import RecordError

Row = dict[str, str]

_TABLES = ("states", "steps", "votes", "samples")
_RATINGS = "ratings"
_JUDGES = "judges.json"
# Columns with text of unknown origin; the export puts an apostrophe before what a spreadsheet might run.
_TEXTS = ("content", "code", "question", "endpoint")


@dataclass(frozen=True)
class Record:
    """What an export holds; the rows as they stand there, texts without their protecting apostrophe."""

    recipe: dict[str, Any]
    states: list[Row]
    steps: list[Row]
    votes: list[Row]
    samples: list[Row]
    ratings: list[Row] = field(default_factory=list)
    judges: list[dict[str, Any]] | None = None
    properties: list[Row] = field(default_factory=list)
    """What the application measured of the objects; no part of the export, see `read_properties`."""


def read_record(path: Path) -> Record:
    """Return the record that the application exported to this ZIP.

    Raises:
        RecordError: the file is not there, is no ZIP, lacks a table, or a table is malformed.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            recipe = json.loads(archive.read("recipe.json"))
            tables = {name: _table(archive, f"{name}.csv") for name in _TABLES}
            # Exports were once written without it.
            if f"{_RATINGS}.csv" in archive.namelist():
                tables[_RATINGS] = _table(archive, f"{_RATINGS}.csv")
            judges = json.loads(archive.read(_JUDGES)) if _JUDGES in archive.namelist() else None
    except KeyError as error:
        raise RecordError(f"{path} is not a complete export: {error.args[0]}") from error
    except (OSError, zipfile.BadZipFile, zlib.error, ValueError, csv.Error) as error:
        raise RecordError(f"{path} cannot be read: {error}") from error
    if not isinstance(recipe, dict):
        raise RecordError(f"{path} cannot be read: recipe.json must hold an object")
    if judges is not None and not isinstance(judges, list):
        raise RecordError(f"{path} cannot be read: {_JUDGES} must hold a list")
    return Record(recipe, **tables, judges=judges)


def read_properties(path: Path) -> list[Row]:
    """Return the rows of the properties.csv that the application wrote beside an export.

    Raises:
        RecordError: the file is not there, or is no table with a column `state` and another.
    """
    try:
        with path.open("rb") as file:
            rows = _rows(file, path.name)
    except (OSError, ValueError, csv.Error) as error:
        raise RecordError(f"{path} cannot be read: {error}") from error
    if not rows or "state" not in rows[0]:
        raise RecordError(f"{path} is no properties.csv: it has no row, or no column 'state'")
    if len({row["state"] for row in rows}) < len(rows):
        raise RecordError(f"{path} cannot be read: it has two rows for one state")
    return rows


def _table(archive: zipfile.ZipFile, name: str) -> list[Row]:
    with archive.open(name) as entry:
        return _rows(entry, name)


def _rows(file: IO[bytes], name: str) -> list[Row]:
    # A spreadsheet that saves a CSV again puts a byte order mark in front.
    with io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        rows = list(csv.DictReader(text))
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise ValueError(f"row {number} of {name} does not have as many cells as the header")
        for column in _TEXTS:
            if column in row:
                row[column] = row[column].removeprefix("'")
    return rows
