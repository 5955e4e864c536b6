"""What every scorer offers. Plain values in, plain values out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from prefmh_web.objects import ObjectKind, StoredObject


class ScorerError(Exception):
    """A scorer gives no numbers at all for now; the message says why, as the end of a sentence without a full stop."""


class ScorerInterrupted(Exception):  # noqa: N818 - nothing is wrong with the scorer
    """This process ends: nothing is known of the batch, which somebody else will ask about."""


@dataclass(frozen=True)
class NoScore:
    """Why one object has no number, while others may have."""

    reason: str


Answer = float | NoScore


class Scorer(Protocol):
    """A model that gives objects a number."""

    @property
    def name(self) -> str:
        """What setups and records call it."""

    def description(self) -> dict[str, str]:
        """Return what a campaign keeps of it when it starts: `name`, `kind`, and what tells versions apart."""

    def scores(self, kind: ObjectKind, objects: Sequence[StoredObject]) -> list[Answer]:
        """Return a finite number for each object, in order, or why it has none.

        Raises:
            ScorerError: it gives no numbers, or nobody can say which object those are for.
            ScorerInterrupted: this process ends.
        """
