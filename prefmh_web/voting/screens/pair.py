"""A pair and the question about it. What comes back is a vote or a skip."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from django.urls import reverse_lazy

from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.models import Annotator, Lease, ReportReason, Side, Vote
from prefmh_web.campaigns.objects import context_of
from prefmh_web.participants import attention, limits
from prefmh_web.participants.options import options_of
from prefmh_web.voting.reporting import report
from prefmh_web.voting.screens.screen import ResponseError
from prefmh_web.voting.visit import Visit
from sampler.judges import shared_context

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

_LONGEST_MS = 24 * 60 * 60 * 1000
# Sent by the page where a picture does not load, in place of a vote.
_NOT_SHOWN = "not-shown"
# And where the browser has changed what is judged.
_CHANGED = "changed"
_TRANSLATED = {"1": True, "0": False}


class Pair:
    """Two objects, one question."""

    name = "pair"
    choices: tuple[str, ...] = ("first", "second", "skip", _NOT_SHOWN, _CHANGED)

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
        of_first, of_second = (context_of(state, campaign.config) for state in (lease.first, lease.second))
        context = shared_context(of_first, of_second)
        address = partial(_address, lease)
        options = options_of(kind, lease.first.content, lease.second.content, address, context)
        shown = {"lease": lease, "question": question, "kind": kind, "options": options, "context": context.shared}
        return shown | campaign.config.shown_as

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
        side = Side(choice) if choice in Side.values else None
        elapsed_ms, hidden_ms = _milliseconds(fields.get("elapsed_ms")), _milliseconds(fields.get("hidden_ms"))
        if elapsed_ms is None or hidden_ms is None or hidden_ms > elapsed_ms:
            # An older page does not tell; or the two cannot both be true.
            hidden_ms = None
        return PairResponse(
            lease,
            side,
            elapsed_ms,
            hidden_ms,
            choice != _NOT_SHOWN,
            _layout(fields),
            _TRANSLATED.get(str(fields.get("translated"))),
            choice != _CHANGED,
        )


@dataclass(frozen=True)
class PairResponse:
    """The side that a person chose, or None for a skip; how long they took, and how much of that in a hidden tab.

    Where an object was not shown, it is a skip with that report; where it was changed on the page, nobody was asked.
    """

    lease: uuid.UUID
    choice: Side | None
    elapsed_ms: int | None
    hidden_ms: int | None = None
    is_shown: bool = True
    layout: Vote.Layout | Literal[""] = ""
    is_translated: bool | None = None
    is_as_sent: bool = True

    def respond(self, annotator: Annotator) -> None:
        """Cast the vote, or return the question; or answer the trial that this was. Safe to repeat.

        Raises:
            Comparison.DoesNotExist: the annotator was never shown this pair.
        """
        if attention.has(self.lease, annotator):
            attention.answer(self.lease, annotator, self.choice, self.elapsed_ms)
        elif not self.is_as_sent:
            leases.give_back(self.lease, annotator)
        elif self.choice is None:
            leases.skip(self.lease, annotator)
        else:
            page = {"layout": self.layout, "is_translated": self.is_translated}
            keeps_late = limits.keeps_late(annotator.campaign)
            leases.answer(self.lease, annotator, self.choice, self.elapsed_ms, self.hidden_ms, keeps_late, page)
        if not self.is_shown:
            report(self.lease, annotator, ReportReason.NOT_SHOWN)


def _address(lease: Lease, side: Side) -> StrPromise:
    return reverse_lazy("voting:picture", args=[lease.key, side])


def _layout(fields: Mapping[str, object]) -> Vote.Layout | Literal[""]:
    told = str(fields.get("layout"))
    return Vote.Layout(told) if told in Vote.Layout.values else ""


def _milliseconds(value: object) -> int | None:
    """Return the page's stop watch; None when it had none (no script) or shows nonsense."""
    text = str(value or "")
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        return None
    return min(int(text), _LONGEST_MS)
