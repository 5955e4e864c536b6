"""Files that nobody will ask for again: what a process left that was killed while somebody uploaded.

    incoming/        a file on its way in. Whoever writes one moves it on or removes it within seconds of its last byte
    media/uploads/   a file that arrived. Its row is written in the same breath, or never
    media/kept/      a file on a form that was not saved: see `kept.py`

So what is hours old and named by no row is nobody's.
"""

import logging
import time
from pathlib import Path

from django.conf import settings
from django.core.files.storage import default_storage

from prefmh_web.campaigns.catalogs import kept
from prefmh_web.campaigns.models import Catalog

logger = logging.getLogger(__name__)

FORGOTTEN_AFTER_S = 6 * 60 * 60
_UPLOADS = "uploads"
# Uploads that a row has named: they are looked for once in a process's life, not every few seconds.
_named: set[str] = set()


def remove() -> None:
    """Remove what is forgotten. A folder that cannot be read or written is noted, and no reason to sweep nothing."""
    try:
        _remove_arrivals()
        _remove_uploads()
        _remove_kept()
    except OSError as error:
        logger.warning("forgotten uploads cannot be removed: %s", error.strerror or error)


def _remove_arrivals() -> None:
    for path in Path(settings.FILE_UPLOAD_TEMP_DIR).iterdir():
        try:
            is_forgotten = path.is_file() and _is_old(path.lstat().st_mtime)
        except FileNotFoundError:
            # Moved on in this moment.
            continue
        if is_forgotten:
            path.unlink(missing_ok=True)


def _remove_uploads() -> None:
    if not default_storage.exists(_UPLOADS):
        return
    unknown = {f"{_UPLOADS}/{name}" for name in default_storage.listdir(_UPLOADS)[1]} - _named
    old = {name for name in unknown if _is_old_upload(name)}
    if not old:
        return
    # After the folder was read: a row that came with its file meanwhile is seen.
    _named.update(old.intersection(Catalog.objects.values_list("file", flat=True)))
    for name in old - _named:
        default_storage.delete(name)


def _remove_kept() -> None:
    for name in kept.all_names():
        if _is_old_upload(name):
            default_storage.delete(name)


def _is_old_upload(name: str) -> bool:
    try:
        return _is_old(default_storage.get_modified_time(name).timestamp())
    except FileNotFoundError:
        return False


def _is_old(modified_at: float) -> bool:
    return modified_at < time.time() - FORGOTTEN_AFTER_S
