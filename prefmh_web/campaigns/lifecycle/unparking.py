"""What a researcher decides about a parked step (`engine/parking.py`). One of these, once.

try_again    asks people again; the count begins anew
end_chain    ends the chain there: what it has decided stays, the parked step never gets a verdict
"""

from __future__ import annotations

from django.utils import timezone

from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.engine import open_comparisons, transitions
from prefmh_web.campaigns.engine.changes import Changes
from prefmh_web.campaigns.engine.reading import locked
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Chain, Comparison, Parking
from prefmh_web.transport import nudges


def try_again(comparison_id: int) -> None:
    """Let people be asked about a parked comparison again.

    Raises:
        NotPossible: it is not parked any more.
    """
    with locked(comparison_id) as comparison:
        _settle(comparison, Parking.Outcome.TRIED_AGAIN)
        comparison.parked, comparison.is_askable = None, True
        comparison.save(update_fields=["parked", "is_askable"])
        if opened := open_comparisons.on(comparison.pk, comparison.chain.campaign):
            # Those who have it on their screen may leave no room for others.
            changes = Changes()
            transitions.note_room(comparison, opened, changes)
            changes.make()
        dispatch.step_unparked(comparison)


def end_chain(comparison_id: int, words: str) -> None:
    """End the chain of a parked comparison before it, for ever; the campaign finishes if no other chain goes on.

    A vote for the pair that comes now is kept, and does not count.

    Args:
        words: why; they become part of the record.

    Raises:
        NotPossible: it is not parked any more, or the campaign is warming up.
    """
    with locked(comparison_id) as comparison:
        campaign = comparison.chain.campaign
        if campaign.is_warming_up:
            raise NotPossible(
                "All chains wait for this one at the end of the warm-up. End the warm-up first, on the campaign's page."
            )
        _settle(comparison, Parking.Outcome.ENDED, words)
        comparison.parked = Comparison.Parked.ENDED
        comparison.save(update_fields=["parked"])
        Chain.objects.filter(pk=comparison.chain_id).update(ended_at=timezone.now())
        nudges.nudge(nudges.watchers(campaign.pk))
        transitions.finish_if_done(campaign)


def _settle(comparison: Comparison, outcome: Parking.Outcome, words: str = "") -> None:
    """Note what became of a parked comparison that is locked."""
    if comparison.verdict is not None or comparison.parked != Comparison.Parked.PARKED:
        raise NotPossible("This step is not parked any more.")
    parked = Parking.objects.filter(comparison=comparison, outcome__isnull=True)
    parked.update(outcome=outcome, settled_at=timezone.now(), words=words)
