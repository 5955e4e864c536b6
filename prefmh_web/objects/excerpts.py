"""Of two long texts that begin alike, the part in which they begin to differ: for tables, where there is no room."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter

import sampler

Pieces = Sequence[tuple[str, str]]

# In a table: so many words at most, and characters where there are no spaces; so many words before what differs.
_MOST_WORDS = 16
_MOST_CHARACTERS = 240
_WORDS_BEFORE = 4
_WORD = re.compile(r"\s*\S+\s*")


@lru_cache(maxsize=512)
def excerpts_of(left: str, right: str) -> tuple[Pieces, Pieces]:
    """Return some words of each text, from shortly before the first ones that differ, as pieces like those of
    `sampler.compare_texts`.
    """
    # Long texts take milliseconds, and a table that is followed live shows the same pairs again.
    first, second = sampler.compare_texts(left, right)
    return _excerpt(first), _excerpt(second)


def _excerpt(pieces: Pieces) -> Pieces:
    words = [(word, kind) for text, kind in pieces for word in _WORD.findall(text)]
    # Only what the texts begin with alike is "common", so the first difference comes right after it.
    shared = sum(kind == "common" for _, kind in words)
    first = max(0, min(shared - _WORDS_BEFORE, len(words) - _MOST_WORDS))
    shown = words[first : first + _MOST_WORDS]
    merged = [("".join(word for word, _ in group), kind) for kind, group in groupby(shown, key=itemgetter(1))]
    before = [("… ", "common")] if first else []
    return before + _shortened(merged, is_cut=first + _MOST_WORDS < len(words))


def _shortened(pieces: Pieces, is_cut: bool) -> list[tuple[str, str]]:
    """Return pieces of `_MOST_CHARACTERS` in all, with a mark where the text goes on."""
    shown: list[tuple[str, str]] = []
    left = _MOST_CHARACTERS
    for text, kind in pieces:
        if left <= 0:
            break
        shown.append((text[:left], kind))
        is_cut, left = is_cut or len(text) > left, left - len(text)
    return [*shown, (" …", "common")] if is_cut or len(shown) < len(pieces) else shown
