"""From a campaign, in whatever state, to its configuration as a file has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Campaign, Catalog
from prefmh_web.config import CampaignConfig
from prefmh_web.setup import yaml_text

_PIECE = 2**20


def config_of(campaign: Campaign) -> CampaignConfig:
    """Return the configuration of a campaign as its owner has it; of one that was extended, as it stands now.

    Raises:
        NotPossible: its uploaded file is gone.
    """
    config = campaign.typed_config
    if config.file is not None:
        catalog = Catalog.objects.filter(campaign=campaign).first()
        if catalog is None:
            raise NotPossible("The campaign has no uploaded file.")
        if not catalog.file.storage.exists(str(catalog.file.name)):
            raise NotPossible("The uploaded file of the campaign is gone from the server's disk.")
    # Nobody sees a seed before the end.
    return config.model_copy(update={"seed": None}) if campaign.hides_seed else config


def text_of(config: CampaignConfig | dict[str, Any]) -> str:
    """Return `campaign.yaml`. What is empty, or is not given, is left out; all else is written, so that nothing changes
    should a later version have other defaults.

    Args:
        config: as the model, or as the plain data that it dumps.
    """
    data = config.model_dump(mode="json") if isinstance(config, CampaignConfig) else config
    return yaml_text.write(_without_empty(data))


def file_of(catalog: Catalog) -> Iterator[bytes]:
    """Yield the bytes of an uploaded file, a piece at a time.

    Raises:
        FileNotFoundError: it is gone.
    """
    with catalog.file.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _without_empty(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each not in (None, "", [], {})}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value
