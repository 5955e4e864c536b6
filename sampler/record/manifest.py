"""What shows that the files of a record are those that were written: manifest.json has the hash of each.

    manifest.json    {"version": 1, "site", "campaign", "written_at", "files": {name: SHA-256, hexadecimal}}

It comes last, so a record can be hashed while it is streamed. Whoever changes a file can hash it again: then only the
content can tell.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sampler.archives import Allowance, ArchiveError, pieces_of
from sampler.record import tables

VERSION = 1
_LARGEST = 2**26
"""Of manifest.json, in bytes: it has some hundred for each file."""


@dataclass
class Manifest:
    """The hashes of a record's files, taken while these are written."""

    files: dict[str, str] = field(default_factory=dict)

    def whole(self, name: str, content: bytes) -> bytes:
        """Note a file that is there as a whole, and return it."""
        self.files[name] = hashlib.sha256(content).hexdigest()
        return content

    def streamed(self, name: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces of a file, and note it after the last one."""
        digest = hashlib.sha256()
        for piece in pieces:
            digest.update(piece)
            yield piece
        self.files[name] = digest.hexdigest()

    def document(self, **about: Any) -> bytes:
        """Return manifest.json.

        Args:
            about: what else it says: site, campaign and written_at.
        """
        held = {"version": VERSION, **about, "files": self.files}
        return (json.dumps(held, indent=2, ensure_ascii=False) + "\n").encode()


@dataclass(frozen=True)
class Listed:
    """What manifest.json says of a record.

    Args:
        about: the manifest, without the hashes.
        differs: for each file that is not as it was written, its name, and how it differs.
    """

    about: Mapping[str, Any]
    differs: tuple[tuple[str, str], ...]


def check_manifest(archive: zipfile.ZipFile, allowance: Allowance) -> Listed:
    """Compare an archive with its manifest.

    Raises:
        ArchiveError: the allowance does not cover it.
    """
    if tables.MANIFEST not in archive.namelist():
        return Listed({}, ((tables.MANIFEST, "is missing: every record has one"),))
    about = _read(_small(archive, tables.MANIFEST, allowance))
    files = about.pop("files", None)
    if about.get("version") != VERSION or not isinstance(files, dict):
        return Listed({}, ((tables.MANIFEST, f"is not of version {VERSION}"),))
    return Listed(about, tuple(_differences(archive, files, allowance)))


def _differences(archive: zipfile.ZipFile, files: Mapping[str, Any], allowance: Allowance) -> Iterator[tuple[str, str]]:
    there = [name for name in archive.namelist() if name != tables.MANIFEST]
    yield from ((name, "is missing: the manifest names it") for name in files if name not in there)
    for name in there:
        if name not in files:
            yield name, "is not in the manifest: it was added after the record was written"
            continue
        digest = hashlib.sha256()
        for piece in pieces_of(archive, name, allowance):
            digest.update(piece)
        if digest.hexdigest() != files[name]:
            yield name, "is not the file that was written: its SHA-256 is another one than in the manifest"


def _small(archive: zipfile.ZipFile, name: str, allowance: Allowance) -> bytes:
    content = bytearray()
    for piece in pieces_of(archive, name, allowance):
        content += piece
        if len(content) > _LARGEST:
            raise ArchiveError(f"“{name}” in the ZIP is larger than {_LARGEST // 2**20} MiB.")
    return bytes(content)


def _read(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
