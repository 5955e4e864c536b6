"""A trial between two pairs that is no vote. It looks like a pair; of an instructed check, the question says what to
choose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.urls import reverse_lazy

from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.participants import attention, models
from prefmh_web.participants.options import options_of
from prefmh_web.voting.screens.screen import Response, ResponseError
from prefmh_web.voting.visit import Visit
from sampler.judges import shared_context


class Check:
    """A pair between two pairs."""

    name = "check"
    choices: tuple[str, ...] = ()
    """Its buttons send what those of a pair send, with the key of the check: see `PairResponse`."""

    def is_due(self, visit: Visit) -> bool:
        """True when the person must answer one before the next pair."""
        return visit.check is not None

    def standing(self, visit: Visit) -> str:
        """Return pair: to the page it is one."""
        return "pair"

    def context(self, visit: Visit) -> dict[str, Any]:
        """Return the check in place of a lease, its question, the two objects, and what stands above them.

        Raises:
            ValueError: it is not due.
        """
        check, kind = visit.check, started_campaign(visit.campaign).object_kind
        if check is None:
            raise ValueError("no check is due")
        pair = attention.shown_pair(check, visit.campaign)
        context = shared_context(pair.of_first, pair.of_second)
        options = options_of(
            kind,
            pair.first.content,
            pair.second.content,
            lambda side: reverse_lazy("voting:picture", args=[check.key, side]),
            context,
        )
        must_be_answered = check.kind == models.Check.Kind.INSTRUCTED
        shown = {
            "lease": check,
            "question": pair.question,
            "kind": kind,
            "options": options,
            "context": context.shared,
        }
        shown |= started_campaign(visit.campaign).config.shown_as
        return shown | {"must_be_answered": must_be_answered}

    def parse(self, fields: Mapping[str, object]) -> Response:
        """Refuse: what it sends is read as an answer to a pair.

        Raises:
            ResponseError: always.
        """
        raise ResponseError("there is nothing to answer")
