"""All that an installation holds, as bytes: every row of every table, every file, and what stored sessions say."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import connection

from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.record import export


def bytes_of_all(*campaigns: Campaign) -> bytes:
    """Return everything that is stored, and new exports of these campaigns, one after the other."""
    return b"\n".join([_tables(), _sessions(), _files(), *map(_archive, campaigns)])


def _tables() -> bytes:
    found: list[bytes] = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            found += [_cell(cell) for row in cursor.fetchall() for cell in row]
    return b"\n".join(found)


def _cell(cell: object) -> bytes:
    return bytes(cell) if isinstance(cell, (bytes, memoryview)) else str(cell).encode()


def _sessions() -> bytes:
    # Compressed and signed, as stored: read here as the server reads them.
    return json.dumps([session.get_decoded() for session in Session.objects.all()]).encode()


def _files() -> bytes:
    root = Path(settings.MEDIA_ROOT)
    return b"\n".join(path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file())


def _archive(campaign: Campaign) -> bytes:
    with zipfile.ZipFile(io.BytesIO(b"".join(export.archive(campaign)))) as archive:
        return b"\n".join(archive.read(name) for name in archive.namelist())
