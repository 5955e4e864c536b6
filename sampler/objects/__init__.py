"""Kinds of object: how files of them are read, which are near each other, what can be measured, how they are drawn.

Numbers that say something about an object have names; they are measured from what a record holds of it.

To add a kind: write a file with what reads an object and tells which are near, as `audio.py` is; give it a row here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from functools import cache
from typing import Any, get_type_hints

from sampler.objects.audio import describe_audio, encoded, timbre
from sampler.objects.images import describe_image, encoded_anew, thumbnail
from sampler.objects.items import FileKind, ListedKind, ObjectKind
from sampler.objects.markdown import checked_markdown, describe_markdown
from sampler.objects.molecules import canonical_smiles, describe_molecule, nearest_molecules
from sampler.objects.writing import checked_writing, describe_text, nearest_by_words, shown_alike
from sampler.spaces import objects_of
from sampler.spaces.patterns import ImagesConfig

_KINDS: tuple[ObjectKind, ...] = (
    ListedKind(
        "texts", describe_text, ("words", "readability"), "text", checked_writing, nearest_by_words, shown_alike
    ),
    ListedKind(
        "markdown", describe_markdown, ("words", "list_items"), "text", checked_markdown, nearest_by_words, shown_alike
    ),
    ListedKind(
        "molecules", describe_molecule, ("heavy_atoms", "log_p", "qed"), "smiles", canonical_smiles, nearest_molecules
    ),
    FileKind("images", describe_image, ("contrast", "colourfulness"), "picture", encoded_anew, thumbnail),
    FileKind("audio", describe_audio, ("seconds", "level"), "recording", encoded, timbre),
)
OBJECT_KINDS: dict[str, ObjectKind] = {kind.name: kind for kind in _KINDS}

Measure = Callable[[str, str], Mapping[str, float]]
"""From a state's content and code to its properties. A property that cannot be computed is missing, or None."""


def measure_of(space: Mapping[str, Any]) -> Measure | None:
    """Return how the objects of a config's space are measured; None where a record does not hold them.

    The function raises ValueError for an object that cannot be read.

    Raises:
        KeyError: `space` is no space of a config.
    """
    kind = OBJECT_KINDS[objects_of(space)]
    describe = kind.describe
    if space["kind"] == "images":
        patterns = ImagesConfig.model_validate(space).build()
        return cache(lambda content, code: asdict(describe(patterns.pixels(patterns.decode(code)))))
    if isinstance(kind, FileKind):
        return None
    names = properties_of_kind(kind.name)

    def measured(content: str, code: str) -> Mapping[str, float]:
        values = asdict(describe(content))
        return {name: values[name] for name in names if values[name] is not None}

    return cache(measured)


def property_names(space: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the properties that `measure_of` finds; none where a record does not hold the objects."""
    kind = OBJECT_KINDS[objects_of(space)]
    # Patterns are made of their codes; of other files a record has the names.
    return () if isinstance(kind, FileKind) and space["kind"] != "images" else properties_of_kind(kind.name)


def properties_of_kind(kind: str) -> tuple[str, ...]:
    """Return the names of the numbers that are measured of a kind of object, whoever holds the objects.

    Args:
        kind: a name of `OBJECT_KINDS`.
    """
    hints = get_type_hints(_description(kind))
    return tuple(name for name in measures_of_kind(kind) if hints[name] != tuple[str, ...])


def measures_of_kind(kind: str) -> tuple[str, ...]:
    """Return the names of all that is measured of a kind of object, words as well."""
    return tuple(field.name for field in fields(_description(kind)))


def _description(kind: str) -> Any:
    return get_type_hints(OBJECT_KINDS[kind].describe)["return"]
