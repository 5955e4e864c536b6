"""Panels after the start: reminders, and names that are forgotten.

After the start nobody takes a panelist's place, and nobody is sent away: another person has another score, and the
chains that came so far were decided by the first one.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction

import sampler
from prefmh_web.campaigns import events
from prefmh_web.campaigns.models import Campaign, columns_of


def forget_names(campaign: Campaign, numbers: Collection[int]) -> int:
    """Put their numbers in the place of panelists' names; return how many had one. The law is the same."""
    with transaction.atomic():
        locked = Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
        names = locked.config.panelists
        gone = {names[number - 1] for number in numbers if names[number - 1] != str(number)}
        if gone:
            config = locked.typed_config
            judges = tuple(
                without if isinstance(judge.source, sampler.PanelistSource) and judge.source.name in gone else judge
                for judge, without in zip(config.judges, sampler.unnamed(config.judges), strict=True)
            )
            columns = columns_of(config.model_copy(update={"judges": judges}))
            Campaign.objects.filter(pk=campaign.pk).update(**columns)
    return len(gone)


def remind(campaign: Campaign, panelist: int) -> None:
    """Note that a panelist was reminded, now."""
    events.note(campaign.pk, events.Kind.REMINDED, said={"panelist": panelist})
