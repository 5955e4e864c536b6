"""campaign.yaml of the record: the configuration as others may see it."""

from __future__ import annotations

from collections.abc import Iterator

from prefmh_web.campaigns.models import Campaign
from prefmh_web.config import public
from prefmh_web.setup import export
from prefmh_web.setup.files import NAME


def texts(campaign: Campaign) -> Iterator[tuple[str, str]]:
    """Yield the file's name and what it says."""
    is_over = campaign.status == Campaign.Status.FINISHED
    told = public(campaign.typed_config, is_over=is_over)
    if campaign.hides_seed:
        told.pop("seed", None)
    yield NAME, export.text_of(told)
