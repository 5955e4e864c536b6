"""Where two texts part, for a page that shows them side by side."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

PieceKind = Literal["common", "same", "changed"]
# A word with its marks and the white space after it; leading white space alone.
_WORD = re.compile(r"\S+\s*|\s+")
# SequenceMatcher may look at every pair of words, and at each pair of equal ones once for each stretch that it finds:
# beyond so many pairs, all that is left counts as changed. A thousand words of prose have ten thousand equal pairs.
_MOST_PAIRS, _MOST_EQUAL_PAIRS = 1_000_000, 30_000


class Piece(NamedTuple):
    """A stretch of a text: "common" to both beginnings, the "same" words later on, or "changed"."""

    text: str
    kind: PieceKind


def compare_texts(one: str, other: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Return each text cut into pieces that concatenate to it; compare_texts(b, a) is the same the other way round.

    The common beginning ends between words. After it words are matched in order (Ratcliff and Obershelp, by difflib).
    Neighbouring pieces are of different kinds; an empty text has none.
    """
    # difflib's matching depends on which text comes first: take them in an order that the arguments do not set.
    if (len(one), one) > (len(other), other):
        second, first = compare_texts(other, one)
        return first, second
    left, right = _WORD.findall(one), _WORD.findall(other)
    shared = 0
    while shared < min(len(left), len(right)) and left[shared] == right[shared]:
        shared += 1
    matched = _matched(left[shared:], right[shared:])
    return _pieces(left, shared, {a for a, _ in matched}), _pieces(right, shared, {b for _, b in matched})


def _matched(left: list[str], right: list[str]) -> list[tuple[int, int]]:
    # The white space after a word is not part of what is said.
    ours, theirs = [each.rstrip() for each in left], [each.rstrip() for each in right]
    found = Counter(theirs)
    if len(left) * len(right) > _MOST_PAIRS or sum(found[each] for each in ours) > _MOST_EQUAL_PAIRS:
        return []
    matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
    return [(a + i, b + i) for a, b, size in matcher.get_matching_blocks() for i in range(size)]


def _pieces(words: Sequence[str], shared: int, same: set[int]) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    for place, word in enumerate(words):
        kind: PieceKind = "common" if place < shared else "same" if place - shared in same else "changed"
        if pieces and pieces[-1].kind == kind:
            pieces[-1] = Piece(pieces[-1].text + word, kind)
        else:
            pieces.append(Piece(word, kind))
    return tuple(pieces)
