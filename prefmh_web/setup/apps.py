from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from prefmh_web.campaigns.models import Campaign


class SetupConfig(AppConfig):
    name = "prefmh_web.setup"

    def ready(self) -> None:
        from prefmh_web.campaigns.record import export

        export.also_texts(_texts)


def _texts(campaign: Campaign) -> Iterator[tuple[str, str]]:
    # Only once a record is made: the model of a setup takes what the sampler has, and with it RDKit, which loads long.
    from prefmh_web.setup import record

    return record.texts(campaign)
