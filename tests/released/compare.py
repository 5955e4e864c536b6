"""Whether two exports are the same record: equal byte for byte, apart from what no two runs have in common.

What is left out of the comparison:

    opened_at, decided_at (steps.csv), cast_at (votes.csv), rated_at (ratings.csv)      the moments
    elapsed_ms (votes.csv) of a model's vote      how long its server took; a person's is part of the script
    the moment that the ZIP notes of each of its files

Nothing else: the released campaigns are made so that the rest follows from their seeds, numbers of people included.
(Keys of votes and leases, sessions and links are random, and in no export. Pictures of a catalog stand in it by their
files' names, those that chains make by a name that follows from their codes.)
"""

import csv
import io
import zipfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

MOMENTS = {"opened_at", "decided_at", "cast_at", "rated_at"}


def differences(before: Path, after: Path) -> list[str]:
    """Return where two exports differ, a line each; none where they are the same record."""
    with zipfile.ZipFile(before) as first, zipfile.ZipFile(after) as second:
        if first.namelist() != second.namelist():
            return [f"the files are {first.namelist()} and {second.namelist()}"]
        return [line for name in first.namelist() for line in _in_file(name, first.read(name), second.read(name))]


def _in_file(name: str, before: bytes, after: bytes) -> Iterator[str]:
    if name.endswith(".csv"):
        before, after = _timeless(before), _timeless(after)
    pairs = zip_longest(before.decode().split("\n"), after.decode().split("\n"))
    for number, (first, second) in enumerate(pairs, start=1):
        if first != second:
            yield f"{name}, line {number}: {first!r} became {second!r}"


def _timeless(table: bytes) -> bytes:
    """Return a table without what is left out of the comparison.

    Raises:
        AssertionError: it is not quoted as the export quotes, so that equal rows would not be equal bytes.
    """
    header, *rows = csv.reader(io.StringIO(table.decode(), newline=""))
    assert _written([header, *rows]) == table
    return _written([header, *(_without_moments(dict(zip(header, row, strict=True))) for row in rows)])


def _without_moments(row: dict[str, str]) -> list[str]:
    is_of_model = bool(row.get("endpoint"))
    return [
        "" if name in MOMENTS or (name == "elapsed_ms" and is_of_model) else value for name, value in row.items()
    ]


def _written(rows: list[list[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()
