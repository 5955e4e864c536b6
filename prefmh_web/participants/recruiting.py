"""How people come to a campaign: what is set up, and what everybody's page asks of it.

The recruiter and the number of votes do not change once the campaign has started, so a process remembers them. Codes
and the way back may change later, and are read when they are shown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db import transaction

from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle.status import lock_draft
from prefmh_web.campaigns.models import Campaign
from prefmh_web.participants.models import Recruitment
from prefmh_web.participants.recruiters import ANYBODY, Recruiter

_REMEMBERED = 1000
AFTER_START = frozenset({"codes", "way_back"})
"""What may change once a campaign has started: platforms give out codes when the study is set up there."""


@dataclass(frozen=True)
class Terms:
    """What does not change once a campaign has started.

    Args:
        recruiter: where its people come from.
        votes_each: after how many votes somebody's part is complete; None for no limit.
        is_set_up: False where nobody has said anything about it.
    """

    recruiter: Recruiter = ANYBODY
    votes_each: int | None = None
    is_set_up: bool = False


def terms_of(campaign: Campaign) -> Terms:
    """Return the terms on which people take part."""
    if campaign.started_at is None:
        return _read(campaign.pk)
    return _remembered(campaign.pk, campaign.started_at)


@lru_cache(maxsize=_REMEMBERED)
def _remembered(campaign_id: int, _started_at: datetime) -> Terms:
    # Started again under the same number, as tests do, it is another one.
    return _read(campaign_id)


def _read(campaign_id: int) -> Terms:
    found = Recruitment.objects.filter(campaign=campaign_id).first()
    return Terms() if found is None else Terms(found.platform, found.votes_each, is_set_up=True)


def recruitment_of(campaign: Campaign) -> Recruitment:
    """Return what is set up; the default, unsaved, where nothing is."""
    return Recruitment.objects.filter(campaign=campaign).first() or Recruitment(campaign=campaign)


def set_up(campaign: Campaign, fields: Mapping[str, Any], excluded: Collection[Campaign]) -> None:
    """Store how people come to a campaign. Of one that has started only the codes and the way back change.

    Raises:
        NotPossible: the campaign is deleted.
    """
    with transaction.atomic():
        try:
            lock_draft(campaign.pk)
        except NotPossible:
            campaign.refresh_from_db()
            if campaign.is_draft:
                raise
            fields = {name: value for name, value in fields.items() if name in AFTER_START}
            Recruitment.objects.update_or_create(campaign=campaign, defaults=fields)
            return
        found, _ = Recruitment.objects.update_or_create(campaign=campaign, defaults=dict(fields))
        found.excluded.set(excluded)
