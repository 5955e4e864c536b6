"""A run's folder: settings.json, which must be that of the run, and the tables of the evaluation and of calls."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import sampler

outputs = sampler.outputs
Row = Sequence[str | int | float | None]


class OtherSettings(Exception):  # noqa: N818 - reads as the sentence it starts
    """The folder holds another run; the message says what differs."""


def settle(folder: Path, document: dict[str, Any]) -> None:
    """Write settings.json, or check that the folder's is of this run.

    Raises:
        OtherSettings: it is not.
    """
    path = folder / outputs.SETTINGS
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        replace_text(path, sampler.settings_text(document))
        return
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise OtherSettings(f"{path} cannot be read ({error}); choose another folder, or remove it") from error
    if changed := sampler.changed_settings(stored, document):
        listed = "".join(f"\n  {each}" for each in changed)
        raise OtherSettings(
            f"{folder} holds a run with other settings; choose another --out, or the same ones:{listed}"
        )


def write_table(folder: Path, table: Any, rows: Iterable[Row]) -> None:
    """Write one of the tables of `outputs`, whole or not at all."""
    path = outputs.table_path(folder, table)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    with unfinished.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.header)
        writer.writerows(rows)
    unfinished.replace(path)


def rows_of(folder: Path, table: Any) -> Sequence[Row]:
    """Return the rows of a table as they stand in its file; none where there is no file."""
    path = outputs.table_path(folder, table)
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [*csv.reader(file)][1:]


def replace_text(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    unfinished = path.with_suffix(".part")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
