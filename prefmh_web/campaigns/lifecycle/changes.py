"""What changes in a campaign's configuration: the one door, for drafts and for what has started.

Of a started campaign nothing changes that fixes its chains or decides who votes; each change is an event with its path,
the old value and the new one.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.files.base import File
from django.db import transaction

from prefmh_web import hooks
from prefmh_web.campaigns import events
from prefmh_web.campaigns.engine.transactions import lock_people
from prefmh_web.campaigns.errors import Deleted
from prefmh_web.campaigns.lifecycle import drafts, fixed
from prefmh_web.campaigns.models import Campaign, columns_of
from prefmh_web.config import CampaignConfig, Change, changes_between
from prefmh_web.transport import sockets

_BUDGET, _CAPS = ("study", "budget"), "caps"


def apply(campaign: Campaign, config: CampaignConfig, by: User | None = None, file: File[Any] | None = None) -> None:
    """Give a campaign another configuration.

    Args:
        config: as its owner has it: with a seed only where one was typed.
        by: who has decided it; None on the command line.
        file: of a draft's objects, where there is another one.

    Raises:
        NotPossible: the campaign is deleted; or it has started, and something would change that is fixed: the message
            names it, and says why.
    """
    if campaign.is_draft and Campaign.objects.filter(pk=campaign.pk, status=Campaign.Status.DRAFT).exists():
        drafts.change(campaign, config, file)
        return
    with transaction.atomic():
        # People who join read what is asked of them under this lock.
        lock_people(campaign.pk)
        locked = Campaign.objects.select_for_update(no_key=True).filter(pk=campaign.pk).first()
        if locked is None or locked.status == Campaign.Status.DELETING:
            raise Deleted
        changed = [*changes_between(locked.typed_config, config)]
        fixed.demand_allowed(locked, changed)
        _write(locked, config, changed, by)
    campaign.refresh_from_db()
    sockets.nudge(sockets.watchers(campaign.pk))


def rename(campaign: Campaign, name: str, by: User) -> None:
    """Give a campaign another name, at any time: nobody judges by it, for voters do not see it.

    Raises:
        NotPossible: it is deleted.
    """
    campaign.refresh_from_db()
    apply(campaign, campaign.typed_config.model_copy(update={"name": name}), by)


def _write(campaign: Campaign, config: CampaignConfig, changed: list[Change], by: User | None) -> None:
    columns = columns_of(config)
    if any(each.path[0] == _CAPS for each in changed):
        # Whether the new cap is reached as well, the next turn finds, or Resume.
        columns["paused_because"] = ""
    Campaign.objects.filter(pk=campaign.pk).update(**columns)
    campaign.refresh_from_db()
    for demand in hooks.load(hooks.CHANGES):
        demand(campaign)
    for each in changed:
        events.note(campaign.pk, events.Kind.CONFIG_CHANGED, by, each.told())
