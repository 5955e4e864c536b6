"""Patterns that stand for images where there are none yet: drawn from the decoder of this program, always the same."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sampler
from prefmh_web.objects.kind import Pixels

_CONFIG = {
    "version": 1,
    "space": {"kind": "images"},
    "kernel": {"kind": "independent"},
    "judges": [{"question": "Which?", "votes": 1}],
    "chains": 2,
    "steps": 1,
    "seed": 5,
}


@dataclass(frozen=True)
class Pattern:
    """Makes the pattern of this number, 0 or 1."""

    number: int

    def __call__(self) -> Pixels:
        return _drawn(self.number)


@lru_cache
def _drawn(number: int) -> Pixels:
    plan: Any = sampler.parse_config(_CONFIG).build()
    pixels: Pixels = plan.space.pixels(sampler.begin(plan, number).state)
    return pixels
