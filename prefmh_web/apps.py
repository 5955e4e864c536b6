"""What this program does when Django starts, before anything is served."""

from typing import Any

from django.apps import AppConfig, apps
from django.contrib.auth.signals import user_logged_out
from django.core import checks
from django.db.models.signals import post_migrate
from django.http import HttpRequest


class Program(AppConfig):
    """The whole program: its commands, and what it is told by Django."""

    name = "prefmh_web"

    def ready(self) -> None:
        from prefmh_web.operations import logs

        logs.install()
        checks.register(_names_of_scorers)
        post_migrate.connect(_make_group, sender=apps.get_app_config("accounts"), dispatch_uid="accounts.group")
        user_logged_out.connect(_close_pages, dispatch_uid="console.close_pages")


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


def _make_group(using: str, **_: object) -> None:
    """Have the group of researchers in each new database, so that an admin can choose it."""
    from prefmh_web.accounts.models import researchers

    researchers(using)


def _close_pages(request: HttpRequest, **_: object) -> None:
    """Close the live pages of a session that signs out."""
    from prefmh_web.transport import sockets

    if key := request.session.session_key:
        sockets.notify(sockets.session(key))
