"""Whether two exports are the same record: equal byte for byte, apart from what no two runs have in common.

What is left out of the comparison:

    opened_at, decided_at (steps.csv), cast_at (votes.csv), rated_at (ratings.csv), at (events.csv)      the moments
    lease (votes.csv, preferences.jsonl)      keys of leases, which are random
    elapsed_ms (votes.csv) of a model's vote      how long its server took; a person's is part of the script
    frozen_at, first_seen_at, accepted_at (judges.json)      the moments
    the moment that the ZIP notes of each of its files

    what later releases add: files that the older export lacks, and the columns after its own in tables that it has

Nothing else: the released campaigns are made so that the rest follows from their seeds, numbers of people included.
(Sessions and links are random, too, and in no export. Pictures of a catalog stand in it by their
files' names, those that chains make by a name that follows from their codes.)
"""

import csv
import io
import re
import zipfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

MOMENTS = {"opened_at", "decided_at", "cast_at", "rated_at", "at"}
_KEYS = {"lease"}
_MOMENTS_OF_JUDGES = re.compile(rb'(?<=_at": ")[^"]+(?=")')

_KEY_OF_LINE = re.compile(rb'(?<="lease": ")[^"]+(?=")')


def differences(before: Path, after: Path) -> list[str]:
    """Return where two exports differ, a line each; none where they are the same record."""
    with zipfile.ZipFile(before) as first, zipfile.ZipFile(after) as second:
        if first.namelist() != [name for name in second.namelist() if name in first.namelist()]:
            return [f"the files are {first.namelist()} and {second.namelist()}"]
        return [line for name in first.namelist() for line in _in_file(name, first.read(name), second.read(name))]


def _in_file(name: str, before: bytes, after: bytes) -> Iterator[str]:
    if name.endswith(".csv"):
        after = _without_later_columns(before, after)
        before, after = _without_moments(before), _without_moments(after)
    if name.endswith(".jsonl"):
        before, after = _KEY_OF_LINE.sub(b"", before), _KEY_OF_LINE.sub(b"", after)
    if name == "judges.json":
        before, after = _MOMENTS_OF_JUDGES.sub(b"", before), _MOMENTS_OF_JUDGES.sub(b"", after)
    pairs = zip_longest(before.decode().split("\n"), after.decode().split("\n"))
    for number, (first, second) in enumerate(pairs, start=1):
        if first != second:
            yield f"{name}, line {number}: {first!r} became {second!r}"


def _without_later_columns(before: bytes, after: bytes) -> bytes:
    """Return a table without the columns that it has beyond those of the older one; as it is where it lacks one."""
    [header, *_], [later, *_] = _rows(before), _rows(after)
    if len(later) <= len(header) or later[: len(header)] != header or _written(_rows(after)) != after:
        return after
    return _written([row[: len(header)] for row in _rows(after)])


def _rows(table: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(table.decode(), newline="")))


def _without_moments(table: bytes) -> bytes:
    """Return a table without what is left out of the comparison; a table that the export would write otherwise, as it
    is: equal cells would then not be equal bytes.
    """
    header, *rows = _rows(table)
    if _written([header, *rows]) != table:
        return table
    return _written([header, *(_comparable(header, row) for row in rows)])


def _comparable(header: list[str], row: list[str]) -> list[str]:
    is_of_model = bool(dict(zip(header, row, strict=False)).get("endpoint"))
    left_out = MOMENTS | _KEYS | ({"elapsed_ms"} if is_of_model else set())
    places = {place for place, name in enumerate(header) if name in left_out}
    return ["" if place in places else cell for place, cell in enumerate(row)]


def _written(rows: list[list[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()
