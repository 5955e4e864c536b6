"""Recompute a campaign from its exported record alone and say where the record differs.

Nothing here trusts the record beyond the config, the objects and the votes, ratings or scores: the chains are walked
again from the seed, and what a column repeats of another is compared with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sampler.config import ConfigError
from sampler.record import tables
from sampler.record.checks import CHECKS
from sampler.record.commitment import Commitment, read_config
from sampler.record.differences import Difference, RecordError
from sampler.record.documents import EXTENDED
from sampler.record.draws import Parsed
from sampler.record.record import Record, malformed_in, read_record


@dataclass(frozen=True)
class Replay:
    """What a replay found."""

    verdicts: int
    votes: int
    differences: tuple[Difference, ...]
    ratings: int = 0
    scores: int = 0
    """Numbers of scorers, where they decide."""
    commitment: Commitment | None = None
    """What the record says of its seed; None where that is the seed alone."""
    recorded_draws: bool = False
    """Whether proposals are taken as recorded: a model has written them."""
    is_extended: bool = False
    """Whether steps were added after the start."""

    @property
    def waits_for_seed(self) -> bool:
        """True while the seed is not told: starts, proposals, base ratios and uniforms are taken as recorded."""
        return self.commitment is not None and not self.commitment.is_open


def replay(record: Record) -> Replay:
    """Recompute every decision of an export, once each cell is looked at.

    Raises:
        RecordError: a column or a cell is missing, or a cell is not what its column holds.
        ConfigError: the config does not parse.
    """
    for file, row, message in malformed_in(record):
        where = file if row is None else f"row {row} of {file}"
        found = None if row is None else record.of_file(file)[row - 2]
        raise RecordError(f"The record cannot be read: {where}: {message}", file, found)
    return recomputed(record)


def recomputed(record: Record) -> Replay:
    """Recompute every decision of a record in which nothing is malformed.

    While the seed of a campaign is not told, what was drawn is taken as recorded, and what the votes make of it is
    recomputed.

    Raises:
        RecordError: a cell names what there is not.
        ConfigError: the config does not parse.
    """
    try:
        config, commitment = read_config(record.config)
    except ConfigError:
        raise
    except ValueError as error:
        raise RecordError(f"The record cannot be read: {error}", tables.CONFIG) from error
    parsed = Parsed(record, config, commitment)
    differences = tuple(each for checks in CHECKS.values() for check in checks for each in check(parsed))
    decided = sum(row["verdict"] != "" for row in parsed.steps)
    cast = sum(len(cast) for cast in parsed.counted_votes.values())
    deciding = sum(row["scorer"] in config.rule.scorers and row["score"] != "" for row in record["scores"])
    is_written = config.generates and config.space.kind == "model-texts"
    is_extended = any(row["kind"] == EXTENDED for row in record["events"])
    return Replay(decided, cast, differences, len(record["ratings"]), deciding, commitment, is_written, is_extended)


def replay_file(path: Path) -> Replay:
    """Recompute every verdict of an exported campaign from its ZIP alone.

    Raises:
        RecordError: the file is not there, is no export, or a table is malformed.
        ConfigError: its config cannot be read.
    """
    return replay(read_record(path))
