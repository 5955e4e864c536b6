"""Markdown: its words and how it is laid out, measured; and HTML that can neither run nor load anything, written by
markdown-it and cleaned by nh3.

HTML that stands in the Markdown is shown as it is written, but for <br>, <sub> and <sup>. Formulas in TeX, between the
marks that chat windows know, become MathML. No address of another host is ever loaded.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import unescape

import math_core
import nh3
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock, reference
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from sampler.objects.writing import checked_writing, count_sentences, reading_ease, shows_something, words_in


@dataclass(frozen=True)
class MarkdownDescription:
    """Measures of a text in Markdown.

    words, sentences, readability: as of `TextDescription`, of what is read: without marks of Markdown, addresses,
        formulas and code blocks. A heading, a list item or a cell of a table ends a sentence.
    headings: how many there are, of any level.
    list_items: of all lists, nested ones too.
    table_rows: of all tables, without their headings.
    code_lines: lines in code blocks.
    links: how many there are; pictures are none.
    """

    words: int
    sentences: int
    readability: float
    headings: int
    list_items: int
    table_rows: int
    code_lines: int
    links: int


def describe_markdown(text: str) -> MarkdownDescription:
    """Return the measures of any text in Markdown."""
    tokens = _OBJECT.parse(text)
    blocks = [block for block in _blocks(tokens) if words_in(block)]
    words, sentences = [word for block in blocks for word in words_in(block)], sum(map(count_sentences, blocks))
    kinds = [token.type for token in tokens]
    return MarkdownDescription(
        words=len(words),
        sentences=sentences,
        readability=reading_ease(words, sentences),
        headings=kinds.count("heading_open"),
        list_items=kinds.count("list_item_open"),
        # Each table has one row of headings.
        table_rows=kinds.count("tr_open") - kinds.count("thead_open"),
        code_lines=sum(token.content.count("\n") for token in tokens if token.type in ("fence", "code_block")),
        links=sum(child.type == "link_open" for token in tokens for child in token.children or ()),
    )


def _blocks(tokens: list[Token]) -> Iterator[str]:
    """Yield what is read of each paragraph, heading, list item and cell."""
    return (_read(token.children or []) for token in tokens if token.type == "inline")


def _read(children: list[Token]) -> str:
    return "".join(_INSTEAD.get(child.type, child.content) for child in children)


_PICTURES = ("data:image/png;", "data:image/jpeg;", "data:image/webp;", "data:image/gif;")
_TAGS = {
    *("blockquote", "br", "code", "em", "h2", "h3", "h4", "hr", "li", "ol", "p", "pre", "strong", "ul"),
    *("table", "thead", "tbody", "tr", "th", "td", "sub", "sup"),
}
_FORMULA_TAGS = {
    *("math", "semantics", "annotation", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mfrac", "msqrt", "mroot"),
    *("msub", "msup", "msubsup", "munder", "mover", "munderover", "mmultiscripts", "mprescripts", "none"),
    *("mtable", "mtr", "mtd", "menclose", "mphantom", "mpadded"),
}
_FORMULA_ATTRIBUTES = {
    "math": {"display"},
    "annotation": {"encoding"},
    "mo": {"stretchy", "form", "movablelimits", "lspace", "rspace", "minsize", "maxsize", "symmetric"},
    "mi": {"mathvariant"},
    "mspace": {"width"},
    "mfrac": {"linethickness", "displaystyle", "scriptlevel"},
    "mover": {"accent"},
    "munder": {"accentunder"},
    "menclose": {"notation"},
    "mtable": {"displaystyle", "scriptlevel"},
    "mrow": {"displaystyle", "scriptlevel"},
}
_LONGEST_FORMULA = 2_000
_MARKS = {"$$": "$$", "$": "$", "\\[": "\\]", "\\(": "\\)"}
"""What a formula stands between. The first and the third stand on lines of their own."""
_DISPLAYED = ("$$", "\\[")
_MARK_OR_ESCAPED = re.compile(r"\\.|\$\$?", re.DOTALL)
# One that has more lines is none.
_MAX_LINES = 200
_LEADS_SOMEWHERE = re.compile(r"\[[^\]\n]+\]:\s*(?:<|#|\.{0,2}/|[a-z][a-z0-9+.-]*:\S|www\.)", re.IGNORECASE)
_INSTEAD = {"softbreak": "\n", "hardbreak": "\n", "formula": "", "html_inline": ""}
"""What is read in the place of a token's content."""
# Entities, where links and references lead, and tags: what may have letters and show nothing.
_UNREAD = re.compile(r"&#?\w+;|\]\([^()]*\)|^.*\]:.*$|<[^<>]*>", re.MULTILINE)
_PLAIN_TAG = re.compile(r"</?su[bp]>|<br ?/?>", re.IGNORECASE)
# No number with more figures: a blank that wide would push everything else off the page.
_SIZE = re.compile(r"\d{0,2}(\.\d+)?r?em")


def checked_markdown(text: str) -> str:
    """Return a text of a file as `checked_writing` does.

    Raises:
        ValueError: as `checked_writing`, or nothing is left of it on a page.
    """
    text = checked_writing(text)
    if not words_in(_UNREAD.sub("", text)):
        # Only now, as it takes a millisecond or more.
        html = nh3.clean(object_html(text), tags={"hr", "li"})
        if not shows_something(unescape(html)):
            raise ValueError("the text shows nothing once Markdown is laid out")
    return text


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
        tags=_TAGS | _FORMULA_TAGS | {"h5", "h6", "s", "span"},
        attributes={"span": {"title"}, "ol": {"start"}} | _FORMULA_ATTRIBUTES,
        attribute_filter=_without_wide_blanks,
        allowed_classes={"span": {"link", "picture"}, "th": {"centre", "end"}, "td": {"centre", "end"}},
        url_schemes=set(),
    )


