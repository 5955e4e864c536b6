"""Records that are changed, and signed again with a key that a test holds."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import sampler
from sampler import schema

Files = dict[str, bytes]
_SIGNED = (schema.MANIFEST, schema.SIGNATURE)


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


def signed(files: Files, key: Ed25519PrivateKey) -> Files:
    """Return the files of a record with a manifest of them, signed by a key."""
    manifest = sampler.Manifest()
    kept = {name: manifest.whole(name, content) for name, content in files.items() if name not in _SIGNED}
    document = manifest.document(site="https://prefmh.example", campaign=1, signed_at="2026-11-25T10:00:00.000+00:00")
    return kept | {schema.MANIFEST: document, schema.SIGNATURE: sampler.signature_of(document, key)}


def fingerprint_of(key: Ed25519PrivateKey) -> str:
    return sampler.fingerprint_of(key.public_key().public_bytes_raw())


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
