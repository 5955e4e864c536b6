"""A lockstep run's record as one ZIP that stands beside the exports of campaigns, and is read like them.

    lockstep/settings.json, steps.csv, editor.csv    the record itself (`lockstep_record`)
    campaign.json                                      {"lockstep": the settings}: no campaign runs such a config
    steps.csv, states.csv, samples.csv               what follows from it, as an export has it; without times
    the other tables                                   headers only

Everything is written and read row by row, and equal records give equal bytes.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sampler.experiments.lockstep import LockstepSettings
from sampler.experiments.lockstep_record import Folder, replay_lockstep
from sampler.record import replay as exports
from sampler.record import tables
from sampler.record.columns import Cell
from sampler.record.differences import Difference, RecordError
from sampler.record.draws import state_number
from sampler.record.replay import Replay

FOLDER = "lockstep"
_SETTINGS = "settings.json"
_FILES = (_SETTINGS, "steps.csv", "editor.csv")
_TABLES = tuple(table for table in tables.CHECKED if table is not tables.CHECKS)


@dataclass(frozen=True)
class LockstepDifference(Difference):
    """A difference in the record of a lockstep run: `what` is the whole message."""

    def __str__(self) -> str:
        return self.what


class _Move(NamedTuple):
    """A line of the record's steps, with the numbers of its states and what stands there after it. `same` is the lowest
    number of a state with the content of the proposal.
    """

    chain: int
    step: int
    current: int
    proposal: int
    row: dict[str, str]
    after: tuple[int, str]
    same: int


def write_archive(folder: Path, path: Path) -> None:
    """Write a record that `LockstepWriter` has left in a folder as a ZIP.

    Raises:
        OSError: a file cannot be read or written.
    """
    with zipfile.ZipFile(path, "w") as archive:
        for name in _FILES:
            with (folder / name).open("rb") as source, archive.open(_entry(f"{FOLDER}/{name}"), "w") as entry:
                shutil.copyfileobj(source, entry)
        settings = _settings(folder)
        with archive.open(_entry(tables.CONFIG), "w") as entry:
            entry.write(_config(settings).encode())
        for table in _TABLES:
            with archive.open(_entry(table.file), "w") as entry:
                entry.writelines(line.encode() for line in _lines(table, folder, settings))


def replay_file(path: Path) -> Replay:
    """Recompute every verdict of a record from its ZIP alone: a campaign's export, or that of a lockstep run.

    Raises:
        RecordError: the file is not there, is no export, or a table is malformed.
        ConfigError: its config cannot be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if f"{FOLDER}/{_SETTINGS}" in archive.namelist():
                return _replay(archive)
    except (OSError, KeyError, zipfile.BadZipFile, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise RecordError(f"{path} cannot be read: {error}") from error
    return exports.replay_file(path)


def _replay(archive: zipfile.ZipFile) -> Replay:
    folder = zipfile.Path(archive, f"{FOLDER}/")
    try:
        settings = replay_lockstep(folder).settings
    except RecordError as error:
        return Replay(0, 0, (_differs(f"{FOLDER}/{error}"),))
    decisions = settings.chains * settings.steps
    return Replay(decisions, 0, tuple(_tables_that_differ(archive, folder, settings)), scores=decisions)


def _tables_that_differ(
    archive: zipfile.ZipFile, folder: zipfile.Path, settings: LockstepSettings
) -> Iterator[Difference]:
    if archive.read(tables.CONFIG).decode() != _config(settings):
        yield _differs(f"{tables.CONFIG} does not hold the settings of {FOLDER}/{_SETTINGS}")
    for table in _TABLES:
        with archive.open(table.file) as entry, io.TextIOWrapper(entry, encoding="utf-8", newline="") as found:
            pairs = itertools.zip_longest(found, _lines(table, folder, settings))
            for number, (line, wanted) in enumerate(pairs, start=1):
                if line != wanted:
                    yield _differs(f"{table.file}, line {number} does not follow from {FOLDER}/steps.csv")
                    break


def _lines(table: tables.Table, folder: Folder, settings: LockstepSettings) -> Iterator[str]:
    """Yield the lines of one of an export's tables."""
    first, of_move = _ROWS.get(table.name, (_no_rows, None))
    for cells in (table.header, *first(settings)):
        yield _line(cells)
    for move in _moves(folder, settings) if of_move else ():
        for cells in of_move(move) if of_move else ():
            yield _line(cells)


def _moves(folder: Folder, settings: LockstepSettings) -> Iterator[_Move]:
    first = settings.space.build().first
    standing = [(state_number(chain, 0, settings.chains), first) for chain in range(settings.chains)]
    lowest = {first: standing[0][0]}
    for row in _steps(folder):
        number = state_number(int(row["chain_index"]), int(row["step"]), settings.chains)
        lowest[row["proposal"]] = min(number, lowest.get(row["proposal"], number))
    for row in _steps(folder):
        chain, step = int(row["chain_index"]), int(row["step"])
        current, state = standing[chain]
        proposal = current if row["proposal"] == state else state_number(chain, step, settings.chains)
        if row["accepted"] == "1":
            standing[chain] = proposal, row["proposal"]
        yield _Move(chain, step, current, proposal, row, standing[chain], lowest[row["proposal"]])


def _steps(folder: Folder) -> Iterator[dict[str, str]]:
    with (folder / "steps.csv").open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _no_rows(of: object) -> Iterator[list[Cell]]:
    yield from ()


def _first_states(settings: LockstepSettings) -> Iterator[list[Cell]]:
    first = settings.space.build().first
    for chain in range(settings.chains):
        yield _state(state_number(chain, 0, settings.chains), first, state_number(0, 0, settings.chains))


def _first_samples(settings: LockstepSettings) -> Iterator[list[Cell]]:
    first = settings.space.build().first
    for chain in range(settings.chains):
        number = state_number(chain, 0, settings.chains)
        yield _sample(chain, 0, number, first)


def _step_of(move: _Move) -> Iterator[list[Cell]]:
    yield tables.STEPS.row(
        chain_index=move.chain,
        step=move.step,
        current_state=move.current,
        proposal_state=move.proposal,
        log_r0=float(move.row["log_r0"]),
        uniform=float(move.row["uniform"]),
        verdict="accept" if move.row["accepted"] == "1" else "reject",
        opened_at=None,
        decided_at=None,
        part_index=None,
    )


def _state_of(move: _Move) -> Iterator[list[Cell]]:
    if move.proposal != move.current:
        yield _state(move.proposal, move.row["proposal"], move.same)


def _sample_of(move: _Move) -> Iterator[list[Cell]]:
    number, content = move.after
    yield _sample(move.chain, move.step, number, content)


_ROWS: dict[
    str, tuple[Callable[[LockstepSettings], Iterator[list[Cell]]], Callable[[_Move], Iterator[list[Cell]]] | None]
] = {
    "steps": (_no_rows, _step_of),
    "states": (_first_states, _state_of),
    "samples": (_first_samples, _sample_of),
}
"""Of each table that has rows: the first ones, and those of a move."""


def _state(number: int, content: str, same: int) -> list[Cell]:
    return tables.STATES.row(
        state_index=number, object_index=same, weight=None, neighbours=(), content=content, code=""
    )


def _sample(chain: int, step: int, number: int, content: str) -> list[Cell]:
    return tables.SAMPLES.row(chain_index=chain, step=step, state_index=number, content=content, phase=tables.SAMPLING)


def _settings(folder: Path) -> LockstepSettings:
    return LockstepSettings.model_validate_json((folder / _SETTINGS).read_bytes())


def _config(settings: LockstepSettings) -> str:
    return json.dumps({"lockstep": settings.model_dump(mode="json")}, indent=2) + "\n"


def _entry(name: str) -> zipfile.ZipInfo:
    """Return an entry with the earliest date that a ZIP can have: the time of writing is no part of a record."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def _line(cells: Sequence[Cell]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()


def _differs(message: str) -> LockstepDifference:
    return LockstepDifference("", message, "", "", FOLDER)
