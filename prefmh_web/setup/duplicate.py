"""A second campaign of the same setup."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import User
from django.core.files.base import File

import sampler
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Campaign
from prefmh_web.config import LONGEST_NAME
from prefmh_web.setup import apply, export
from prefmh_web.setup.problems import SetupError


def duplicate(campaign: Campaign, owner: User, **changes: Any) -> Campaign:
    """Create a draft with the setup of a campaign, in whatever state this is, under a seed of its own.

    Nobody comes with it: a panel is as large, and has numbers for names.

    Args:
        changes: fields of the setup that are other in the copy.

    Raises:
        NotPossible: its file is gone, or it speaks of something that the owner does not have.
    """
    config = export.config_of(campaign)
    name = f"Copy of {config.name}"[:LONGEST_NAME].rstrip()
    # Under the same seed the two would have the same random numbers, also where somebody has typed it.
    copied = config.model_copy(update={"name": name, "seed": None, "judges": sampler.unnamed(config.judges)} | changes)
    try:
        with _file_of(campaign, has_file=config.file is not None) as file:
            return apply.create(copied, owner, file)
    except SetupError as error:
        raise NotPossible(f"This setup cannot be copied. {error.problems[0]}") from error


@contextmanager
def _file_of(campaign: Campaign, *, has_file: bool) -> Iterator[File[Any] | None]:
    if not has_file:
        yield None
        return
    kept = campaign.catalog.file
    # A file of its own, or the draft would point at the one of the other campaign.
    with kept.storage.open(str(kept.name), "rb") as opened:
        yield File(opened)
