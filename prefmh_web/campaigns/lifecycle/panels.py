"""The seats of a panel, and the end of a panel that cannot go on. Their links are made by `status.start`.

    name_seats    stores the names of a draft's seats
    remind        notes that somebody was reminded
    end           ends a campaign before its last step, because somebody has left for good

After the start nobody takes another's seat, and nobody is sent away: another person has another score, and the chains
that came so far were decided by the one who sat there.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from prefmh_web.campaigns import dispatch, events
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle.status import lock_draft
from prefmh_web.campaigns.models import Campaign, Seat


def name_seats(campaign: Campaign, names: Sequence[str]) -> None:
    """Store who sits on the panel of a draft, in the order of their numbers; nobody for no panel.

    Raises:
        NotPossible: the campaign has started, or is deleted.
    """
    with transaction.atomic():
        draft = lock_draft(campaign.pk)
        draft.seats.all().delete()
        Seat.objects.bulk_create(
            Seat(campaign=draft, number=number, name=name) for number, name in enumerate(names, start=1)
        )


def remind(seat: Seat) -> None:
    """Note that somebody was reminded, now."""
    with transaction.atomic():
        Seat.objects.filter(pk=seat.pk).update(reminders=F("reminders") + 1, reminded_at=timezone.now())
        events.note(seat.campaign_id, events.Kind.REMINDED, said={"seat": seat.number})


def end(campaign: Campaign) -> None:
    """End a panel's campaign before its last step. What was decided stays, and so does the record.

    A pair that is on somebody's screen may still be answered; nothing follows it.

    Raises:
        NotPossible: the campaign has no panel, or is not under way.
    """
    with transaction.atomic():
        if not Seat.objects.filter(campaign=campaign).exists():
            raise NotPossible("Only a campaign with a panel can be ended before its last step.")
        under_way = Campaign.objects.filter(
            pk=campaign.pk, status__in=(Campaign.Status.RUNNING, Campaign.Status.PAUSED)
        )
        if not under_way.update(status=Campaign.Status.FINISHED, finished_at=timezone.now()):
            raise NotPossible("Only a campaign that is running or paused can be ended.")
        events.note(campaign.pk, events.Kind.PANEL_ENDED)
        dispatch.campaign_finished(campaign)
