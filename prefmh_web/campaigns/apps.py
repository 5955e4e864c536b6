from typing import Any

from django.apps import AppConfig
from django.core import checks


class CampaignsConfig(AppConfig):
    name = "prefmh_web.campaigns"

    def ready(self) -> None:
        checks.register(_names_of_scorers)


def _names_of_scorers(**_: Any) -> list[checks.CheckMessage]:
    """Refuse a program in SCORERS that has the name of something that is measured already."""
    from prefmh_web.scorers import clashing_names

    return [
        checks.Error(
            f"SCORERS must not name a program “{name}”: that is measured by prefmh itself.",
            hint="Give the program another name.",
            id="prefmh.E001",
        )
        for name in clashing_names()
    ]
