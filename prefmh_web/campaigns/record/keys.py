"""The site's keys, with which it signs records: a file that its owner alone can read, outside the database.

    {"current": {"private_key": PEM, "made_at": ...}, "retired": [as published, ...]}

It is made when the first record is signed, and replaced as a whole when the key is rotated. Of a retired key the public
part is kept, so that records that it has signed can still be told from others.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from django.conf import settings
from django.utils import timezone

import sampler
from sampler import schema


class UnusableKeysError(Exception):
    """The file of keys cannot be read, or holds no key; the message names it."""


@dataclass(frozen=True)
class PublicKey:
    """A key as it is published.

    Args:
        public: its 32 bytes.
        made_at, retired_at: moments as the record writes them; `retired_at` is empty of the key that signs.
    """

    public: bytes
    made_at: str
    retired_at: str = ""

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of its bytes, hexadecimal."""
        return sampler.fingerprint_of(self.public)

    def published(self) -> dict[str, str | None]:
        """Return what the site tells of it."""
        return {
            "algorithm": sampler.ALGORITHM,
            "fingerprint": self.fingerprint,
            "public_key": base64.b64encode(self.public).decode(),
            "made_at": self.made_at,
            "retired_at": self.retired_at or None,
        }


def signing_key() -> Ed25519PrivateKey:
    """Return the key that signs; make it, if there is none yet.

    Raises:
        UnusableKeysError: the file cannot be read or written, or holds no key.
    """
    return _private(_kept())


def public_keys() -> list[PublicKey]:
    """Return the keys with which records may have been signed, the one that signs now first.

    Raises:
        UnusableKeysError: as `signing_key`.
    """
    kept = _kept()
    try:
        retired = [
            PublicKey(base64.b64decode(each["public_key"]), each["made_at"], each["retired_at"])
            for each in kept["retired"]
        ]
        current = PublicKey(_private(kept).public_key().public_bytes_raw(), kept["current"]["made_at"])
    except (KeyError, TypeError, ValueError) as error:
        raise UnusableKeysError(f"{_path()} holds no keys: {error}") from error
    return [current, *reversed(retired)]


def rotate() -> PublicKey:
    """Retire the key that signs, and make another; return the new one.

    Raises:
        UnusableKeysError: as `signing_key`.
    """
    # There is one to retire.
    _kept()
    try:
        with _alone():
            current, *retired = public_keys()
            old = [*reversed(retired), replace(current, retired_at=_now())]
            os.replace(_draft([each.published() for each in old]), _path())
    except OSError as error:
        raise UnusableKeysError(f"{_path()} cannot be replaced: {error.strerror}") from error
    return public_keys()[0]


def _kept() -> dict[str, Any]:
    path = _path()
    try:
        if not path.exists():
            # Written whole and readable by its owner only, then named: of two processes that start at once one wins.
            draft = _draft([])
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)
            draft.unlink()
        return _read()
    except OSError as error:
        raise UnusableKeysError(f"{path} cannot be read or written: {error.strerror}") from error


def _read() -> dict[str, Any]:
    try:
        kept = json.loads(_path().read_text())
    except ValueError as error:
        raise UnusableKeysError(f"{_path()} holds no keys: {error}") from error
    if not isinstance(kept, dict) or not isinstance(kept.get("current"), dict):
        raise UnusableKeysError(f"{_path()} holds no keys. Restore it from a backup; without it, a new one is made.")
    return kept


def _draft(retired: list[Any]) -> Path:
    """Write a file with a new key beside the one that is used, and return its path."""
    path = _path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    private = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    draft = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    kept = {"current": {"private_key": private, "made_at": _now()}, "retired": retired}
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        file.write(json.dumps(kept, indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    return draft


def _private(kept: dict[str, Any]) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(kept["current"]["private_key"].encode(), None)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UnusableKeysError(f"{_path()} holds no key that signs: {error}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UnusableKeysError(f"{_path()} holds another kind of key than {sampler.ALGORITHM}.")
    return key


@contextmanager
def _alone() -> Iterator[None]:
    """Keep others from replacing the file meanwhile: of two who rotate at once, the second sees what the first did."""
    with open(_path().with_name(f"{_path().name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _path() -> Path:
    return Path(settings.SIGNING_KEYS)


def _now() -> str:
    return schema.moment(timezone.now())
