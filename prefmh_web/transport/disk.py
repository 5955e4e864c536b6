"""A disk that takes no data: which errors say so, and what people are told."""

import errno

from django.db import Error as DatabaseError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# As SQLite and PostgreSQL say it.
_SAID = {
    "disk is full": "the disk is full",
    "No space left on device": "the disk is full",
    "disk I/O error": "the disk cannot be read or written",
    "readonly database": "the database cannot be written",
    "unable to open database file": "the database's file cannot be opened",
}


def is_no_room(error: OSError) -> bool:
    """True for what is raised when a disk, or somebody's share of it, is full."""
    return error.errno in _NO_ROOM


def trouble(error: BaseException) -> str:
    """Return what an error says of the disk, in a few words; empty where it is about something else."""
    if isinstance(error, OSError):
        return "the disk is full" if is_no_room(error) else ""
    if not isinstance(error, DatabaseError):
        return ""
    return next((told for said, told in _SAID.items() if said in str(error)), "")
