"""The researcher's own texts: Markdown to HTML that can neither run anything nor load anything."""

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_TAGS = {
    *("a", "blockquote", "br", "code", "em", "h2", "h3", "h4", "hr", "li", "ol", "p", "pre", "strong", "ul"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


def rendered(text: str) -> SafeString:
    """Return a text in Markdown as HTML. Headings, lists, tables, emphasis and links stay; pictures and the rest go."""
    html = nh3.clean(
        # The page has a first heading of its own.
        _MARKDOWN.render(text).replace("<h1>", "<h2>").replace("</h1>", "</h2>"),
        tags=_TAGS,
        attributes={"a": {"href"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer",
    )
    return mark_safe(html)  # noqa: S308 - it has just been cleaned
