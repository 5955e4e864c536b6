"""What this program measures of objects itself: RDKit's QED, SA score, logP and weight, and what texts and images have.

A replay computes these again, where the record holds the objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import sampler
from prefmh_web.objects import OBJECT_KINDS, ObjectKind, StoredObject
from prefmh_web.scorers.scorer import Answer, NoScore

_LIBRARIES = {"molecules": "rdkit", "images": "numpy", "audio": "soundfile"}


@dataclass(frozen=True)
class Measured:
    """One measure of a kind of object."""

    name: str
    objects: str

    def description(self) -> dict[str, str]:
        """Return its name, and the version of the library that computes it, where one does."""
        about = {"name": self.name, "kind": "measured"}
        library = _LIBRARIES.get(self.objects)
        return about if library is None else about | {"library": f"{library} {version(library)}"}

    def scores(self, kind: ObjectKind, objects: Sequence[StoredObject]) -> list[Answer]:
        """Return the measure of each object."""
        return [self._score(kind, each) for each in objects]

    def _score(self, kind: ObjectKind, shown: StoredObject) -> Answer:
        try:
            value = kind.measures(shown)[self.name]
        except OSError:
            return NoScore("its file cannot be read")
        return float(value) if isinstance(value, int | float) else NoScore(f"it has no {self.name}")


def offered(objects: str) -> Iterator[Measured]:
    """Yield every number that is measured of a kind of object."""
    for name in sampler.properties_of_kind(objects):
        yield Measured(name, objects)


def names() -> set[str]:
    """Return the names of all of them."""
    return {scorer.name for kind in OBJECT_KINDS for scorer in offered(kind)}
