"""Markdown on pages, as HTML that can neither run anything nor load anything: the researcher's own texts, and objects.

In the researcher's texts, a picture stands in the text itself, as a data address: nothing loads from another host.
"""

import re
from html import unescape

from django import template
from django.utils.html import strip_tags
from django.utils.safestring import SafeString, mark_safe

import sampler

register = template.Library()
_HEADING = re.compile(r"<(h[2-4])>(.+?)</\1>")


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
    return mark_safe(sampler.object_html(text))  # noqa: S308 - it has just been cleaned
