"""Whether extensions.csv fits the rest of a record: what a researcher added to the steps, and when.

The config of a record says how many steps each chain walks in the end. Without extensions.csv it has said so from the
start; with it, it once said `steps_before` of the first row, and no step beyond may have opened before its row's time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sampler.config import ChainConfig
from sampler.record import schema
from sampler.record.check_chain import Difference, Row, step_key


@dataclass(frozen=True)
class ExtensionDifference(Difference):
    """A difference that is about an extension: `step` is its number."""

    file: str = schema.EXTENSIONS.file

    def __str__(self) -> str:
        place = f"extensions.csv, extension {self.step}"
        return f"{place}: {self.what}: the export has {self.recorded}, expected {self.recomputed}"


def compare_extensions(config: ChainConfig, rows: Sequence[Row], steps: Sequence[Row]) -> Iterator[Difference]:
    """Yield where extensions.csv cannot be right.

    Args:
        steps: the rows of steps.csv.

    Raises:
        KeyError: a row lacks a column.
        ValueError: a number is none.
    """
    length, latest = 0, ""
    for number, row in enumerate(rows, start=1):
        yield from _compare_form(number, row, length, latest)
        length, latest = int(row["steps_after"]), row["extended_at"]
        before = int(row["steps_before"])
        for step in steps:
            chain, place = step_key(step)
            if before < place <= length and step["opened_at"] < latest:
                what = f"when step {place} of chain {chain} opened"
                yield ExtensionDifference(0, number, what, step["opened_at"], f"no earlier than {latest}", row=row)
    if rows and length != config.steps:
        yield ExtensionDifference(
            0, len(rows), "steps_after", f"{length}", f"{config.steps}, the config's steps", row=rows[-1]
        )


def _compare_form(number: int, row: Row, length: int, latest: str) -> Iterator[Difference]:
    before, after = int(row["steps_before"]), int(row["steps_after"])
    if int(row["extension"]) != number:
        yield ExtensionDifference(0, number, "extension", row["extension"], f"{number}", row=row)
    if length and before != length:
        yield ExtensionDifference(0, number, "steps_before", f"{before}", f"{length}", row=row)
    if not 0 < before < after:
        yield ExtensionDifference(0, number, "steps_after", f"{after}", f"more than {max(before, 0)}", row=row)
    # Moments of one zone, written in one way: their order is that of their letters.
    if row["extended_at"] < latest:
        yield ExtensionDifference(0, number, "extended_at", row["extended_at"], f"{latest} or later", row=row)
