"""Characters that cannot be kept, and how a message shows what stood in a file."""

from __future__ import annotations

import re

# Control characters, halves of surrogate pairs, what turns the direction of a line, and what Unicode says is none.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_SHOWN_CHARACTERS = 60


def visible(text: str) -> str:
    """Return a text in which every character that shows nothing stands as its escape: the NUL as \\u0000."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def quoted(text: str, longest: int = _SHOWN_CHARACTERS) -> str:
    """Return the beginning of a text in quotation marks, for a message."""
    return f"“{visible(text[:longest])}”"


def demand_storable(text: str, where: str) -> None:
    """Demand characters that every database takes and that UTF-8 can hold.

    Args:
        where: what the text is, as the message begins: "the cell of “text”".

    Raises:
        ValueError: there is another one; the message names it and what to do.
    """
    if found := _UNSTORABLE.search(text):
        name = "a NUL character" if found[0] == "\x00" else "half of a surrogate pair"
        raise ValueError(f"{where} holds {name} (U+{ord(found[0]):04X}); remove it")
