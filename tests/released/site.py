"""The application in this process, on a record of one's choice: a folder with a database and its media."""

import gzip
import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.management import call_command
from django.db import connection, connections
from django.test import override_settings

from tests.released import server
from tests.support import unpacking
from tests.support.in_turn import tasks_in_turn

# As they are called in PREFMH_DATA.
DATABASE, MEDIA = "prefmh.sqlite3", "media"


@contextmanager
def on_record(folder: Path) -> Iterator[None]:
    """Let the application work on the record in a folder, its tasks one after another, with leave to call our model.

    Where there is no database, an empty one is made; one that is there stays as it is until `migrate`.
    """
    usual = connection.settings_dict["NAME"]
    connections.close_all()
    connection.settings_dict["NAME"] = str(folder / DATABASE)
    try:
        with override_settings(MEDIA_ROOT=folder / MEDIA, **server.ALLOWED), tasks_in_turn():
            if not (folder / DATABASE).exists():
                _make_empty(folder)
            yield
    finally:
        connections.close_all()
        connection.settings_dict["NAME"] = usual


def migrate() -> None:
    """Bring the database up to date, as `serve` and `demo` do when they start."""
    call_command("migrate", verbosity=0, interactive=False)


_empty: dict[str, bytes] = {}


def _make_empty(folder: Path) -> None:
    """Make an empty database; by migrating, the first time, which takes seconds."""
    if not _empty:
        migrate()
        _empty[DATABASE] = _compacted(folder)
    else:
        (folder / DATABASE).write_bytes(_empty[DATABASE])


def pack(folder: Path, target: Path) -> None:
    """Write a record's database, compacted, and its media as one archive. Call it while `on_record`."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        database = tarfile.TarInfo(DATABASE)
        compacted = _compacted(folder)
        database.size = len(compacted)
        archive.addfile(database, io.BytesIO(compacted))
        if (folder / MEDIA).exists():
            archive.add(folder / MEDIA, MEDIA, filter=_anonymous)
    target.write_bytes(gzip.compress(content.getvalue(), mtime=0))


def unpack(archive: Path, folder: Path) -> Path:
    """Write the record of an archive into a folder, and return the folder."""
    with tarfile.open(archive) as packed:
        unpacking.unpack(packed, folder)
    return folder


def _compacted(folder: Path) -> bytes:
    copy = folder / "compacted.sqlite3"
    with connection.cursor() as cursor:
        cursor.execute("VACUUM INTO %s", [str(copy)])
    content = copy.read_bytes()
    copy.unlink()
    return content


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Take out of an entry what tells of this machine and moment."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry
