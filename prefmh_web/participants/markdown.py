"""The researcher's own texts: Markdown to HTML that can neither run anything nor load anything.

A picture stands in the text itself, as a data address: nothing loads from another host.
"""

from django.utils.safestring import SafeString, mark_safe

import sampler


def rendered(text: str) -> SafeString:
    """Return a text in Markdown as HTML. Headings, lists, tables, emphasis, links and pictures in the text stay."""
    return mark_safe(sampler.page_html(text))  # noqa: S308 - it has just been cleaned
