"""What a piece of writing may be, for the kinds of object that are read as words."""

from __future__ import annotations

from sampler.objects.characters import demand_storable

MAX_CHARACTERS = 20_000


def checked_writing(text: str) -> str:
    """Return a text of a file as it is.

    Raises:
        ValueError: it is empty or too long.
    """
    if not text:
        raise ValueError("the text is empty")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"the text has {len(text):,} characters; at most {MAX_CHARACTERS:,} are allowed")
    return text


def written_down(text: str) -> str:
    """Return a text that somebody has written down, without white space at its ends.

    Raises:
        ValueError: it is empty, too long, or has a character that cannot be kept.
    """
    demand_storable(text, "the text")
    return checked_writing(text.strip())
