"""What a record proves, what it only claims, and where it differs: its files against their hashes, its content against
the seed, the votes and the rule.

The two are looked at apart. A file that was changed differs from its hash; a record that was changed and hashed again
differs where its content does not follow from itself. `docs/record-format.md` lists what neither can show.
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from sampler.config import ConfigError
from sampler.record import schema, sentences
from sampler.record.archives import Allowance, ArchiveError, archive_in, told_apart
from sampler.record.check_chain import Difference, Row
from sampler.record.manifest import Listed, check_manifest
from sampler.record.reader import Record, record_in
from sampler.record.replay import RecordError, Replay
from sampler.record.replay_file import replay_record
from sampler.record.shapes import malformed_in

MOST_MEMORY: Final = 4 * 2**30
"""What a record's tables may take, in bytes."""
_MOST_UNPACKED = 2**36
_MOST_MEMBERS, _MOST_LISTING = 500_000, 2**26
_SHOWN = 50
_OF_NO_RECORD = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError)
"""What a JSON file of another shape than this program writes may come to, beside the errors of records."""
_LOCKSTEP = "lockstep/settings.json"


@dataclass(frozen=True)
class Finding:
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


@dataclass(frozen=True)
class Verification:
    """What was found of a record, in sentences.

    Args:
        proven: what follows from the record itself.
        claimed: what the record says, and nothing in it can show.
        differs: where it is not what it should be; empty of a record that is accepted.
    """

    proven: tuple[str, ...]
    claimed: tuple[str, ...]
    differs: tuple[Finding, ...]

    def lines(self) -> Iterator[str]:
        """Yield it as text, under headings."""
        if self.differs:
            yield f"Refused. The record differs in {_times(len(self.differs))}:"
            yield from (f"  {each}" for each in self.differs[:_SHOWN])
            if len(self.differs) > _SHOWN:
                yield f"  and {len(self.differs) - _SHOWN} more"
        else:
            yield "Accepted. Proven:"
            yield from (f"  {each}" for each in self.proven)
        yield "Only claimed:"
        yield from (f"  {each}" for each in self.claimed)


def _times(count: int) -> str:
    return "1 place" if count == 1 else f"{count} places"


def verify(path: Path, *, most_memory: float = MOST_MEMORY) -> Verification:
    """Check a record against its hashes and against itself.

    Args:
        path: the ZIP, from anybody.
        most_memory: what its tables may take, in bytes.

    Raises:
        RecordError: the file cannot be read, is no ZIP, holds what no record has, or is too large.
    """
    try:
        with path.open("rb") as file:
            return _verified(file, most_memory)
    except ArchiveError as error:
        raise RecordError(f"{path} cannot be read: {error}") from error
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror or error}") from error


def _verified(file: BinaryIO, most_memory: float) -> Verification:
    with told_apart(), archive_in(file, _MOST_MEMBERS, _MOST_LISTING) as archive:
        if _LOCKSTEP in archive.namelist():
            raise ArchiveError("it is the record of an experiment whose chains take each step together; use replay.")
        listed = check_manifest(archive, Allowance(_MOST_UNPACKED))
        found = _content(archive, Allowance(most_memory))
        names = frozenset(archive.namelist())
    differs = (*_of_files(listed, found), *found.differs)
    proven = sentences.proven(found.replay) if not differs else ()
    return Verification(proven, tuple(sentences.claimed(listed.about, names, found.replay)), differs)


@dataclass(frozen=True)
class _Content:
    replay: Replay | None
    differs: tuple[Finding, ...]


def _content(archive: zipfile.ZipFile, allowance: Allowance) -> _Content:
    try:
        record = record_in(archive, allowance)
    except RecordError as error:
        return _Content(None, (Finding(error.file, None, f"the record {error}"),))
    if malformed := [Finding(*each) for each in malformed_in(record)]:
        return _Content(None, tuple(malformed))
    try:
        replayed = replay_record(record)
    except ConfigError as error:
        return _Content(None, (Finding(schema.CONFIG, None, str(error)),))
    except RecordError as error:
        return _Content(
            None, (Finding(error.file or schema.CONFIG, _number(record, error.file, error.row), str(error)),)
        )
    except _OF_NO_RECORD as error:
        return _Content(None, (Finding(schema.CONFIG, None, f"or a file beside it holds what no record has: {error}"),))
    return _Content(replayed, tuple(_findings(record, replayed.differences)))


def _of_files(listed: Listed, found: _Content) -> Iterator[Finding]:
    yield from (Finding(file, None, message) for file, message in listed.differs)
    if found.replay is not None and found.replay.commitment is None:
        yield Finding(schema.CONFIG, None, "has no seed_hash: the record of a campaign always has one")


def _findings(record: Record, differences: Collection[Difference]) -> Iterator[Finding]:
    numbers: dict[str, dict[int, int]] = {}
    for each in differences:
        rows = _rows_of(record, each.file)
        places = numbers.setdefault(each.file, {id(row): place for place, row in enumerate(rows, start=2)})
        row = places.get(id(each.row)) if each.row is not None else _of_step(rows, each)
        yield Finding(each.file, row, str(each))


def _of_step(rows: list[Row], difference: Difference) -> int | None:
    """Return the row of the difference's step, in a table that has one of each."""
    if difference.file not in (schema.STEPS.file, schema.SAMPLES.file):
        return None
    key = str(difference.chain), str(difference.step)
    return next((place for place, row in enumerate(rows, start=2) if (row["chain"], row["step"]) == key), None)


def _number(record: Record, file: str, wanted: Row | None) -> int | None:
    return next((place for place, row in enumerate(_rows_of(record, file), start=2) if row is wanted), None)


def _rows_of(record: Record, file: str) -> list[Row]:
    found: list[Row] | None = getattr(record, file.removesuffix(".csv"), None) if file.endswith(".csv") else None
    return found or []
