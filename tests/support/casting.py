"""Votes cast past the pages: each answers a lease of its own, as `transitions.cast_vote` wants."""

import uuid

from django.utils import timezone

from prefmh_web.campaigns.engine import transitions
from prefmh_web.campaigns.engine.open_comparisons import Ballot
from prefmh_web.campaigns.engine.reading import locked
from prefmh_web.campaigns.models import Annotator, Comparison, Judge, Lease, Side, Vote


def cast(
    comparison: Comparison, judge: Judge, annotator: Annotator, side: Side = Side.LEFT, key: uuid.UUID | None = None
) -> Vote:
    """Cast a vote whose proposal stands on the left; the same key again answers the same lease."""
    key = key or uuid.uuid4()
    with locked(comparison.pk) as comparison:
        now = timezone.now()
        given = {"comparison": comparison, "judge": judge, "annotator": annotator, "proposal_side": Side.LEFT}
        lease, _ = Lease.objects.get_or_create(key=key, defaults={**given, "issued_at": now, "expires_at": now})
        ballot = Ballot(key, judge.pk, Side.LEFT, side, annotator_id=annotator.pk)
        return transitions.cast_vote(comparison, ballot, lease)
