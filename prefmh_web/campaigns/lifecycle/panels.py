"""Panels after the start: reminders, and names that are forgotten.

After the start nobody takes a panelist's place, and nobody is sent away: another person has another score, and the
chains that came so far were decided by the first one.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction

import sampler
from prefmh_web.campaigns import events
from prefmh_web.campaigns.models import Campaign


def forget_names(campaign: Campaign, numbers: Collection[int]) -> int:
    """Put their numbers in the place of panelists' names; return how many had one. The law is the same."""
    with transaction.atomic():
        locked = Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
        names = locked.config.panelists
        gone = {names[number - 1] for number in numbers if names[number - 1] != str(number)}
        if gone:
            nameless = sampler.unnamed_config(locked.config_data)["judges"]
            judges = [
                without if judge["source"].get("name") in gone else judge
                for judge, without in zip(locked.config_data["judges"], nameless, strict=True)
            ]
            Campaign.objects.filter(pk=campaign.pk).update(config_data=locked.config_data | {"judges": judges})
    return len(gone)


def remind(campaign: Campaign, panelist: int) -> None:
    """Note that a panelist was reminded, now."""
    events.note(campaign.pk, events.Kind.REMINDED, said={"panelist": panelist})
