"""Texts: a CSV with a column `text`, and `weight` if wanted. Near means similar in latent semantic analysis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

from sampler.objects.items import Item, Progress, Reading, read_table
from sampler.objects.word_nearness import nearest_by_words
from sampler.objects.writing import checked_writing, shown_alike, written_down


class Texts:
    """Pieces of writing."""

    name = "texts"

    def read(self, file: BinaryIO, progress: Progress, pictures: BinaryIO | None = None) -> Reading:
        """Read a CSV of texts; white space at the ends of a text is dropped."""
        return read_table(file, "text", checked_writing, progress, shown_alike)

    def written(self, text: str) -> str:
        """Return the text without white space at its ends."""
        return written_down(text)

    def neighbours(self, items: Sequence[Item], count: int) -> tuple[tuple[int, ...], ...]:
        """Link each text to its nearest by its words."""
        return nearest_by_words([item.content for item in items], count)
