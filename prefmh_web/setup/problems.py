"""What is wrong with a campaign's file: where it stands, and what would be accepted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a file.

    Args:
        message: what is wrong and what would be accepted.
        path: where in the setup, such as judges.0.votes; empty for the file as a whole.
        line: in campaign.yaml, from 1; None where no line is meant.
        column: in that line, from 1.
    """

    message: str
    path: str = ""
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        where = "" if self.line is None else f"line {self.line}, column {self.column}: "
        return where + (f"{self.path}: " if self.path else "") + self.message


class SetupError(ValueError):
    """A file that makes no campaign; `problems` lists every reason, in the order of the lines."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = sorted(problems, key=lambda each: (each.line or 0, each.column or 0))
        super().__init__("; ".join(map(str, self.problems)))


def refused(message: str) -> SetupError:
    """Return the error of a file that is wrong as a whole."""
    return SetupError([Problem(message)])
