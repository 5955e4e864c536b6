"""What a record proves, what it only claims, and where it differs: its files against their hashes, its content against
the seed, the votes and the rule.

The two are looked at apart. A file that was changed differs from its hash; a record that was changed and hashed again
differs where its content does not follow from itself. `docs/record.md` lists what neither can show.
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Final

from sampler.archives import Allowance, ArchiveError, archive_in, told_apart
from sampler.config import ConfigError
from sampler.record import tables
from sampler.record.commitment import check_manifest
from sampler.record.record import (
    Difference,
    Finding,
    Record,
    RecordError,
    Row,
    StepKey,
    malformed_in,
    record_in,
    step_key,
)
from sampler.record.replay import Replay, recomputed

MAX_MEMORY: Final = 4 * 2**30
"""What a record's tables may take, in bytes."""
_MAX_UNPACKED = 2**36
_MAX_MEMBERS, _MAX_LISTING = 500_000, 2**26
_SHOWN = 50
_OF_NO_RECORD = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError)
"""What a JSON file of another shape than this program writes may come to, beside the errors of records."""
_LOCKSTEP = "lockstep/settings.json"
_UNCHECKED = tuple(table.file for table in tables.EVERY if table.excused)
"""Files that are compared with nothing but their hashes."""


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
            count = len(self.differs)
            yield f"Refused. The record differs in {count} place{'' if count == 1 else 's'}:"
            yield from (f"  {each}" for each in self.differs[:_SHOWN])
            if count > _SHOWN:
                yield f"  and {count - _SHOWN} more"
        else:
            yield "Accepted. Proven:"
            yield from (f"  {each}" for each in self.proven)
        yield "Only claimed:"
        yield from (f"  {each}" for each in self.claimed)


def verify(path: Path, *, max_memory: float = MAX_MEMORY) -> Verification:
    """Check a record against its hashes and against itself.

    Args:
        path: the ZIP, from anybody.
        max_memory: what its tables may take, in bytes.

    Raises:
        RecordError: the file cannot be read, is no ZIP, holds what no record has, or is too large.
    """
    try:
        with path.open("rb") as file:
            return _verified(file, max_memory)
    except ArchiveError as error:
        raise RecordError(f"{path} cannot be read: {error}") from error
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror or error}") from error


def _verified(file: BinaryIO, max_memory: float) -> Verification:
    with told_apart(), archive_in(file, _MAX_MEMBERS, _MAX_LISTING) as archive:
        if _LOCKSTEP in archive.namelist():
            raise ArchiveError("it is the record of an experiment whose chains take each step together; use replay.")
        about, of_files = check_manifest(archive, Allowance(_MAX_UNPACKED))
        replay, of_content = _content(archive, Allowance(max_memory))
        names = frozenset(archive.namelist())
    if replay is not None and replay.commitment is None:
        no_hash = Finding(tables.CONFIG, None, "has no seed_hash: the record of a campaign always has one")
        of_files = (*of_files, no_hash)
    differs = (*of_files, *of_content)
    proven = _proven(replay) if not differs else ()
    return Verification(proven, tuple(_claimed(about, names, replay)), differs)


Content = tuple[Replay | None, tuple[Finding, ...]]
"""What the content of a record shows, apart from its hashes: what was recomputed, if it could be, and what differs."""


def _content(archive: zipfile.ZipFile, allowance: Allowance) -> Content:
    try:
        record = record_in(archive, allowance)
    except RecordError as error:
        return None, (Finding(error.file, None, f"the record {error}"),)
    return checked(record)


def checked(record: Record) -> Content:
    """Return what a replay of a record found, and each place where its content is not what it should be."""
    if malformed := tuple(malformed_in(record)):
        return None, malformed
    try:
        replayed = recomputed(record)
    except ConfigError as error:
        return None, (Finding(tables.CONFIG, None, str(error)),)
    except RecordError as error:
        file = error.file or tables.CONFIG
        return None, (Finding(file, _number(record.of_file(file), error.row), str(error)),)
    except _OF_NO_RECORD as error:
        return None, (Finding(tables.CONFIG, None, f"or a file beside it holds what no record has: {error}"),)
    return replayed, tuple(_findings(record, replayed.differences))


