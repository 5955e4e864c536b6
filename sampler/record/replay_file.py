"""Replay an export as it lies on the disk."""

from __future__ import annotations

from pathlib import Path

from sampler.record.reader import Record, read_record
from sampler.record.replay import Replay, replay


def replay_file(path: Path) -> Replay:
    """Recompute every verdict of an exported campaign from its ZIP alone.

    Raises:
        RecordError: the file is not there, is no export, or a table is malformed.
        ConfigError: its config cannot be read.
    """
    return replay_record(read_record(path))


def replay_record(record: Record) -> Replay:
    """Recompute every verdict of a record.

    Raises:
        RecordError: a table is malformed.
        ConfigError: its config cannot be read.
    """
    tables = record.states, record.steps, record.votes, record.samples, record.ratings
    others = record.judges, record.tuning, record.chains
    return replay(
        record.config,
        *tables,
        *others,
        suspended=record.suspended,
        protocol=record.protocol,
        checks=record.checks,
        columns=record.columns,
        scores=record.scores,
        scorers=record.scorers,
        extensions=record.extensions,
    )
