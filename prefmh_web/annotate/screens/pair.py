"""One message from an annotator's page, by socket or by form post: a choice, a skip, or a sign of life."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Annotator, Side

_LONGEST_MS = 24 * 60 * 60 * 1000


class BallotError(ValueError):
    """A message that no page of ours sends."""


@dataclass(frozen=True)
class Ballot:
    """What the person did: chose a side, skipped, or, without a lease, asked to go on."""

    lease: uuid.UUID | None
    choice: Side | None
    elapsed_ms: int | None

    @classmethod
    def parse(cls, fields: Mapping[str, object]) -> "Ballot":
        """Read the form's fields.

        Raises:
            BallotError: a field is not what the page would send; the message names it.
        """
        action = fields.get("choice")
        if action == "continue":
            return cls(None, None, None)
        if action not in ("left", "right", "skip"):
            raise BallotError("choice must be left, right, skip or continue")
        try:
            lease = uuid.UUID(str(fields.get("lease")))
        except ValueError as error:
            raise BallotError("lease must be the key of a pair that was shown") from error
        return cls(lease, None if action == "skip" else Side(action), _milliseconds(fields.get("elapsed_ms")))

    def act(self, annotator: Annotator) -> None:
        """Do what the person asked for. Safe to repeat.

        Raises:
            Comparison.DoesNotExist: the annotator was never shown this pair.
        """
        if self.lease is None:
            leases.wake(annotator)
        elif self.choice is None:
            leases.skip(self.lease, annotator)
        else:
            leases.answer(self.lease, annotator, self.choice, self.elapsed_ms)


def _milliseconds(value: object) -> int | None:
    """Return the page's stop watch; None when it had none (no script) or shows nonsense."""
    text = str(value or "")
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        return None
    return min(int(text), _LONGEST_MS)
