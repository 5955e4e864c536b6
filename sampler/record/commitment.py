"""The seed of a certified campaign: its hash is published at the start, the seed itself at the end.

    recipe.json until the end    "seed_hash" in the place of "seed"
    recipe.json afterwards       "seed", "seed_hash" and "seed_salt"

The hash is the SHA-256 of the seed in decimal, a space, and the salt: 128 random bits as 32 hexadecimal digits. Without
the salt, nobody can find the seed by hashing all of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sampler.recipe import Recipe, parse_recipe
from sampler.record import schema
from sampler.record.check_chain import Difference, Row

SEED, HASH, SALT = "seed", schema.SEED_HASH, "seed_salt"
"""The keys of recipe.json; steps.csv has a column for the hash."""
SALT_BYTES = 16
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SALT = re.compile(rf"[0-9a-f]{{{2 * SALT_BYTES}}}")
# In the place of a seed that is not known; nothing is drawn from it.
_NO_SEED = 0


@dataclass(frozen=True)
class RecipeDifference(Difference):
    """A difference that is about recipe.json."""

    file: str = schema.RECIPE

    def __str__(self) -> str:
        return f"{self.file}: {self.what}: the export has {self.recorded}, expected {self.recomputed}"


@dataclass(frozen=True)
class Commitment:
    """What a record says of its seed.

    Args:
        digest: the hash that was published at the start.
        salt: the random bits; empty until the end.
        is_open: False until the end, when the seed is told.
    """

    digest: str
    salt: str
    is_open: bool


def hash_of_seed(seed: int, salt: str) -> str:
    """Return the hash that is published of a seed and its salt, hexadecimal."""
    return hashlib.sha256(f"{seed} {salt}".encode()).hexdigest()


def sealed_recipe(recipe: Mapping[str, Any], digest: str) -> dict[str, Any]:
    """Return a recipe, as plain data, with the hash in the place of its seed."""
    return {HASH if name == SEED else name: digest if name == SEED else value for name, value in recipe.items()}


def opened_recipe(recipe: Mapping[str, Any], digest: str, salt: str) -> dict[str, Any]:
    """Return a recipe, as plain data, with its seed and all that shows that it is the one of the hash."""
    return {**recipe, HASH: digest, SALT: salt}


def read_recipe(data: Mapping[str, Any]) -> tuple[Recipe, Commitment | None]:
    """Return the recipe of a recipe.json, and what it says of its seed; None where the campaign is not certified.

    Until the end, the recipe's seed is a stand-in, which nothing may be drawn from.

    Raises:
        RecipeError: the recipe cannot be read.
        ValueError: a hash or a salt is none.
    """
    if HASH not in data:
        return parse_recipe(data), None
    plain = {name: value for name, value in data.items() if name not in (HASH, SALT)}
    digest, salt = data[HASH], data.get(SALT, "")
    if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
        raise ValueError(f"{HASH} in {schema.RECIPE} must be a SHA-256, 64 hexadecimal digits")
    if not isinstance(salt, str) or not (_SALT.fullmatch(salt) or SALT not in data):
        raise ValueError(f"{SALT} in {schema.RECIPE} must be {2 * SALT_BYTES} hexadecimal digits")
    return parse_recipe({SEED: _NO_SEED} | plain), Commitment(digest, salt, SEED in data)


def compare_commitment(recipe: Recipe, commitment: Commitment | None, steps: Sequence[Row]) -> Iterator[Difference]:
    """Yield where the seed is not the one of the hash, or steps.csv has another hash than recipe.json."""
    digest = "" if commitment is None else commitment.digest
    for row in steps:
        if row.get(HASH, "") != digest:
            said = row.get(HASH, "")
            yield Difference(int(row["chain"]), int(row["step"]), HASH, f"“{said}”", f"“{digest}”", row=row)
    if commitment is None or not (commitment.is_open or commitment.salt):
        return
    if not (commitment.is_open and commitment.salt):
        missing = SALT if commitment.is_open else SEED
        yield RecipeDifference(0, 0, missing, "none", f"one: {SEED} and {SALT} are told together")
    elif (found := hash_of_seed(recipe.seed, commitment.salt)) != commitment.digest:
        yield RecipeDifference(0, 0, HASH, commitment.digest, f"{found}, the hash of its seed and salt")
