"""Where a record is not what it should be: differences, and rows that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from sampler.record import tables

Row = Mapping[str, str]
StepKey = tuple[int, int]
"""The chain and the step."""


def step_key(row: Row) -> StepKey:
    """Return the step that a row is about."""
    return int(row["chain_index"]), int(row["step"])


class RecordError(ValueError):
    """A record that cannot be read: a file, a column or a number is missing or malformed.

    Args:
        file, row: where, if that is known.
    """

    def __init__(self, message: str, file: str = "", row: Row | None = None) -> None:
        super().__init__(message)
        self.file, self.row = file, row


@contextmanager
def reading(file: str, row: Row | None = None) -> Iterator[None]:
    """Let errors of what is done with a file, or with one of its rows, say which one it is."""
    try:
        yield
    except RecordError:
        raise
    except KeyError as error:
        raise RecordError(f"The record cannot be read: {file} lacks {error}", file, row) from error
    except (TypeError, ValueError) as error:
        raise RecordError(f"The record cannot be read: {error}", file, row) from error


@dataclass(frozen=True)
class Difference:
    """One point where the record does not say what the recomputation gives.

    Args:
        where: of the record, in words.
        what: is recorded there.
        row: which one of the file, if the difference is about one that is there.
        step: that it is about, if it is about one; without a row, that of the step is meant.
    """

    where: str
    what: str
    recorded: str
    recomputed: str
    file: str
    row: Row | None = field(default=None, compare=False, repr=False)
    step: StepKey | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.what}: the export has {self.recorded}, expected {self.recomputed}"


def of_step(
    key: StepKey, what: str, recorded: object, recomputed: object, file: str = tables.STEPS.file, row: Row | None = None
) -> Difference:
    """Return a difference that is about a step."""
    where = f"chain {key[0]}, step {key[1]}"
    return Difference(where, what, str(recorded), str(recomputed), file, row, key)


def of_file(file: str, what: str, recorded: object, recomputed: object, row: Row | None = None) -> Difference:
    """Return a difference that is about a file, or about a row of it."""
    return Difference(file, what, str(recorded), str(recomputed), file, row)


def quoted(text: object) -> str:
    """Return the beginning of a text between quotation marks."""
    return f"“{str(text)[:60]}”"
