"""Markdown on pages, as HTML that can neither run anything nor load anything: the researcher's own texts, and objects.

In the researcher's texts, a picture stands in the text itself, as a data address: nothing loads from another host.
"""

from django import template
from django.utils.safestring import SafeString, mark_safe

import sampler

register = template.Library()


def rendered(text: str) -> SafeString:
    """Return a text in Markdown as HTML. Headings, lists, tables, emphasis, links and pictures in the text stay."""
    return mark_safe(sampler.page_html(text))  # noqa: S308 - it has just been cleaned


@register.filter
def as_markdown(text: str) -> SafeString:
    """Return an object in Markdown as HTML."""
    return mark_safe(sampler.object_html(text))  # noqa: S308 - it has just been cleaned
