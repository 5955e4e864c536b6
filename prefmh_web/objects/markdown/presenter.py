"""Texts in Markdown, as their headings, lists, tables and code."""

from dataclasses import asdict
from functools import lru_cache
from typing import Any

import sampler
from prefmh_web.objects.excerpts import excerpts_of
from prefmh_web.objects.kind import Look, Measures, Medium, StoredObject, in_one_line
from sampler.judges import Exhibit

_LINE = ("{words} words", "reading ease {readability:.0f}", "{list_items} list items")


class Markdown:
    """Texts in Markdown, rendered for people; models read the Markdown itself."""

    name = "markdown"
    noun = "text"
    nouns = "texts in Markdown"
    source = "row"
    samples = (
        StoredObject("## Tea for two\n\n1. Boil **half a litre** of water.\n2. Wait *three minutes*.\n3. Pour."),
        StoredObject("Boil water, wait, pour. For two cups:\n\n| water | tea |\n|---|---:|\n| 0.5 l | 6 g |"),
    )
    has_differences = False
    medium: Medium = "words"
    is_a_button = False

    def options(self, left: str, right: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return each text as cleaned HTML."""
        return {"html": _html(left)}, {"html": _html(right)}

    def excerpts(self, left: str, right: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return some words of each source, from shortly before the first ones that differ, as pieces."""
        first, second = excerpts_of(left, right)
        return {"pieces": first}, {"pieces": second}

    def exhibit(self, shown: StoredObject, sees_pictures: bool) -> Exhibit:
        """Return the Markdown as it was written."""
        return Exhibit(text=shown.content)

    def media(self, shown: StoredObject, look: Look, beside: StoredObject | None = None) -> None:
        """Return None: a text has no picture."""

    def measures(self, shown: StoredObject) -> Measures:
        """Return what is measured of a text in Markdown."""
        return _measures(shown.content)

    def line(self, shown: StoredObject) -> str:
        """Return its length, how easily it reads, and how much of it is in lists."""
        return in_one_line(_LINE, self.measures(shown))


@lru_cache(maxsize=512)
def _html(text: str) -> str:
    return sampler.object_html(text)


@lru_cache(maxsize=2048)
def _measures(text: str) -> Measures:
    return asdict(sampler.describe_markdown(text))
