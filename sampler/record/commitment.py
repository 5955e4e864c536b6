"""What shows that a record is the one that was written: the hash of its seed, and the hashes of its files.

    campaign.json until the end    "seed_hash" in the place of "seed"
    campaign.json afterwards       "seed", "seed_hash" and "seed_salt"
    campaign.json always           "seed_was_typed": whether somebody has chosen the seed; otherwise the start drew it

The hash is the SHA-256 of the seed in decimal, a space, and the salt: 128 random bits as 32 hexadecimal digits. Without
the salt, nobody can find the seed by hashing all of them.

    manifest.json    {"version": 1, "site", "campaign", "written_at", "files": {name: SHA-256, hexadecimal}}

It comes last, so a record can be hashed while it is streamed. Whoever changes a file can hash it again: then only the
content can tell.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sampler.archives import Allowance, pieces_of
from sampler.config import ChainConfig, parse_config
from sampler.record import tables
from sampler.record.record import Difference, Finding, of_file

SEED, HASH, SALT, TYPED = "seed", "seed_hash", "seed_salt", "seed_was_typed"
"""The keys of campaign.json."""
SALT_BYTES = 16
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SALT = re.compile(rf"[0-9a-f]{{{2 * SALT_BYTES}}}")
# In the place of a seed that is not known; nothing is drawn from it.
_NO_SEED = 0


@dataclass(frozen=True)
class Commitment:
    """What a record says of its seed.

    Args:
        digest: the hash that was published at the start.
        salt: the random bits; empty until the end.
        was_typed: False where the start drew the seed.
        is_open: False until the end, when the seed is revealed.
    """

    digest: str
    salt: str
    was_typed: bool
    is_open: bool


def hash_of_seed(seed: int, salt: str) -> str:
    """Return the hash that is published of a seed and its salt, hexadecimal."""
    return hashlib.sha256(f"{seed} {salt}".encode()).hexdigest()


def sealed_config(config: Mapping[str, Any], digest: str, *, was_typed: bool) -> dict[str, Any]:
    """Return a config, as plain data, with the hash in the place of its seed."""
    others = {name: value for name, value in config.items() if name != SEED}
    return {**others, HASH: digest, TYPED: was_typed}


def opened_config(config: Mapping[str, Any], digest: str, salt: str, *, was_typed: bool) -> dict[str, Any]:
    """Return a config, as plain data, with its seed and all that shows that it is the one of the hash."""
    return {**config, HASH: digest, SALT: salt, TYPED: was_typed}


def read_config(data: Mapping[str, Any]) -> tuple[ChainConfig, Commitment | None]:
    """Return the config of a campaign.json, and what it says of its seed; None where that is the seed alone.

    Until the end, the config's seed is a stand-in, which nothing may be drawn from.

    Raises:
        ConfigError: the config cannot be read.
        ValueError: it is of another version; a hash or a salt is none; or it is not said whether the seed was typed.
    """
    if (version := data.get("version", VERSION)) != VERSION:
        raise ValueError(
            f"{tables.CONFIG} is of version {version}, not {VERSION}: read it with the prefmh that wrote it"
        )
    # What the website has beside what fixes the chains is not the sampler's to read.
    plain = {name: value for name, value in data.items() if name in ChainConfig.model_fields}
    if HASH not in data:
        return parse_config(plain), None
    digest, salt = data[HASH], data.get(SALT, "")
    if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
        raise ValueError(f"{HASH} in {tables.CONFIG} must be a SHA-256, 64 hexadecimal digits")
    if not isinstance(salt, str) or not (_SALT.fullmatch(salt) or SALT not in data):
        raise ValueError(f"{SALT} in {tables.CONFIG} must be {2 * SALT_BYTES} hexadecimal digits")
    if not isinstance(data.get(TYPED), bool):
        raise ValueError(f"{TYPED} in {tables.CONFIG} must be true or false")
    return parse_config({SEED: _NO_SEED} | plain), Commitment(digest, salt, data[TYPED], SEED in data)


def compare_commitment(config: ChainConfig, commitment: Commitment | None) -> Iterator[Difference]:
    """Yield that the seed is not the one of the hash."""
    if commitment is None or not (commitment.is_open or commitment.salt):
        return
    if not (commitment.is_open and commitment.salt):
        missing = SALT if commitment.is_open else SEED
        yield of_file(tables.CONFIG, missing, "none", f"one: {SEED} and {SALT} are revealed together")
    elif (found := hash_of_seed(config.seed, commitment.salt)) != commitment.digest:
        yield of_file(tables.CONFIG, HASH, commitment.digest, f"{found}, the hash of its seed and salt")


VERSION = 1
_LARGEST = 2**26
"""Of manifest.json, in bytes: it has some hundred for each file."""


@dataclass
class Manifest:
    """The hashes of a record's files, taken while these are written."""

    files: dict[str, str] = field(default_factory=dict)

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


def check_manifest(archive: zipfile.ZipFile, allowance: Allowance) -> tuple[dict[str, Any], tuple[Finding, ...]]:
    """Return what an archive's manifest says beside the hashes, and which files are not as they were written.

    Raises:
        ArchiveError: the allowance does not cover it.
    """
    if tables.MANIFEST not in archive.namelist():
        return {}, (Finding(tables.MANIFEST, None, "is missing: every record has one"),)
    whole = Allowance(min(allowance.left, _LARGEST))
    about = _read(b"".join(pieces_of(archive, tables.MANIFEST, whole)))
    files = about.pop("files", None)
    if about.get("version") != VERSION or not isinstance(files, dict):
        return {}, (Finding(tables.MANIFEST, None, f"is not of version {VERSION}"),)
    differs = _differences(archive, files, allowance)
    return about, tuple(Finding(file, None, message) for file, message in differs)


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


def _read(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
