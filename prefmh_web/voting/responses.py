"""What a voting page sends, by socket or by form post: its fields are read and refused here, and what they ask is done.

vote       one of the two objects is chosen; of a trial between two pairs, that is no vote
skip       neither, because the person wants no answer, or because the page did not show what was sent
continue   the person has rested, and is there
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from prefmh_web.campaigns.engine import leases, locks, suspension
from prefmh_web.campaigns.frozen import limits_of
from prefmh_web.campaigns.models import ReportReason, Side, Vote, Voter
from prefmh_web.participants import attention, limits

# What the buttons of the screens send. The page sends “not-shown” in place of a vote where a picture does not load, and
# “changed” where the browser has changed what is judged.
CHOICES = (*Side.values, "skip", "not-shown", "changed", "continue")
_LONGEST_MS = 24 * 60 * 60 * 1000


class ResponseError(ValueError):
    """A message that no page of ours sends; the text names the field."""


@dataclass(frozen=True)
class Response:
    """What a person did on a screen: they chose a side, or None for a skip; or they have rested, and are there.

    Args:
        lease: the key of the pair, or of the trial; None of somebody who has rested.
        elapsed_ms, hidden_ms: how long they took, and how much of that in a hidden tab.
        is_shown: False where an object was not: the skip is a report of that, too.
        is_as_sent: False where the browser has changed the pair: nobody was asked.
    """

    lease: uuid.UUID | None
    choice: Side | None = None
    elapsed_ms: int | None = None
    hidden_ms: int | None = None
    is_shown: bool = True
    layout: Vote.Layout | Literal[""] = ""
    is_translated: bool | None = None
    is_as_sent: bool = True

    def respond(self, voter: Voter) -> None:
        """Do what the person asked for. Safe to repeat.

        Args:
            voter: is brought up to date.

        Raises:
            Comparison.DoesNotExist: the voter was never shown this pair.
        """
        asked = limits_of(voter.campaign)
        if self.lease is None:
            leases.wake(voter)
            # The caller's voter may be as old as its socket, and the person has perhaps voted on another page.
            locks.refresh(voter)
        elif asked.has_checks and attention.has(self.lease, voter):
            attention.answer(self.lease, voter, self.choice, self.elapsed_ms)
        elif self.choice is None:
            leases.skip(self.lease, voter, was_asked=self.is_as_sent)
        else:
            page = {"layout": self.layout, "is_translated": self.is_translated}
            keeps_late = partial(limits.takes_one_more, voter.campaign) if asked.has_budget else None
            leases.answer(self.lease, voter, self.choice, self.elapsed_ms, self.hidden_ms, keeps_late, page)
        if self.lease and not self.is_shown:
            suspension.report(self.lease, voter, ReportReason.NOT_SHOWN)


def response_in(fields: Mapping[str, object]) -> Response:
    """Read one message from a voter's page, by socket or by form post.

    Raises:
        ResponseError: a field is not what a page of ours would send; the message names it.
    """
    choice = fields.get("choice")
    if choice not in CHOICES:
        raise ResponseError(f"choice must be {', '.join(CHOICES[:-1])} or {CHOICES[-1]}")
    if choice == "continue":
        return Response(None)
    try:
        key = uuid.UUID(str(fields.get("lease")))
    except ValueError as error:
        raise ResponseError("lease must be the key of a pair that was shown") from error
    elapsed_ms, hidden_ms = _milliseconds(fields.get("elapsed_ms")), _milliseconds(fields.get("hidden_ms"))
    if elapsed_ms is None or hidden_ms is None or hidden_ms > elapsed_ms:
        # An older page does not tell; or the two cannot both be true.
        hidden_ms = None
    layout = str(fields.get("layout"))
    return Response(
        key,
        Side(choice) if choice in Side.values else None,
        elapsed_ms,
        hidden_ms,
        is_shown=choice != "not-shown",
        layout=Vote.Layout(layout) if layout in Vote.Layout.values else "",
        is_translated={"1": True, "0": False}.get(str(fields.get("translated"))),
        is_as_sent=choice != "changed",
    )


def _milliseconds(value: object) -> int | None:
    """Return the page's stop watch; None when it had none (no script) or shows nonsense."""
    text = str(value or "")
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        return None
    return min(int(text), _LONGEST_MS)
