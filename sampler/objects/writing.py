"""What a piece of writing may be, for the kinds of object that are read as words."""

from __future__ import annotations

import re
import unicodedata

from sampler.objects.characters import demand_storable

MAX_CHARACTERS = 20_000
_BLANK_LINES = re.compile(r"\A(?:[^\S\r\n]*(?:\r\n|\r|\n))+")
_LINE_END = re.compile(r"\r\n|\r|\n")
# Joiners that show nothing where no word is on both sides. Not those that shape letters, nor marks of direction.
_JOINERS = "\u200b\u2060\ufeff"
_BETWEEN_BLANKS = re.compile(rf"(?<=\s)[{_JOINERS}]+(?=\s)")
_BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001))))
# Characters that show nothing but are in no category of such: fillers, selectors of variants, Braille's blank.
_INVISIBLE = ("Cc", "Cf", "Zs", "Zl", "Zp")
_FILLERS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def checked_writing(text: str) -> str:
    """Return a text of a file without white space at its ends; the first of several lines stays indented.

    Raises:
        ValueError: it is empty, shows nothing, or is too long.
    """
    text = _without_blank_ends(text)
    if not text:
        raise ValueError("the text is empty")
    if all(unicodedata.category(character) in _INVISIBLE for character in _FILLERS.sub("", text)):
        raise ValueError("the text has only characters that show nothing")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"the text has {len(text):,} characters; at most {MAX_CHARACTERS:,} are allowed")
    return text


def written_down(text: str) -> str:
    """Return a text that somebody has written down, without white space at its ends.

    Raises:
        ValueError: it is empty, too long, or has a character that cannot be kept.
    """
    demand_storable(text, "the text")
    return checked_writing(text)


def shown_alike(text: str) -> str:
    """Return what is the same of all texts that look the same, though their characters are others: those in another
    normal form, with other line ends, or with joiners that join nothing.
    """
    text = _LINE_END.sub("\n", unicodedata.normalize("NFC", text)).rstrip(_BLANKS + _JOINERS)
    words = text.lstrip(_BLANKS + _JOINERS)
    before = text[: len(text) - len(words)].translate(dict.fromkeys(map(ord, _JOINERS)))
    return _without_blank_ends(before + _BETWEEN_BLANKS.sub("", words))


def _without_blank_ends(text: str) -> str:
    text = _BLANK_LINES.sub("", text.rstrip())
    return text if _LINE_END.search(text) else text.lstrip()
