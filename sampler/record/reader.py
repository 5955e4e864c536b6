"""Read a campaign's export: JSON files and CSV tables in one ZIP."""

from __future__ import annotations

import csv
import io
import json
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from sampler.record import schema
from sampler.record.replay import RecordError

Row = dict[str, str]
_NOT_ALWAYS = (schema.CHAINS, schema.PARKED, schema.SEATS, schema.CHECKS)


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
    tuning: dict[str, Any] | None = None
    """What a warm-up has chosen; None where there was none, or while it goes on."""
    surrogates: dict[str, Any] | None = None
    """The scores that a warm-up has fitted, if it has."""
    chains: list[Row] | None = None
    """When and why each chain opened; None where all did at the start."""
    parked: list[Row] | None = None
    """Steps that nobody was asked about for a while, or for ever, and why; None where there were none."""
    seats: list[Row] | None = None
    """The people of a panel, by the numbers of their seats; None where there is no panel."""
    protocol: dict[str, Any] | None = None
    """What shaped who voted and on what, if the record says it."""
    checks: list[Row] | None = None
    """The trials between people's pairs that are no votes, if there were some."""


def read_record(path: Path) -> Record:
    """Return the record that the application exported to this ZIP.

    Raises:
        RecordError: the file is not there, is no ZIP, lacks a table, or a table is malformed.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            recipe = json.loads(archive.read(schema.RECIPE))
            names = archive.namelist()
            # Exports were once written without ratings, and without judges.json.
            held = [table for table in schema.TABLES if table is not schema.RATINGS or table.file in names]
            tables = {table.name: _table(archive, table) for table in held}
            chains, parked, seats, checks = (
                _table(archive, table) if table.file in names else None for table in _NOT_ALWAYS
            )
            files = (schema.JUDGES, schema.TUNING, schema.SURROGATES, schema.PROTOCOL)
            judges, tuning, surrogates, protocol = (
                json.loads(archive.read(name)) if name in names else None for name in files
            )
    except KeyError as error:
        raise RecordError(f"{path} is not a complete export: {error.args[0]}") from error
    except (OSError, zipfile.BadZipFile, zlib.error, ValueError, csv.Error) as error:
        raise RecordError(f"{path} cannot be read: {error}") from error
    if not isinstance(recipe, dict):
        raise RecordError(f"{path} cannot be read: {schema.RECIPE} must hold an object")
    if judges is not None and not isinstance(judges, list):
        raise RecordError(f"{path} cannot be read: {schema.JUDGES} must hold a list")
    for name, found in ((schema.TUNING, tuning), (schema.SURROGATES, surrogates), (schema.PROTOCOL, protocol)):
        if found is not None and not isinstance(found, dict):
            raise RecordError(f"{path} cannot be read: {name} must hold an object")
    return Record(
        recipe,
        **tables,
        judges=judges,
        tuning=tuning,
        surrogates=surrogates,
        chains=chains,
        parked=parked,
        seats=seats,
        protocol=protocol,
        checks=checks,
    )


def read_properties(path: Path) -> list[Row]:
    """Return the rows of the properties.csv that the application wrote beside an export.

    Raises:
        RecordError: the file is not there, or is no table with a column `state` and another.
    """
    try:
        with path.open("rb") as file:
            rows = _rows(file, schema.PROPERTIES, path.name)
    except (OSError, ValueError, csv.Error) as error:
        raise RecordError(f"{path} cannot be read: {error}") from error
    if not rows or "state" not in rows[0]:
        raise RecordError(f"{path} is no properties.csv: it has no row, or no column 'state'")
    if len({row["state"] for row in rows}) < len(rows):
        raise RecordError(f"{path} cannot be read: it has two rows for one state")
    return rows


def _table(archive: zipfile.ZipFile, table: schema.Table) -> list[Row]:
    with archive.open(table.file) as entry:
        return _rows(entry, table, table.file)


def _rows(file: IO[bytes], table: schema.Table, name: str) -> list[Row]:
    # A spreadsheet that saves a CSV again puts a byte order mark in front.
    with io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        rows = list(csv.DictReader(text))
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise ValueError(f"row {number} of {name} does not have as many cells as the header")
        table.unescape(row)
    return rows
