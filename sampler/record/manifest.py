"""What makes a record one that can be traced to a site: each of its files by its hash, and a signature of these hashes.

    manifest.json    {"version": 1, "site", "campaign", "signed_at", "files": {name: SHA-256, hexadecimal}}
    signature.json   {"algorithm": "Ed25519", "fingerprint", "public_key", "signature"}

The signature is of the bytes of manifest.json as they stand in the ZIP (RFC 8032). A key's fingerprint is the SHA-256
of its 32 public bytes; key and signature are in Base64. Both files come last, so a record can be hashed while it is
streamed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from sampler.record import schema
from sampler.record.archives import Allowance, ArchiveError, pieces_of

VERSION = 1
ALGORITHM = "Ed25519"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LARGEST = 2**26
"""Of manifest.json and signature.json, in bytes: a manifest has some hundred for each file."""


class KeyFileError(ValueError):
    """A file or a text that names no key."""


def fingerprint_of(public_key: bytes) -> str:
    """Return the SHA-256 of a public key's 32 bytes, hexadecimal."""
    return hashlib.sha256(public_key).hexdigest()


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
            about: what else it says: site, campaign and signed_at.
        """
        return _as_json({"version": VERSION, **about, "files": self.files})


def signature_of(manifest: bytes, key: Ed25519PrivateKey) -> bytes:
    """Return signature.json of a manifest.json."""
    public = key.public_key().public_bytes_raw()
    return _as_json(
        {
            "algorithm": ALGORITHM,
            "fingerprint": fingerprint_of(public),
            "public_key": base64.b64encode(public).decode(),
            "signature": base64.b64encode(key.sign(manifest)).decode(),
        }
    )


@dataclass(frozen=True)
class Signed:
    """What the two files of a record say.

    Args:
        fingerprint: of the key that signed it; empty where nothing was signed.
        about: the manifest, without the hashes.
        differs: for each file that is not as it was signed, its name, and how it differs.
    """

    fingerprint: str
    about: Mapping[str, Any]
    differs: tuple[tuple[str, str], ...]


def check_signature(archive: zipfile.ZipFile, allowance: Allowance) -> Signed | None:
    """Compare an archive with its manifest, and this with its signature; None if it has neither.

    Raises:
        ArchiveError: the allowance does not cover it.
    """
    names = set(archive.namelist())
    if not names & {schema.MANIFEST, schema.SIGNATURE}:
        return None
    missing = sorted({schema.MANIFEST, schema.SIGNATURE} - names)
    if missing:
        return Signed("", {}, ((missing[0], f"is missing, although there is a {_OTHER[missing[0]]}"),))
    manifest = _small(archive, schema.MANIFEST, allowance)
    fingerprint, problem = _signer(manifest, _small(archive, schema.SIGNATURE, allowance))
    if problem:
        return Signed(fingerprint, {}, ((schema.SIGNATURE, problem),))
    about = _read(manifest)
    files = about.pop("files", None)
    if about.get("version") != VERSION or not isinstance(files, dict):
        return Signed(fingerprint, {}, ((schema.MANIFEST, f"is not of version {VERSION}"),))
    return Signed(fingerprint, about, tuple(_differences(archive, files, allowance)))


_OTHER = {schema.MANIFEST: schema.SIGNATURE, schema.SIGNATURE: schema.MANIFEST}


def _differences(archive: zipfile.ZipFile, files: Mapping[str, Any], allowance: Allowance) -> Iterator[tuple[str, str]]:
    there = [name for name in archive.namelist() if name not in _OTHER]
    yield from ((name, "is missing: the manifest names it") for name in files if name not in there)
    for name in there:
        if name not in files:
            yield name, "is not in the manifest: it was added after the record was signed"
            continue
        digest = hashlib.sha256()
        for piece in pieces_of(archive, name, allowance):
            digest.update(piece)
        if digest.hexdigest() != files[name]:
            yield name, "is not the file that was signed: its SHA-256 is another one than in the manifest"


def _signer(manifest: bytes, signature: bytes) -> tuple[str, str]:
    """Return the fingerprint of the key that a signature names, and what is wrong with it; empty if nothing is."""
    said = _read(signature)
    if said.get("algorithm") != ALGORITHM:
        return "", f"is not of the algorithm {ALGORITHM}"
    try:
        public = base64.b64decode(str(said.get("public_key")), validate=True)
        signed = base64.b64decode(str(said.get("signature")), validate=True)
        key = Ed25519PublicKey.from_public_bytes(public)
    except (binascii.Error, ValueError):
        return "", "holds no public key or no signature"
    fingerprint = fingerprint_of(public)
    if said.get("fingerprint") != fingerprint:
        return fingerprint, f"names another fingerprint than its key has, {fingerprint}"
    try:
        key.verify(signed, manifest)
    except InvalidSignature:
        return fingerprint, f"does not sign this {schema.MANIFEST}"
    return fingerprint, ""


def fingerprints_in(text: str) -> frozenset[str]:
    """Return the fingerprints of the keys that a text names.

    Args:
        text: a fingerprint; or what a file of keys holds: the JSON that a site publishes, or public keys as PEM.

    Raises:
        KeyFileError: it is none of these.
    """
    stripped = text.strip().lower()
    if _SHA256.fullmatch(stripped):
        return frozenset([stripped])
    try:
        if "BEGIN PUBLIC KEY" in text:
            return frozenset(_in_pem(text))
        return frozenset(_in_published(json.loads(text)))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise KeyFileError(
            "it holds no Ed25519 key: neither a site's prefmh-keys.json nor public keys as PEM"
        ) from error


def _in_pem(text: str) -> Iterator[str]:
    end = "-----END PUBLIC KEY-----"
    for block in text.split(end)[:-1]:
        key = load_pem_public_key((block[block.index("-----BEGIN") :] + end).encode())
        if not isinstance(key, Ed25519PublicKey):
            raise ValueError("another kind of key")
        yield fingerprint_of(key.public_bytes_raw())


def _in_published(document: Any) -> Iterator[str]:
    for key in document["keys"]:
        yield fingerprint_of(base64.b64decode(key["public_key"], validate=True))


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


def _as_json(held: Mapping[str, Any]) -> bytes:
    return (json.dumps(held, indent=2, ensure_ascii=False) + "\n").encode()
