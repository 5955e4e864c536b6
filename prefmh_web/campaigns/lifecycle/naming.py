"""The name of a campaign, which may change at any time: nobody judges by it, for voters do not see it."""

from __future__ import annotations

import json

from django.contrib.auth.models import User
from django.db import transaction

from prefmh_web.campaigns import events
from prefmh_web.campaigns.errors import Deleted
from prefmh_web.campaigns.models import Campaign


def rename(campaign: Campaign, name: str, by: User) -> None:
    """Give a campaign another name.

    Raises:
        Deleted: it is deleted.
    """
    with transaction.atomic():
        found = Campaign.objects.select_for_update(no_key=True).exclude(status=Campaign.Status.DELETING)
        before = found.filter(pk=campaign.pk).values_list("name", flat=True).first()
        if before is None:
            raise Deleted
        if before != name:
            Campaign.objects.filter(pk=campaign.pk).update(name=name)
            # Quoted: a name may have a semicolon of its own.
            names = {"before": json.dumps(before, ensure_ascii=False), "after": json.dumps(name, ensure_ascii=False)}
            events.note(campaign.pk, events.Kind.RENAMED, by, names)
