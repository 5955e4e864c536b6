"""How long somebody has waited for a pair. Where the protocol says so, a part ends after that, paid: waiting costs the
participant nothing. It depends on the clock and on who else votes, and on no pair's content.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from prefmh_web.campaigns.models import Annotator
from prefmh_web.participants.models import Participation
from prefmh_web.participants.recruiting import terms_of


def note(annotator: Annotator, *, is_waiting: bool) -> None:
    """Note that somebody has just found no pair, or has one again. It costs nothing where waits end no part."""
    if terms_of(annotator.campaign).wait_minutes is None:
        return
    # After the commit: whoever settles a part locks it before its annotator, and a vote holds the annotator.
    transaction.on_commit(lambda: _note(annotator.pk, is_waiting=is_waiting))


def _note(annotator_id: int, *, is_waiting: bool) -> None:
    parts = Participation.objects.filter(annotator=annotator_id, outcome="")
    if is_waiting:
        parts.filter(waits_since=None).update(waits_since=timezone.now())
    else:
        parts.exclude(waits_since=None).update(waits_since=None)


def is_over(annotator: Annotator) -> bool:
    """True if somebody has waited for as long as the protocol asks of them."""
    minutes = terms_of(annotator.campaign).wait_minutes
    if minutes is None:
        return False
    limit = timezone.now() - timedelta(minutes=minutes)
    return Participation.objects.filter(annotator=annotator, waits_since__lte=limit).exists()


def has_ended(annotator: Annotator) -> bool:
    """True if a part has ended where waits can end one: then no further pair is leased."""
    if terms_of(annotator.campaign).wait_minutes is None:
        return False
    return Participation.objects.filter(annotator=annotator).exclude(outcome="").exists()


def overdue() -> Sequence[int]:
    """Return the parts that go on although their people have waited for too long."""
    waiting = Participation.objects.filter(outcome="", waits_since__isnull=False).select_related("annotator__campaign")
    return [part.pk for part in waiting if is_over(part.annotator)]
