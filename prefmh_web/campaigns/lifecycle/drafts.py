"""Saving a campaign's setup while it is a draft."""

from django.core.files.base import File
from django.db import transaction

from prefmh_web.campaigns.catalogs import importing
from prefmh_web.campaigns.lifecycle.status import lock_draft
from prefmh_web.campaigns.models import Campaign


def create(*, owner, file: File | None = None, filename: str = "", **fields) -> Campaign:
    """Create a draft from a checked recipe; queue the reading of the file whose objects it speaks of, if any."""
    with transaction.atomic():
        campaign = Campaign.objects.create(owner=owner, **fields)
        if campaign.has_catalog:
            importing.upload(campaign, file, filename)
    return campaign


def change(campaign: Campaign, *, file: File | None = None, **fields) -> None:
    """Change a draft; read its file again if the file, the kind of object or the neighbours changed.

    A file that a changed recipe has no more use for goes, with what was read from it.

    Raises:
        NotPossible: the campaign has started, or is deleted.
    """
    with transaction.atomic():
        space_before = lock_draft(campaign.pk).recipe["space"]
        Campaign.objects.filter(pk=campaign.pk).update(**fields)
        campaign.refresh_from_db()
        if not campaign.has_catalog:
            importing.remove(campaign)
        elif file:
            importing.upload(campaign, file, file.name)
        elif campaign.recipe["space"] != space_before:
            importing.read_again(campaign.catalog)
