"""A pair and the question about it. What comes back is a vote or a skip."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from django.urls import reverse_lazy

from prefmh_web.annotate.reporting import report
from prefmh_web.annotate.screens.screen import ResponseError
from prefmh_web.annotate.visit import Visit
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Annotator, Lease, ReportReason, Side
from prefmh_web.campaigns.started import context_of, started_campaign
from prefmh_web.participants import budget, checks
from prefmh_web.participants.options import options_of
from sampler.judges import shared_context

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

_LONGEST_MS = 24 * 60 * 60 * 1000
# Sent by the page where a picture does not load, in place of a vote.
_NOT_SHOWN = "not-shown"


class Pair:
    """Two objects, one question."""

    name = "pair"
    choices: tuple[str, ...] = ("left", "right", "skip", _NOT_SHOWN)

    def is_due(self, visit: Visit) -> bool:
        """True when a question is leased to the person."""
        return visit.lease is not None

    def standing(self, visit: Visit) -> str:
        """Return pair."""
        return "pair"

    def context(self, visit: Visit) -> dict[str, Any]:
        """Return the lease, its question, the kind of the objects, the two of them, and what stands above them.

        Raises:
            ValueError: it is not due.
        """
        campaign, lease = started_campaign(visit.campaign), visit.lease
        if lease is None:
            raise ValueError("no question is leased to this person")
        kind, question = campaign.object_kind, campaign.judge(lease.judge_id).question
        of_left, of_right = (context_of(state, campaign.recipe) for state in (lease.left, lease.right))
        context = shared_context(of_left, of_right)
        address = partial(_address, lease)
        options = options_of(kind, lease.left.content, lease.right.content, address, context)
        return {"lease": lease, "question": question, "kind": kind, "options": options, "context": context.shared}

    def parse(self, fields: Mapping[str, object]) -> PairResponse:
        """Read a vote, a skip, or that an object is not shown.

        Raises:
            ResponseError: a field is not what the page would send.
        """
        try:
            lease = uuid.UUID(str(fields.get("lease")))
        except ValueError as error:
            raise ResponseError("lease must be the key of a pair that was shown") from error
        choice = str(fields["choice"])
        side = None if choice in ("skip", _NOT_SHOWN) else Side(choice)
        elapsed_ms, hidden_ms = _milliseconds(fields.get("elapsed_ms")), _milliseconds(fields.get("hidden_ms"))
        if elapsed_ms is None or hidden_ms is None or hidden_ms > elapsed_ms:
            # An older page does not tell; or the two cannot both be true.
            hidden_ms = None
        return PairResponse(lease, side, elapsed_ms, hidden_ms, is_shown=choice != _NOT_SHOWN)


@dataclass(frozen=True)
class PairResponse:
    """The side that a person chose, or None for a skip; how long they took, and how much of that in a hidden tab.

    Where an object was not shown, it is a skip with that report.
    """

    lease: uuid.UUID
    choice: Side | None
    elapsed_ms: int | None
    hidden_ms: int | None = None
    is_shown: bool = True

    def respond(self, annotator: Annotator) -> None:
        """Cast the vote, or return the question; or answer the trial that this was. Safe to repeat.

        Raises:
            Comparison.DoesNotExist: the annotator was never shown this pair.
        """
        if checks.has(self.lease, annotator):
            checks.answer(self.lease, annotator, self.choice, self.elapsed_ms)
        elif self.choice is None:
            leases.skip(self.lease, annotator)
        else:
            keeps_late = budget.keeps_late(annotator.campaign)
            leases.answer(self.lease, annotator, self.choice, self.elapsed_ms, self.hidden_ms, keeps_late)
        if not self.is_shown:
            report(self.lease, annotator, ReportReason.NOT_SHOWN)


def _address(lease: Lease, side: Side) -> StrPromise:
    return reverse_lazy("annotate:picture", args=[lease.key, side])


def _milliseconds(value: object) -> int | None:
    """Return the page's stop watch; None when it had none (no script) or shows nonsense."""
    text = str(value or "")
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        return None
    return min(int(text), _LONGEST_MS)
