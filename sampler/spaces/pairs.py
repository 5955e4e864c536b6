"""Pairs that are given: chain c stands on the two objects of pair c, and every move is to the other one of them.

A chain of it never leaves its pair. With one vote a step it is exact on these two objects, p0 being half and half, and
its record is a list of votes on a fixed list of pairs: each step is one answer.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

MAX_PAIRS = 1_000
MAX_CHARACTERS = 20_000
_PICTURE = re.compile(r"[0-9a-f]{64}\.png")
_Content = Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS)]


class PairsRecipe(BaseModel):
    """The part of a recipe that says: these pairs, chain c on number c modulo how many there are."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["pairs"] = "pairs"
    objects: Literal["texts", "markdown", "molecules", "images"]
    """Which kind of object they are. A picture is named by the SHA-256 of its file, as in 9f86d081….png."""
    pairs: tuple[tuple[_Content, _Content], ...] = Field(min_length=1, max_length=MAX_PAIRS)

    @field_validator("pairs")
    @classmethod
    def _names_pictures_by_what_they_hold(
        cls, pairs: tuple[tuple[str, str], ...], info: ValidationInfo
    ) -> tuple[tuple[str, str], ...]:
        # Such a name becomes part of the name of a file.
        if info.data.get("objects") == "images":
            for number, pair in enumerate(pairs):
                for place, content in enumerate(pair):
                    if not _PICTURE.fullmatch(content):
                        raise ValueError(
                            f"{number}.{place} must be the SHA-256 of a PNG file with the ending .png, "
                            f"not {content[:80]!r}; `manage.py experiment compare --people` makes such pairs"
                        )
        return pairs

    def build(self) -> Pairs:
        """Return the space."""
        return Pairs(self.pairs)


class Pairs:
    """Two objects for each chain. A state is a place: 2c is the first object of pair c, 2c + 1 its second.

    Args:
        pairs: the objects' contents, shape (pairs, 2).
    """

    is_cheap: ClassVar[bool] = True
    """A draw looks at one row; see `Plan.is_cheap_at`."""

    def __init__(self, pairs: tuple[tuple[str, str], ...]) -> None:
        self._contents = [content for pair in pairs for content in pair]
        self.neighbours = tuple((place ^ 1,) for place in range(len(self._contents)))
        """For each state the other one of its pair."""
        self.log_p0: npt.NDArray[np.float64] = np.full(len(self._contents), -math.log(2))
        """Of each state in its pair, shape (2 pairs,)."""

    def start(self, rng: np.random.Generator, chain: int) -> int:
        """Return the first object of the chain's pair."""
        return 2 * chain % len(self._contents)

    def encode(self, state: int) -> str:
        """Return the place, in decimal digits."""
        return str(state)

    def decode(self, code: str) -> int:
        """Return the state that `encode` wrote.

        Raises:
            ValueError: the code is no place of this space.
        """
        if code.isascii() and code.isdigit() and str(int(code)) == code and int(code) < len(self._contents):
            return int(code)
        raise ValueError(f"code must be a whole number below {len(self._contents)}, not {code[:20]!r}")

    def is_close(self, one: int, other: int) -> bool:
        """True when they are the same place."""
        return one == other

    def content(self, state: int) -> str:
        """Return the text, the SMILES, or the name of the picture."""
        return self._contents[state]
