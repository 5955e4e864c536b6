"""Texts, as words."""

from collections.abc import Iterable
from dataclasses import asdict
from functools import lru_cache
from html import escape
from typing import Any

import sampler
from prefmh_web.objects.excerpts import excerpts_of
from prefmh_web.objects.kind import Look, Measures, Medium, StoredObject, in_one_line
from sampler.judges import Exhibit

_LINE = ("{words} words", "reading ease {readability:.0f}", "{dialogue:.0%} dialogue")


class Texts:
    """Texts, shown as they are."""

    name = "texts"
    noun = "text"
    nouns = "texts"
    source = "row"
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
    medium: Medium = "words"
    is_a_button = True

    def options(self, left: str, right: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return each text's HTML. Its words are of a class: "common" to both beginnings, the "same", or "changed"."""
        first, second = sampler.compare_texts(left, right)
        return {"html": _html_of(first)}, {"html": _html_of(second)}

    def excerpts(self, left: str, right: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return some words of each text, from shortly before the first ones that differ, as pieces of one class."""
        first, second = excerpts_of(left, right)
        return {"pieces": first}, {"pieces": second}

    def exhibit(self, shown: StoredObject, sees_pictures: bool) -> Exhibit:
        """Return the text; a model may write the empty one."""
        return Exhibit(text=shown.content if shown.content.strip() else "(an empty text)")

    def media(self, shown: StoredObject, look: Look, beside: StoredObject | None = None) -> None:
        """Return None: a text has no picture."""

    def measures(self, shown: StoredObject) -> Measures:
        """Return what is measured of a text."""
        return _measures(shown.content)

    def line(self, shown: StoredObject) -> str:
        """Return its length, how easily it reads, and how much of it is dialogue."""
        return in_one_line(_LINE, self.measures(shown))


def _html_of(pieces: Iterable[tuple[str, str]]) -> str:
    # Not a loop in the template: it took nearly a tenth of what a vote on two texts takes.
    return "".join(f'<span class="{kind}">{_lines(text)}</span>' for text, kind in pieces)


def _lines(text: str) -> str:
    return "<br>".join(escape(text, quote=True).replace("\r\n", "\n").replace("\r", "\n").split("\n"))


@lru_cache(maxsize=2048)
def _measures(text: str) -> Measures:
    return asdict(sampler.describe_text(text))
