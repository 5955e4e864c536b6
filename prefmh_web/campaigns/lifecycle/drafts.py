"""Drafts: a configuration is saved, and the file that it speaks of is read."""

from __future__ import annotations

import hashlib
from typing import Any

from django.contrib.auth.models import User
from django.core.files.base import File
from django.db import transaction

from prefmh_web import hooks
from prefmh_web.campaigns.catalogs import importing
from prefmh_web.campaigns.lifecycle.status import lock_draft
from prefmh_web.campaigns.models import Campaign, columns_of
from prefmh_web.config import CampaignConfig, UploadedFile


def create(*, owner: User, config: CampaignConfig, file: File[Any] | None = None, key: str = "") -> Campaign:
    """Create a draft from a checked configuration; queue the reading of its file, if it has one.

    Args:
        config: as its owner has it: with a seed only where one was typed.
        file: under the name that the configuration gives it.
        key: by which a program finds the campaign again.
    """
    with transaction.atomic():
        campaign = Campaign.objects.create(owner=owner, creation_key=key, **columns_of(_with_hash(config, file)))
        if file is not None and config.file is not None:
            importing.upload(campaign, file, config.file.name)
    return campaign


def change(campaign: Campaign, config: CampaignConfig, file: File[Any] | None = None) -> None:
    """Give a draft another configuration; read its file again if the file or the space changed.

    A file that the configuration has no more use for goes, with what was read from it.

    Raises:
        NotPossible: the campaign has started, or is deleted, or the configuration asks for what cannot be.
    """
    with transaction.atomic():
        locked = lock_draft(campaign.pk)
        before = locked.config
        Campaign.objects.filter(pk=campaign.pk).update(**columns_of(_with_hash(config, file)))
        campaign.refresh_from_db()
        for demand in hooks.load(hooks.CHANGES):
            demand(campaign)
        if config.file is None:
            importing.remove(campaign)
        elif file is not None:
            importing.upload(campaign, file, config.file.name)
        elif config.space != before.space:
            importing.read_again(campaign.catalog)


def _with_hash(config: CampaignConfig, file: File[Any] | None) -> CampaignConfig:
    if file is None or config.file is None:
        return config
    digest = hashlib.sha256()
    for piece in file.chunks():
        digest.update(piece)
    file.seek(0)
    return config.model_copy(update={"file": UploadedFile(name=config.file.name, sha256=digest.hexdigest())})
