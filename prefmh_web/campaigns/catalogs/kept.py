"""Files that a researcher has chosen on a form that was not saved: kept for the next try, so that nobody uploads twice.

    kept/<researcher>/<token>    for hours; a few for each researcher, of which a new one takes the oldest's place

A form carries a file's ticket, which is signed. It opens a file of the researcher who has sent it only.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from django.core import signing
from django.core.files.base import File
from django.core.files.storage import default_storage

FOLDER = "kept"
# As long as what nobody asks for again: see `leftovers.py`.
KEPT_FOR_S = 6 * 60 * 60
MOST_FILES = 4
_SALT = "prefmh_web.campaigns.catalogs.kept"


@dataclass(frozen=True)
class Kept:
    """A file that is kept.

    Args:
        name: in the storage.
        filename: as the researcher knows it.
    """

    name: str
    filename: str

    @property
    def ticket(self) -> str:
        """What a form carries of it."""
        return signing.dumps([self.name, self.filename], salt=_SALT)

    def open(self) -> File[Any]:
        """Return the file, under the name that the researcher knows.

        Raises:
            FileNotFoundError: it was removed in this moment.
        """
        file: File[Any] = default_storage.open(self.name)
        file.name = self.filename
        return file

    def remove(self) -> None:
        """Remove it."""
        default_storage.delete(self.name)


def keep(researcher_id: int, file: File[Any]) -> Kept:
    """Keep a file of a researcher."""
    _make_room(researcher_id)
    file.seek(0)
    name = default_storage.save(f"{_folder(researcher_id)}/{secrets.token_urlsafe(24)}", file)
    return Kept(name, (file.name or "")[-255:])


def by_ticket(researcher_id: int, ticket: str) -> Kept | None:
    """Return the file of a ticket; None if it is none of the researcher's, too old, or gone."""
    try:
        name, filename = signing.loads(ticket, salt=_SALT, max_age=KEPT_FOR_S)
    except signing.BadSignature:
        return None
    is_theirs = name.startswith(f"{_folder(researcher_id)}/")
    return Kept(name, filename) if is_theirs and default_storage.exists(name) else None


def all_names() -> list[str]:
    """Return the names of all files that are kept."""
    if not default_storage.exists(FOLDER):
        return []
    return [name for folder in default_storage.listdir(FOLDER)[0] for name in _names_in(f"{FOLDER}/{folder}")]


def _make_room(researcher_id: int) -> None:
    found = _names_in(_folder(researcher_id))
    oldest_first = sorted(found, key=default_storage.get_modified_time)
    for name in oldest_first[: max(0, len(found) - MOST_FILES + 1)]:
        default_storage.delete(name)


def _names_in(folder: str) -> list[str]:
    if not default_storage.exists(folder):
        return []
    return [f"{folder}/{name}" for name in default_storage.listdir(folder)[1]]


def _folder(researcher_id: int) -> str:
    return f"{FOLDER}/{researcher_id}"
