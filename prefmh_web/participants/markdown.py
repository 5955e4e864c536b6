"""The researcher's own texts: Markdown to HTML that can neither run anything nor load anything.

A picture stands in the text itself, as a data address: nothing loads from another host.
"""

from collections.abc import Sequence

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

_PICTURES = ("data:image/png;", "data:image/jpeg;", "data:image/webp;", "data:image/gif;")


def _picture(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, _env: EnvType) -> str:
    is_in_text = str(tokens[index].attrs["src"]).startswith(_PICTURES)
    return renderer.image(tokens, index, options, _env) if is_in_text else ""


_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_MARKDOWN.add_render_rule("image", _picture)
_TAGS = {
    *("a", "blockquote", "br", "code", "em", "h2", "h3", "h4", "hr", "img", "li", "ol", "p", "pre", "strong", "ul"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


def rendered(text: str) -> SafeString:
    """Return a text in Markdown as HTML. Headings, lists, tables, emphasis, links and pictures in the text stay."""
    html = nh3.clean(
        # The page has a first heading of its own.
        _MARKDOWN.render(text).replace("<h1>", "<h2>").replace("</h1>", "</h2>"),
        tags=_TAGS,
        attributes={"a": {"href"}, "img": {"src", "alt"}},
        attribute_filter=_filtered,
        url_schemes={"http", "https", "mailto", "data"},
        link_rel="noopener noreferrer",
    )
    return mark_safe(html)  # noqa: S308 - it has just been cleaned


def _filtered(tag: str, attribute: str, value: str) -> str | None:
    return None if tag == "a" and attribute == "href" and value.startswith("data:") else value