def _findings(record: Record, differences: Collection[Difference]) -> Iterator[Finding]:
    @cache
    def numbers(file: str) -> dict[int, int]:
        return {id(row): number for number, row in enumerate(record.of_file(file), start=2)}

    @cache
    def of_steps(file: str) -> dict[StepKey, Row]:
        """Return the first row of each step, in a table that has one of each."""
        is_of_steps = file in (tables.STEPS.file, tables.SAMPLES.file)
        return {step_key(row): row for row in reversed(record.of_file(file))} if is_of_steps else {}

    for each in differences:
        row = each.row or (of_steps(each.file).get(each.step) if each.step else None)
        yield Finding(each.file, numbers(each.file).get(id(row)), str(each))


def _number(rows: list[Row], wanted: Row | None) -> int | None:
    return next((index for index, row in enumerate(rows, start=2) if row is wanted), None)


def _proven(replay: Replay | None) -> tuple[str, ...]:
    """Return what holds of a record whose files are those of its manifest, and whose content agrees with itself.

    Args:
        replay: what was recomputed.
    """
    kept = "Every file has the SHA-256 that manifest.json says."
    return (kept,) if replay is None else (kept, _verdicts(replay), *_draws(replay))


def _verdicts(replay: Replay) -> str:
    evidence = f"{replay.ratings} ratings" if replay.ratings else f"{replay.votes} votes"
    evidence = f"{replay.scores} scores" if replay.scores else evidence
    return (
        f"All {replay.verdicts} verdicts, the chains' paths and the samples follow from the {evidence} in their order, "
        "the base ratios and the uniforms, by the rule in campaign.json."
    )


def _draws(replay: Replay) -> Iterator[str]:
    commitment = replay.commitment
    if replay.is_sealed and commitment is not None:
        yield (
            f"The seed is not revealed yet; its hash is {commitment.digest}. Starts, proposals, base ratios and "
            "uniforms are taken as recorded: whether they were drawn from the seed shows once the campaign has ended."
        )
        return
    drawn = "Starts, proposals, base ratios and uniforms"
    if replay.recorded_draws:
        drawn = "Uniforms, and which move each step made,"
    yield f"{drawn} are those that the seed gives: drawn again, all agree."
    if commitment is not None:
        yield (
            f"The seed is the one of the hash {commitment.digest}. Whoever noted this hash before the first vote knows "
            "that the seed was fixed by then."
        )


def _claimed(about: Mapping[str, Any], names: Collection[str], replay: Replay | None) -> Iterator[str]:
    """Yield what a record says, or leaves open, and nothing in it can show.

    Args:
        about: the manifest, without the hashes.
        names: of the record's files.
        replay: what was recomputed, if it could be.
    """
    if about:
        yield f"That it is of campaign {about.get('campaign')} of {about.get('site') or 'a site without an address'}."
        yield f"That it was written at {about.get('written_at')}."
    yield "That nobody has changed a file and its hash: the content alone can tell, and it cannot tell everything."
    yield "That the people who voted are real, are different people, and answered for themselves."
    yield "That votes were recorded as they were given. A vote whose answer decides nothing can be another one."
    yield "That no vote and no chain was left out together with all that follows from it."
    yield "That no other campaign was run and dropped, and this one kept because of what came out."
    yield "All times, and how long answers took."
    yield "That nobody who voted knew the uniforms or which object was the proposal; and people's sides at random."
    if replay is not None and replay.commitment is not None:
        yield "That the hash of the seed was published when the campaign started, and that the site kept the seed."
        drawn = "somebody typed it." if replay.commitment.was_typed else "the site says that the start drew it."
        yield f"That the seed was not chosen for what it gives: {drawn}"
    if replay is not None and replay.is_extended:
        yield (
            "Steps were added. If that was after the campaign had ended, its seed was revealed by then, and who voted "
            f"later could know the uniforms: {tables.EVENTS.file} says when (kind seed-revealed)."
        )
    if replay is not None and replay.recorded_draws:
        yield "That the texts are those that the model wrote, and that the model's server drew them as it should."
    if unchecked := [name for name in _UNCHECKED if name in names]:
        yield f"What these files say, which is compared with nothing: {', '.join(unchecked)}."
    if any(name.startswith("pictures/") for name in names):
        yield "That the pictures are those that people saw."
    if any(name.startswith("recordings/") for name in names):
        yield "That the recordings are those that people heard."
