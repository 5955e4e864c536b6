"""Records that are changed, and hashed again."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import sampler
from sampler import schema

Files = dict[str, bytes]


def files_of(path: Path) -> Files:
    """Return what a ZIP holds."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(files: Mapping[str, bytes], path: Path) -> Path:
    """Write a ZIP, and return its path."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def hashed(files: Files) -> Files:
    """Return the files of a record with a manifest of them as they are."""
    manifest = sampler.Manifest()
    kept = {name: manifest.whole(name, content) for name, content in files.items() if name != schema.MANIFEST}
    about = {"site": "https://prefmh.example", "campaign": 1, "written_at": "2026-11-25T10:00:00.000+00:00"}
    return kept | {schema.MANIFEST: manifest.document(**about)}


def rows_of(files: Files, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(files[name].decode("utf-8-sig"), newline="")))


def table_of(rows: list[dict[str, str]]) -> bytes:
    """Return rows as a CSV file; there must be one."""
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def with_rows(files: Files, name: str, change: Callable[[list[dict[str, str]]], object]) -> Files:
    """Return the files with a change to the rows of one of the tables, which is then written again."""
    rows = rows_of(files, name)
    change(rows)
    return files | {name: table_of(rows)}
