"""The tests' SQLite database put back as it was, by copying pages: a millisecond, where a flush takes thirty."""

import itertools
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import connection

from prefmh_web.annotate import visit
from prefmh_web.annotate.screens import idle
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.monitoring import trajectories

# Numbers of rows are never given twice in a run: what a process remembers by them is another test's.
_NUMBERS: Iterator[int] = itertools.count(1000, 1000)
_REMEMBERING = tuple(
    f"prefmh_web.{name}." for name in ("annotate", "campaigns", "console", "objects", "participants", "setup")
)
_empty = sqlite3.connect(":memory:", check_same_thread=False)
_numbered_from = 0


def keep_empty() -> None:
    """Remember the database as it is now, before the first test."""
    connection.ensure_connection()
    connection.connection.backup(_empty)
    _number_on()
    connection.close()


def make_empty() -> None:
    """Put the database back as it was before the first test."""
    connection.ensure_connection()
    _empty.backup(connection.connection)
    _number_on()


def _number_on() -> None:
    """Let every table give its next row a number beyond all that were given in this run."""
    global _numbered_from
    _numbered_from = next(_NUMBERS)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM sqlite_sequence")
        cursor.execute(
            "INSERT INTO sqlite_sequence (name, seq) SELECT name, %s FROM sqlite_schema"
            " WHERE type = 'table' AND sql LIKE '%%AUTOINCREMENT%%'",
            [_numbered_from],
        )


@dataclass(frozen=True)
class _Copy:
    """The database and the media after a campaign was made, the numbers of its row and of its owner's, and beyond which
    number all its rows are.
    """

    database: sqlite3.Connection
    media: Path
    campaign: int
    owner: int
    numbered_from: int


_copies: dict[str, _Copy] = {}
_folder = tempfile.TemporaryDirectory(prefix="prefmh-copies-")


def copied(owner, made_of: object, make: Callable[[], Campaign]) -> Campaign:
    """Return the campaign that `make` makes: of the same parts made once in a run, and copied from then on.

    It is made anew where the database has more in it than the owner, and on other databases than SQLite.

    Args:
        made_of: all that `make` depends on; its `repr` tells two apart.
    """
    if not settings.EMBEDDED or not _holds_only_an_owner():
        return make()
    key = repr((owner.username, made_of, settings.SCORERS, settings.LOCAL_MODELS, settings.LOCAL_IMAGE_MODELS))
    if found := _copies.get(key):
        return _restored(found, owner)
    campaign = make()
    database, media = sqlite3.connect(":memory:", check_same_thread=False), Path(_folder.name) / str(len(_copies))
    connection.connection.backup(database)
    if settings.MEDIA_ROOT.exists():
        shutil.copytree(settings.MEDIA_ROOT, media)
    _copies[key] = _Copy(database, media, campaign.pk, owner.pk, _numbered_from)
    return campaign


def _holds_only_an_owner() -> bool:
    """True where nothing but the owner and their group was stored since the database was empty."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_sequence WHERE seq > %s", [_numbered_from])
        filled = {name for (name,) in cursor.fetchall()}
        cursor.execute("SELECT (SELECT count(*) FROM django_session), (SELECT count(*) FROM auth_user)")
        return filled <= {"auth_user", "auth_user_groups"} and cursor.fetchone() == (0, 1)


def _restored(found: _Copy, owner) -> Campaign:
    global _numbered_from
    _numbered_from = found.numbered_from
    found.database.backup(connection.connection)
    if found.media.exists():
        shutil.copytree(found.media, settings.MEDIA_ROOT, dirs_exist_ok=True)
    # Of another test whose campaign had the same number.
    _forget()
    owner.pk = found.owner
    owner.refresh_from_db()
    return Campaign.objects.get(pk=found.campaign)


def _forget() -> None:
    """Empty what this process remembers of campaigns. Connections to servers, which others keep, stay open."""
    for name, module in list(sys.modules.items()):
        if name.startswith(_REMEMBERING):
            for each in vars(module).values():
                if hasattr(each, "cache_clear") and each.__module__ == name:
                    each.cache_clear()
    for remembered in (visit._progress, idle._held_up, trajectories._memory):
        remembered.clear()
