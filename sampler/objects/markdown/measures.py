"""What can be measured of a text in Markdown: its words, and how it is laid out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

from sampler.objects.prose import count_sentences, reading_ease, words_in

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


@dataclass(frozen=True)
class MarkdownDescription:
    """Measures of a text in Markdown.

    words, sentences, readability: as of `TextDescription`, of what is read: without marks of Markdown, addresses and
        code blocks. A heading, a list item or a cell of a table ends a sentence.
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
    tokens = _MARKDOWN.parse(text)
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
    breaks = {"softbreak": "\n", "hardbreak": "\n"}
    return "".join(breaks.get(child.type, child.content) for child in children)
