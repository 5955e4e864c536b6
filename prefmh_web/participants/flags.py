"""Webhooks are told who votes very fast, once a person. A failed attention check is told where it is answered.

Looking at each vote would cost every vote a statement. So votes are looked at together, once a minute, and only where a
webhook wants to know.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.models import Annotator, Campaign, Vote, Webhook
from prefmh_web.participants import speed

_EVERY = timedelta(minutes=1)


def notice_fast() -> None:
    """Look at what was voted since the last look, in each campaign with a webhook for flags."""
    now = timezone.now()
    goes_on = Q(campaign__finished_at=None) | Q(looked_until__lt=F("campaign__finished_at") + _EVERY)
    due = Webhook.objects.filter(goes_on, campaign__started_at__isnull=False, looked_until__lte=now - _EVERY)
    for campaign in Campaign.objects.filter(pk__in=due.values("campaign")).exclude(status=Campaign.Status.DELETING):
        _look(campaign, due.filter(campaign=campaign), now)


def _look(campaign: Campaign, webhooks: Iterable[Webhook], now: datetime) -> None:
    wanting = [each for each in webhooks if Webhook.Event.FLAGGED in each.events]
    most = speed.most_a_minute(campaign)
    with transaction.atomic():
        if wanting and most is not None:
            # A vote is in sight only after its commit, a moment after its time.
            since = min(each.looked_until for each in wanting) - _EVERY
            recent = Vote.objects.filter(cast_at__gt=since, annotator__campaign=campaign)
            voted = Annotator.objects.filter(pk__in=recent.values("annotator"))
            for annotator, votes in speed.fast_votes(voted, most).items():
                about = {"fast_votes": votes, "most_a_minute": most}
                dispatch.person_flagged(campaign.pk, annotator, "fast-votes", once=f"fast {annotator}", **about)
        # Locked in the order in which `dispatch` locks them: an update of many takes them in any.
        locked = Webhook.objects.select_for_update(no_key=True).filter(campaign=campaign).order_by("pk")
        Webhook.objects.filter(pk__in=[each.pk for each in locked]).update(looked_until=now)
