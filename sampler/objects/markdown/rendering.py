"""Markdown as HTML that can neither run anything nor load anything: written by markdown-it, then cleaned by nh3.

HTML that stands in the Markdown is shown as it is written, never read. No address of another host is ever loaded.
"""

from __future__ import annotations

from collections.abc import Sequence

import nh3
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

_PICTURES = ("data:image/png;", "data:image/jpeg;", "data:image/webp;", "data:image/gif;")
_TAGS = {
    *("blockquote", "br", "code", "em", "h2", "h3", "h4", "hr", "li", "ol", "p", "pre", "strong", "ul"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


def page_html(text: str) -> str:
    """Return a text that a page's author has written: links lead where they say, to web and mail addresses only, and
    pictures that stand in the text itself, as data, are shown.
    """
    return nh3.clean(
        _below_the_first(_PAGE.render(text)),
        tags=_TAGS | {"a", "img"},
        attributes={"a": {"href"}, "img": {"src", "alt"}},
        attribute_filter=_without_data_links,
        url_schemes={"http", "https", "mailto", "data"},
        link_rel="noopener noreferrer",
    )


def object_html(text: str) -> str:
    """Return an object of a pair, which nobody may have read before.

    A link is its words, with the address as a title: a press on one would lead away from the vote. Of a picture, its
    description is shown.
    """
    return nh3.clean(
        _below_the_first(_OBJECT.render(text)),
        tags=_TAGS | {"h5", "h6", "s", "span"},
        attributes={"span": {"title"}, "ol": {"start"}},
        allowed_classes={"span": {"link", "picture"}, "th": {"centre", "end"}, "td": {"centre", "end"}},
        url_schemes=set(),
    )


def _below_the_first(html: str) -> str:
    # The page has a first heading of its own.
    return html.replace("<h1>", "<h2>").replace("</h1>", "</h2>")


def _without_data_links(tag: str, attribute: str, value: str) -> str | None:
    return None if tag == "a" and attribute == "href" and value.startswith("data:") else value


def _picture_in_text(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    is_in_text = str(tokens[index].attrs["src"]).startswith(_PICTURES)
    return renderer.image(tokens, index, options, env) if is_in_text else ""


def _picture_in_words(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    words = renderer.renderInlineAsText(tokens[index].children, options, env)
    return f'<span class="picture">{escapeHtml(words)}</span>'


def _link_in_words(_renderer: RendererHTML, tokens: Sequence[Token], index: int, *_: object) -> str:
    return f'<span class="link" title="{escapeHtml(str(tokens[index].attrs["href"]))}">'


def _end_of_link(*_: object) -> str:
    return "</span>"


def _align_by_class(state: StateCore) -> None:
    """Columns are aligned by classes: the pages allow no styles in the text."""
    sides = {"text-align:center": "centre", "text-align:right": "end"}
    for token in state.tokens:
        style = token.attrs.pop("style", None) if token.type in ("th_open", "td_open") else None
        if style in sides:
            token.attrs["class"] = sides[str(style)]


_PAGE = MarkdownIt("commonmark", {"html": False}).enable("table")
_PAGE.add_render_rule("image", _picture_in_text)
_OBJECT = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_OBJECT.core.ruler.push("align_by_class", _align_by_class)
_OBJECT.add_render_rule("image", _picture_in_words)
_OBJECT.add_render_rule("link_open", _link_in_words)
_OBJECT.add_render_rule("link_close", _end_of_link)
