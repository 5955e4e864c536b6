"""What can be measured of a text without a model: length, readability, dialogue, variety of words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_WORD = re.compile(r"[^\W_]+(?:[’'-][^\W_]+)*")
# A mark, closing quotes and brackets, then the end or white space and no small letter: “Who is it?” she asked.
# From the first mark of a run on, never going back in it: a text of nothing but marks takes no longer than others.
_SENTENCE_END = re.compile(r"(?:(?<![.!?…])[.!?…]++[”’\"')\]]*+(?=\s+(?P<next>\S)|\s*$))|[。！？]+")
# Typographic “ ”, „ “ and « », else straight ones in pairs. A quotation left open is none.
_QUOTED = re.compile(r"“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|\"[^\"]*\"")
_VOWELS = re.compile(r"[aeiouyàâäáãåæçèéêëìíîïòóôöõøùúûüýÿœ]+")


@dataclass(frozen=True)
class TextDescription:
    """Measures of a text; all are 0 for a text without words.

    words: letters and digits together, an apostrophe or hyphen between them included.
    sentences: ended by a mark or by the end of the text.
    readability: the Flesch reading ease (Flesch 1948, J. Appl. Psychol. 32:221), 206.835 - 1.015 words/sentence - 84.6
        syllables/word: about 100 is very easy, 0 very hard. Made for English; syllables are groups of vowels, so that
        in another language it compares like with like at best.
    dialogue: the share of the characters that stand in quotation marks, marks included, 0 to 1.
    type_token_ratio: different words, capitals aside, by words, 0 to 1.
    """

    words: int
    sentences: int
    readability: float
    dialogue: float
    type_token_ratio: float


def describe_text(text: str) -> TextDescription:
    """Return the measures of any text."""
    words = words_in(text)
    if not words:
        return TextDescription(0, 0, 0.0, 0.0, 0.0)
    sentences = count_sentences(text)
    quoted = sum(len(quotation) for quotation in _QUOTED.findall(text))
    return TextDescription(
        words=len(words),
        sentences=sentences,
        readability=reading_ease(words, sentences),
        dialogue=round(quoted / len(text.strip()), 4),
        type_token_ratio=round(len(set(words)) / len(words), 4),
    )


def words_in(text: str) -> list[str]:
    """Return the words of a text, in small letters."""
    return _WORD.findall(text.casefold())


def reading_ease(words: Sequence[str], sentences: int) -> float:
    """Return the Flesch reading ease of so many sentences, to two decimals; 0 for no words."""
    if not words:
        return 0.0
    syllables = sum(map(_count_syllables, words))
    return round(206.835 - 1.015 * len(words) / sentences - 84.6 * syllables / len(words), 2)


def count_sentences(text: str) -> int:
    """Return how many sentences a text has, the last one perhaps without a mark; a mark alone ends one, too."""
    ends = [found.end() for found in _SENTENCE_END.finditer(text) if not (found["next"] or "").islower()]
    rest = text[ends[-1] :] if ends else text
    return len(ends) + bool(_WORD.search(rest))


def _count_syllables(word: str) -> int:
    """Count groups of vowels; a final e, or ed, that is not sounded is left out. At least one."""
    groups = len(_VOWELS.findall(word))
    silent = re.search(r"[^aeiouy](?:e|es|ed)$", word) and not re.search(
        r"(?:[^aeiouy]le|[td]ed|[sxzcg]es|[cs]hes)$", word
    )
    return max(1, groups - bool(silent))
