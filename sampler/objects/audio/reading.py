"""Audio: a ZIP of recordings, with a `weights.csv` (columns file, weight, and others) inside if wanted.

Every recording is decoded and encoded again, so nothing but samples reaches a voter's browser. How loud it is stays
as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from sampler.objects.archives import Archive
from sampler.objects.audio.coding import encoded
from sampler.objects.audio.measures import timbre
from sampler.objects.folders import read_folder
from sampler.objects.items import Collector, Item, Progress, Reading
from sampler.objects.nearness import nearest_by_distance


class Audio:
    """Recordings: speech, music, noises."""

    name = "audio"

    def read(self, file: BinaryIO, progress: Progress, pictures: BinaryIO | None = None) -> Reading:
        """Read a ZIP of recordings of at most five minutes; tags and pictures in them are dropped."""
        return read_folder(Archive(file), "recording", encoded, progress, Collector(pictures))

    def written(self, text: str) -> str:
        """Refuse: a recording is samples.

        Raises:
            ValueError: always.
        """
        raise ValueError("a recording cannot be written down")

    def neighbours(self, items: Sequence[Item], count: int) -> tuple[tuple[int, ...], ...]:
        """Link each recording to its nearest by timbre: see `measures.timbre`."""
        return nearest_by_distance(np.stack([timbre(item.picture) for item in items]), count, "euclidean")
