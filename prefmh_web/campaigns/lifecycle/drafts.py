"""Saving a campaign's setup while it is a draft."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.files.base import File
from django.db import transaction

from prefmh_web.campaigns.catalogs import importing
from prefmh_web.campaigns.lifecycle import fixed
from prefmh_web.campaigns.lifecycle.status import lock_draft
from prefmh_web.campaigns.models import Campaign


def create(
    *, owner: User, config: dict[str, Any], file: File[Any] | None = None, filename: str = "", **fields: Any
) -> Campaign:
    """Create a draft from a checked config; queue the reading of the file whose objects it speaks of, if any."""
    with transaction.atomic():
        campaign = Campaign.objects.create(owner=owner, config_data=config, **fields)
        if file is not None and not campaign.config.generates:
            importing.upload(campaign, file, filename)
    return campaign


def change(campaign: Campaign, *, file: File[Any] | None = None, **fields: Any) -> None:
    """Change a draft; read its file again if the file, the kind of object or the neighbours changed.

    A file that a changed config has no more use for goes, with what was read from it.

    Raises:
        NotPossible: the campaign has started, or is deleted; of what has started, the message names what is fixed.
    """
    started = Campaign.objects.filter(pk=campaign.pk).exclude(status=Campaign.Status.DRAFT).first()
    if started is not None:
        fixed.demand_same_setup(started, fields)
    with transaction.atomic():
        space_before = lock_draft(campaign.pk).config.space
        Campaign.objects.filter(pk=campaign.pk).update(**fields)
        campaign.refresh_from_db()
        if campaign.config.generates:
            importing.remove(campaign)
        elif file:
            importing.upload(campaign, file, file.name or "")
        elif campaign.config.space != space_before:
            importing.read_again(campaign.catalog)
