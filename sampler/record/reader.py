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

from sampler.recipe import Recipe, parse_recipe
from sampler.record import schema
from sampler.record.replay import RecordError

Row = dict[str, str]
_NOT_ALWAYS = (
    schema.CHAINS,
    schema.PARKED,
    schema.SEATS,
    schema.CHECKS,
    schema.COLUMNS,
    schema.SCORES,
    schema.ROUNDS,
    schema.EXTENSIONS,
)


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
    columns: list[Row] | None = None
    """The further columns of the list that the objects are from; None where it has no others."""
    scores: list[Row] | None = None
    """The numbers that scorers gave objects; None where there are no scorers."""
    scorers: list[dict[str, Any]] | None = None
    """What each of these scorers said of itself when the campaign started."""
    rounds: list[Row] | None = None
    """The rounds of further steps that were opened; None where none may follow the declared ones."""
    extensions: list[Row] | None = None
    """What a researcher added to the steps after the start; None where nothing was added."""

    def checked_recipe(self) -> Recipe:
        """Return the recipe as values.

        Raises:
            RecipeError: it cannot be read.
        """
        return parse_recipe(self.recipe)


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
            chains, parked, seats, checks, columns, scores, rounds, extensions = (
                _table(archive, table) if table.file in names else None for table in _NOT_ALWAYS
            )
            files = (schema.JUDGES, schema.TUNING, schema.SURROGATES, schema.PROTOCOL, schema.SCORERS)
            judges, tuning, surrogates, protocol, scorers = (
                json.loads(archive.read(name)) if name in names else None for name in files
            )
    except KeyError as error:
        raise RecordError(f"{path} is not a complete export: {error.args[0]}") from error
    except (OSError, zipfile.BadZipFile, zlib.error, ValueError, csv.Error) as error:
        raise RecordError(f"{path} cannot be read: {error}") from error
    if not isinstance(recipe, dict):
        raise RecordError(f"{path} cannot be read: {schema.RECIPE} must hold an object")
    for name, found in ((schema.JUDGES, judges), (schema.SCORERS, scorers)):
        if found is not None and not isinstance(found, list):
            raise RecordError(f"{path} cannot be read: {name} must hold a list")
    if not all(isinstance(scorer, dict) and isinstance(scorer.get("name"), str) for scorer in scorers or ()):
        raise RecordError(f"{path} cannot be read: {schema.SCORERS} must hold objects, each with a name")
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
        columns=columns,
        scores=scores,
        scorers=scorers,
        rounds=rounds,
        extensions=extensions,
    )


def read_samples(path: Path) -> list[Row]:
    """Return the rows of an export's samples alone: codes of states, which may be large, are not read.

    Raises:
        RecordError: the file is not there, is no ZIP, or has no such table.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _table(archive, schema.SAMPLES)
    except KeyError as error:
        raise RecordError(f"{path} is not a complete export: {error.args[0]}") from error
    except (OSError, zipfile.BadZipFile, zlib.error, ValueError, csv.Error) as error:
        raise RecordError(f"{path} cannot be read: {error}") from error


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
