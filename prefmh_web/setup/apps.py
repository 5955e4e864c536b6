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


def _texts(campaign: "Campaign") -> Iterator[tuple[str, str]]:
    # Only now: a setup is made of the sampler's recipes, and with these come libraries that take a second to import.
    from prefmh_web.setup import record

    return record.texts(campaign)
