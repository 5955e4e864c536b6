"""The seed of a campaign: its hash is told from the start, the seed itself at the end.

    campaign.json until the end    "seed_hash" in the place of "seed"
    campaign.json afterwards       "seed", "seed_hash" and "seed_salt"
    campaign.json always           "seed_was_typed": whether somebody has chosen the seed; otherwise the start drew it

The hash is the SHA-256 of the seed in decimal, a space, and the salt: 128 random bits as 32 hexadecimal digits. Without
the salt, nobody can find the seed by hashing all of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sampler.config import ChainConfig, parse_config
from sampler.record import tables
from sampler.record.differences import Difference, of_file

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
        digest: the hash that was told at the start.
        salt: the random bits; empty until the end.
        was_typed: False where the start drew the seed.
        is_open: False until the end, when the seed is told.
    """

    digest: str
    salt: str
    was_typed: bool
    is_open: bool


def hash_of_seed(seed: int, salt: str) -> str:
    """Return the hash that is told of a seed and its salt, hexadecimal."""
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
        ValueError: a hash or a salt is none; or it is not said whether the seed was typed.
    """
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
        yield of_file(tables.CONFIG, missing, "none", f"one: {SEED} and {SALT} are told together")
    elif (found := hash_of_seed(config.seed, commitment.salt)) != commitment.digest:
        yield of_file(tables.CONFIG, HASH, commitment.digest, f"{found}, the hash of its seed and salt")
