"""Pieces of writing, for the kinds of object that are read as words: what one may be, how it is measured without a
model (length, readability, dialogue, variety of words), which are near each other by latent semantic analysis of their
words, and where two of them part, for a page that shows them side by side.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal, NamedTuple

import numpy as np

from sampler.objects.items import Graph, nearest_by_distance

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
    if not shows_something(text):
        raise ValueError("the text has only characters that show nothing")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"the text has {len(text):,} characters; at most {MAX_CHARACTERS:,} are allowed")
    return text


def shows_something(text: str) -> bool:
    """Say whether a text has a character that shows."""
    return any(unicodedata.category(character) not in _INVISIBLE for character in _FILLERS.sub("", text))


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


# Different words that are counted one by one. Texts with more have them counted in as many heaps, by a hash.
MAX_WORDS = 2**17
_LATENT_DIMENSIONS = 64
# Single characters count as words too, so that no text, in any script, comes out empty.
_WORD_OR_MARK = r"\w+|[^\w\s]"
# So many at a time: of a word that a text repeats, the counting holds every place.
_TEXTS_AT_ONCE = 200


def nearest_by_words(texts: Sequence[str], count: int) -> Graph:
    """Link each text to its `count` nearest by the cosine of tf-idf word counts projected on 64 dimensions.

    The words of texts with more than `MAX_WORDS` different ones are counted by a hash: rare words share a count,
    and memory does not grow with them.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.preprocessing import normalize

    counts = _weighted_counts(texts)
    dimensions = min(_LATENT_DIMENSIONS, *(side - 1 for side in counts.shape))
    if dimensions >= 2:
        # Texts made of the same words have no variance for scikit-learn to report the share of.
        with np.errstate(invalid="ignore", divide="ignore"):
            latent = TruncatedSVD(dimensions, random_state=0).fit_transform(counts)
    else:
        latent = counts.toarray()
    # On unit vectors Euclidean order is cosine order, and a text without a direction stays comparable.
    return nearest_by_distance(np.asarray(normalize(latent)), count, "euclidean")


def _weighted_counts(texts: Sequence[str]) -> Any:
    """Return tf-idf weights of the words, a sparse matrix of shape (texts, at most `MAX_WORDS`)."""
    from scipy.sparse import vstack
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer, TfidfVectorizer

    if _has_few_words(texts):
        return TfidfVectorizer(sublinear_tf=True, token_pattern=_WORD_OR_MARK).fit_transform(texts)
    hashing = HashingVectorizer(n_features=MAX_WORDS, token_pattern=_WORD_OR_MARK, alternate_sign=False, norm=None)
    parts = [hashing.transform(texts[first : first + _TEXTS_AT_ONCE]) for first in range(0, len(texts), _TEXTS_AT_ONCE)]
    return TfidfTransformer(sublinear_tf=True).fit_transform(vstack(parts, format="csr"))


def _has_few_words(texts: Sequence[str]) -> bool:
    word, seen = re.compile(_WORD_OR_MARK), set[str]()
    for text in texts:
        seen.update(word.findall(text.lower()))
        if len(seen) > MAX_WORDS:
            return False
    return True


PieceKind = Literal["common", "same", "changed"]
# A word with its marks and the white space after it; leading white space alone.
_STRETCH = re.compile(r"\S+\s*|\s+")
# SequenceMatcher may look at every pair of words, and at each pair of equal ones once for each stretch that it finds:
# beyond so many pairs, all that is left counts as changed. A thousand words of prose have ten thousand equal pairs.
_MAX_PAIRS, _MAX_EQUAL_PAIRS = 1_000_000, 30_000


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
    left, right = _STRETCH.findall(one), _STRETCH.findall(other)
    shared = 0
    while shared < min(len(left), len(right)) and left[shared] == right[shared]:
        shared += 1
    matched = _matched(left[shared:], right[shared:])
    return _pieces(left, shared, {a for a, _ in matched}), _pieces(right, shared, {b for _, b in matched})


def _matched(left: list[str], right: list[str]) -> list[tuple[int, int]]:
    # The white space after a word is not part of what is said.
    ours, theirs = [each.rstrip() for each in left], [each.rstrip() for each in right]
    found = Counter(theirs)
    if len(left) * len(right) > _MAX_PAIRS or sum(found[each] for each in ours) > _MAX_EQUAL_PAIRS:
        return []
    matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
    return [(a + i, b + i) for a, b, size in matcher.get_matching_blocks() for i in range(size)]


def _pieces(words: Sequence[str], shared: int, same: set[int]) -> tuple[Piece, ...]:
    def kind_of(index: int) -> PieceKind:
        return "common" if index < shared else "same" if index - shared in same else "changed"

    runs = itertools.groupby(range(len(words)), kind_of)
    return tuple(Piece("".join(words[index] for index in indices), kind) for kind, indices in runs)
