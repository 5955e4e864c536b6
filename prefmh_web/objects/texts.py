"""Texts, as words; and texts in Markdown, as their headings, lists, tables and code.

Markdown on pages is HTML that can neither run anything nor load anything: the researcher's own texts, and objects. In
the researcher's texts, a picture stands in the text itself, as a data address: nothing loads from another host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape, unescape
from itertools import groupby
from operator import itemgetter
from typing import Any

from django import template
from django.utils.html import strip_tags
from django.utils.safestring import SafeString, mark_safe

import sampler
from prefmh_web.objects.kind import ObjectKind, StoredObject
from sampler.judges import ShownObject

Pieces = Sequence[tuple[str, str]]

# In a table: so many words at most, and characters where there are no spaces; so many words before what differs.
_MAX_WORDS = 16
_MAX_CHARACTERS = 240
_WORDS_BEFORE = 4
_WORD = re.compile(r"\s*\S+\s*")
_HEADING = re.compile(r"<(h[2-4])>(.+?)</\1>")
register = template.Library()


class _Written(ObjectKind):
    """What all kinds of texts are alike in."""

    noun = "text"
    source = "row"

    def excerpts(self, left: str, right: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return some words of each text, from shortly before the first ones that differ, as pieces of one class."""
        first, second = _excerpts_of(left, right)
        return {"pieces": first}, {"pieces": second}


class Texts(_Written):
    """Texts, shown as they are."""

    name = "texts"
    nouns = "texts"
    samples = (
        StoredObject(
            "There is a kind of hunger that knows us by name, and it was watching when the peddler reached an inn that "
            "had no other guests."
        ),
        StoredObject(
            "It was a little past sunset when the schoolteacher got off the train at the wrong station, and the world "
            "seemed to be in a generous mood."
        ),
    )
    has_differences = True
    in_line = ("{words} words", "reading ease {readability:.0f}", "{dialogue:.0%} dialogue")

    def options(self, left: str, right: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return each text's HTML. Its words are of a class: "common" to both beginnings, the "same", or "changed"."""
        first, second = sampler.compare_texts(left, right)
        return {"html": _html_of(first)}, {"html": _html_of(second)}

    def shown_object(self, shown: StoredObject, sees_pictures: bool) -> ShownObject:
        """Return the text; a model may write the empty one."""
        return ShownObject(text=shown.content if shown.content.strip() else "(an empty text)")


class Markdown(_Written):
    """Texts in Markdown, rendered for people; models read the Markdown itself."""

    name = "markdown"
    nouns = "texts in Markdown"
    samples = (
        StoredObject("## Tea for two\n\n1. Boil **half a litre** of water.\n2. Wait *three minutes*.\n3. Pour."),
        StoredObject("Boil water, wait, pour. For two cups:\n\n| water | tea |\n|---|---:|\n| 0.5 l | 6 g |"),
    )
    is_a_button = False
    in_line = ("{words} words", "reading ease {readability:.0f}", "{list_items} list items")

    def options(self, left: str, right: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return each text as cleaned HTML."""
        return {"html": _html(left)}, {"html": _html(right)}


@lru_cache(maxsize=512)
def _excerpts_of(left: str, right: str) -> tuple[Pieces, Pieces]:
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
    first = max(0, min(shared - _WORDS_BEFORE, len(words) - _MAX_WORDS))
    shown = words[first : first + _MAX_WORDS]
    merged = [("".join(word for word, _ in group), kind) for kind, group in groupby(shown, key=itemgetter(1))]
    before = [("… ", "common")] if first else []
    return before + _shortened(merged, is_cut=first + _MAX_WORDS < len(words))


def _shortened(pieces: Pieces, is_cut: bool) -> list[tuple[str, str]]:
    """Return pieces of `_MAX_CHARACTERS` in all, with a mark where the text goes on."""
    shown: list[tuple[str, str]] = []
    left = _MAX_CHARACTERS
    for text, kind in pieces:
        if left <= 0:
            break
        shown.append((text[:left], kind))
        is_cut, left = is_cut or len(text) > left, left - len(text)
    return [*shown, (" …", "common")] if is_cut or len(shown) < len(pieces) else shown


def _html_of(pieces: Iterable[tuple[str, str]]) -> str:
    # Not a loop in the template: it took nearly a tenth of what a vote on two texts takes.
    return "".join(f'<span class="{kind}">{_lines(text)}</span>' for text, kind in pieces)


def _lines(text: str) -> str:
    return "<br>".join(escape(text, quote=True).replace("\r\n", "\n").replace("\r", "\n").split("\n"))


@lru_cache(maxsize=512)
def _html(text: str) -> str:
    return sampler.object_html(text)


def rendered(text: str) -> SafeString:
    """Return a text in Markdown as HTML. Headings, lists, tables, emphasis, links and pictures in the text stay."""
    return mark_safe(sampler.page_html(text))  # noqa: S308 - it has just been cleaned


def with_ids(html: SafeString) -> SafeString:
    """Give each heading the id that links lead to, as GitHub does: its letters, digits, hyphens and underscores."""
    found = _HEADING.sub(lambda each: f'<{each[1]} id="{_id_of(each[2])}">{each[2]}</{each[1]}>', html)
    return mark_safe(found)  # noqa: S308 - such an id needs no escaping, and the rest was safe


def _id_of(heading: str) -> str:
    words = unescape(strip_tags(heading)).lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


@register.filter
def as_markdown(text: str) -> SafeString:
    """Return an object in Markdown as HTML."""
    return mark_safe(_html(text))  # noqa: S308 - it is clean