def _below_the_first(html: str) -> str:
    # The page has a first heading of its own.
    return html.replace("<h1>", "<h2>").replace("</h1>", "</h2>")


def _without_data_links(tag: str, attribute: str, value: str) -> str | None:
    # Browsers read an address without blanks, and its scheme in any case.
    scheme = re.sub(r"[\x00-\x20]", "", value).lower()
    return None if tag == "a" and attribute == "href" and scheme.startswith("data:") else value


def _without_wide_blanks(tag: str, attribute: str, value: str) -> str | None:
    return None if tag == "mspace" and not _SIZE.fullmatch(value) else value


@lru_cache(maxsize=1)
def _tex() -> math_core.LatexToMathML:
    # Commands that a text defines could grow without end.
    return math_core.LatexToMathML(annotation=True, max_expansions=0)


def _formula_html(_renderer: RendererHTML, tokens: Sequence[Token], index: int, *_: object) -> str:
    """Return a formula as MathML; as it is written, where it is too long or is no TeX that is known."""
    token = tokens[index]
    if len(token.content) > _LONGEST_FORMULA:
        return escapeHtml(token.info)
    try:
        return _tex().convert_with_local_state(token.content, displaystyle=token.markup in _DISPLAYED)
    except math_core.LatexError:
        return escapeHtml(token.info)


def _formula_block_html(renderer: RendererHTML, tokens: Sequence[Token], index: int, *_: object) -> str:
    return f"<p>{_formula_html(renderer, tokens, index)}</p>\n"


def _formula(state: StateInline, silent: bool) -> bool:
    """Read a formula in a line, before backslashes and stars mean something."""
    opening = next((mark for mark in _MARKS if state.src.startswith(mark, state.pos)), None)
    if opening is None:
        return False
    begin = state.pos + len(opening)
    end = _end_of(state.src, begin, _MARKS[opening])
    inner = state.src[begin:end]
    after = end + len(opening)
    # Dollars are money, too: “$5 and $6”.
    is_money = opening == "$" and (inner != inner.strip() or state.src[after : after + 1].isdigit())
    if end < 0 or after > state.posMax or is_money or not inner.strip():
        return False
    if not silent:
        token = state.push("formula", "math", 0)
        token.content, token.markup, token.info = inner, opening, state.src[state.pos : after]
    state.pos = after
    return True


@lru_cache(maxsize=8)
def _marks_in(source: str) -> dict[str, list[int]]:
    """Return where each mark that closes a formula stands. One behind a backslash of its own is none."""
    found: dict[str, list[int]] = {mark: [] for mark in _MARKS.values()}
    for each in _MARK_OR_ESCAPED.finditer(source):
        found.get(each[0], []).append(each.start())
    found["$"] = sorted({*found["$"], *found["$$"]})
    return found


def _end_of(source: str, begin: int, closing: str) -> int:
    """Return where the next mark closes a formula; -1 if none does."""
    marks = _marks_in(source)[closing]
    index = bisect_left(marks, begin)
    return marks[index] if index < len(marks) else -1


def _formula_block(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """Read a formula that has lines of its own: some of them would begin a list or a heading."""
    begin = state.bMarks[first] + state.tShift[first]
    opening = next((mark for mark in _DISPLAYED if state.src.startswith(mark, begin)), "")
    if not opening or state.is_code_block(first):
        return False
    end = _end_of(state.src, begin + len(opening), _MARKS[opening])
    if end < 0 or state.eMarks[min(last, first + _MAX_LINES) - 1] < end:
        return False
    after = next(at for at in range(first, last) if state.eMarks[at] > end) + 1
    within = range(first, after)
    if any(state.isEmpty(at) or state.sCount[at] < state.blkIndent for at in within):
        return False
    if state.src[end + len(opening) : state.eMarks[after - 1]].strip():
        # Words follow it in its line.
        return False
    lines = (state.src[state.bMarks[at] + state.tShift[at] : state.eMarks[at]] for at in within)
    whole = "\n".join(lines).rstrip()
    if not whole[2:-2].strip():
        return False
    if not silent:
        token = state.push("formula_block", "math", 0)
        token.content, token.markup, token.info = whole[2:-2], opening, whole
        token.map = [first, after]
    state.line = after
    return True


def _reference(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """Read where a link leads to: “[1]: https://example.org”. “[Bob]: Yes.” is something said, and is shown."""
    begin = state.bMarks[first] + state.tShift[first]
    return bool(_LEADS_SOMEWHERE.match(state.src, begin)) and reference(state, first, last, silent)


def _plain_tag(state: StateInline, silent: bool) -> bool:
    found = _PLAIN_TAG.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        tag = found[0].lower()
        state.push("hardbreak" if tag.startswith("<br") else "html_inline", "", 0).content = tag
    state.pos = found.end()
    return True


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
# A single line end is one, as in the windows in which people read what models write.
_OBJECT = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
_OBJECT.inline.ruler.before("escape", "formula", _formula)
_OBJECT.inline.ruler.before("escape", "plain_tag", _plain_tag)
_OBJECT.block.ruler.at("reference", _reference)
_OBJECT.block.ruler.before("fence", "formula_block", _formula_block, {"alt": ["paragraph", "blockquote", "list"]})
_OBJECT.add_render_rule("formula", _formula_html)
_OBJECT.add_render_rule("formula_block", _formula_block_html)
_OBJECT.core.ruler.push("align_by_class", _align_by_class)
_OBJECT.add_render_rule("image", _picture_in_words)
_OBJECT.add_render_rule("link_open", _link_in_words)
_OBJECT.add_render_rule("link_close", _end_of_link)
