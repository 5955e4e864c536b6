"""Texts: a CSV with a column `text`, and `weight` if wanted. Near means similar in latent semantic analysis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from sampler.spaces.catalogs.objects import Item, Progress, Reading, read_table
from sampler.spaces.catalogs.proximity import nearest_by_distance

MAX_CHARACTERS = 20_000
_LATENT_DIMENSIONS = 64


class Texts:
    """Pieces of writing."""

    name = "texts"
    accepts = ".csv,text/csv"

    def read(self, file: BinaryIO, progress: Progress) -> Reading:
        """Read a CSV of texts; white space at the ends of a text is dropped."""
        return read_table(file, "text", _checked, progress)

    def neighbours(self, items: Sequence[Item], count: int) -> tuple[tuple[int, ...], ...]:
        """Link each text to its nearest by the cosine of tf-idf word counts projected on 64 dimensions."""
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.preprocessing import normalize

        # Single characters count as words too, so that no text, in any script, comes out empty.
        words = TfidfVectorizer(sublinear_tf=True, token_pattern=r"\w+|[^\w\s]")
        counts = words.fit_transform([item.content for item in items])
        dimensions = min(_LATENT_DIMENSIONS, *(side - 1 for side in counts.shape))
        if dimensions >= 2:
            # Texts made of the same words have no variance for scikit-learn to report the share of.
            with np.errstate(invalid="ignore", divide="ignore"):
                latent = TruncatedSVD(dimensions, random_state=0).fit_transform(counts)
        else:
            latent = counts.toarray()
        # On unit vectors Euclidean order is cosine order, and a text without a direction stays comparable.
        return nearest_by_distance(np.asarray(normalize(latent)), count, "euclidean")


def _checked(text: str) -> str:
    if not text:
        raise ValueError("the text is empty")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"the text has {len(text):,} characters; at most {MAX_CHARACTERS:,} are allowed")
    if "\x00" in text:
        raise ValueError("the text holds a NUL character")
    return text
