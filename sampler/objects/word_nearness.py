"""Which pieces of writing are near each other: latent semantic analysis of their words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from sampler.objects.nearness import nearest_by_distance

# Different words that are counted one by one. Texts with more have them counted in as many heaps, by a hash.
MAX_WORDS = 2**17
_LATENT_DIMENSIONS = 64
# Single characters count as words too, so that no text, in any script, comes out empty.
_WORD = r"\w+|[^\w\s]"
# So many at a time: of a word that a text repeats, the counting holds every place.
_TEXTS_AT_ONCE = 200


def nearest_by_words(texts: Sequence[str], count: int) -> tuple[tuple[int, ...], ...]:
    """Link each text to its `count` nearest by the cosine of tf-idf word counts projected on 64 dimensions.

    The words of texts with more than `MAX_WORDS` different ones are counted by a hash: rare words share a count,
    and memory does not grow with them.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.preprocessing import normalize

    counts = _weighted_counts(texts)
    dimensions = min(_LATENT_DIMENSIONS, *(side - 1 for side in counts.shape))
    if dimensions >= 2:
        # Texts made of the same words have no variance for scikit-learn to report the share of.
        with np.errstate(invalid="ignore", divide="ignore"):
            latent = TruncatedSVD(dimensions, random_state=0).fit_transform(counts)
    else:
        latent = counts.toarray()
    # On unit vectors Euclidean order is cosine order, and a text without a direction stays comparable.
    return nearest_by_distance(np.asarray(normalize(latent)), count, "euclidean")


def _weighted_counts(texts: Sequence[str]) -> Any:
    """Return tf-idf weights of the words, a sparse matrix of shape (texts, at most `MAX_WORDS`)."""
    from scipy.sparse import vstack
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer, TfidfVectorizer

    if _has_few_words(texts):
        return TfidfVectorizer(sublinear_tf=True, token_pattern=_WORD).fit_transform(texts)
    hashing = HashingVectorizer(n_features=MAX_WORDS, token_pattern=_WORD, alternate_sign=False, norm=None)
    parts = [hashing.transform(texts[first : first + _TEXTS_AT_ONCE]) for first in range(0, len(texts), _TEXTS_AT_ONCE)]
    return TfidfTransformer(sublinear_tf=True).fit_transform(vstack(parts, format="csr"))


def _has_few_words(texts: Sequence[str]) -> bool:
    word, seen = re.compile(_WORD), set[str]()
    for text in texts:
        seen.update(word.findall(text.lower()))
        if len(seen) > MAX_WORDS:
            return False
    return True
