"""The demo's three catalogs: the files a researcher could have uploaded, and simulated voters' taste in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from prefmh_web.demo.catalogs import images, molecules, texts

__all__ = ["DEMO_CATALOGS", "DemoCatalog"]


@dataclass(frozen=True)
class DemoCatalog:
    """A catalog file, and what simulated voters think of its items.

    Args:
        objects: the kind of object, a key of `sampler.OBJECT_KINDS`.
        filename: a name for the file.
        write: gives the file's bytes, the same at every call.
        scores: each gives one voter's Bradley-Terry score s(x) in nats, about -2 to 2 over the catalog, from an
            item's `content`.
    """

    objects: str
    filename: str
    write: Callable[[], bytes]
    scores: tuple[Callable[[str], float], ...]


DEMO_CATALOGS = (
    DemoCatalog("texts", "story-openings.csv", texts.write, (texts.gothic_mood, texts.good_writing)),
    DemoCatalog("molecules", "known-drugs.csv", molecules.write, (molecules.drug_likeness,)),
    DemoCatalog("images", "patterns.zip", images.write, (images.colourfulness,)),
)
