"""Numbers that say something about an object, by name: measured from what a record holds of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from functools import cache
from typing import Any, get_type_hints

from sampler.objects.audio import describe_audio
from sampler.objects.images import describe_image
from sampler.objects.markdown import describe_markdown
from sampler.objects.molecules import describe_molecule
from sampler.objects.writing import describe_text
from sampler.spaces import objects_of
from sampler.spaces.patterns import ImagesConfig

Measure = Callable[[str, str], Mapping[str, float]]
"""From a state's content and code to its properties. A property that cannot be computed is missing, or None."""

MAIN_PROPERTIES: dict[str, list[str]] = {
    "texts": ["words", "readability"],
    "markdown": ["words", "list_items"],
    "molecules": ["heavy_atoms", "log_p", "qed"],
    "images": ["contrast", "colourfulness"],
    "audio": ["seconds", "level"],
}
"""What to follow of each kind of object where nobody has said so."""


_FILES = ("images", "audio")
"""Kinds of which a record does not hold the objects, but for patterns, which are made of their codes."""
DESCRIBE: dict[str, Callable[[Any], Any]] = {
    "texts": describe_text,
    "markdown": describe_markdown,
    "molecules": describe_molecule,
    "images": describe_image,
    "audio": describe_audio,
}
"""What measures an object of each kind: a text, a SMILES, pixels, or the bytes of a recording."""


def measure_of(space: Mapping[str, Any]) -> Measure | None:
    """Return how the objects of a config's space are measured; None where a record does not hold them.

    The function raises ValueError for an object that cannot be read.

    Raises:
        KeyError: `space` is no space of a config.
    """
    kind = objects_of(space)
    describe = DESCRIBE[kind]
    if space["kind"] == "images":
        patterns = ImagesConfig.model_validate(space).build()
        return cache(lambda content, code: asdict(describe(patterns.pixels(patterns.decode(code)))))
    if kind in _FILES:
        return None
    names = properties_of_kind(kind)

    def measured(content: str, code: str) -> Mapping[str, float]:
        values = asdict(describe(content))
        return {name: values[name] for name in names if values[name] is not None}

    return cache(measured)


def property_names(space: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the properties that `measure_of` finds; none where a record does not hold the objects."""
    kind = objects_of(space)
    return () if kind in _FILES and space["kind"] != "images" else properties_of_kind(kind)


def properties_of_kind(kind: str) -> tuple[str, ...]:
    """Return the names of the numbers that are measured of a kind of object, whoever holds the objects.

    Args:
        kind: a name of `OBJECT_KINDS`.
    """
    description = get_type_hints(DESCRIBE[kind])["return"]
    hints = get_type_hints(description)
    return tuple(field.name for field in fields(description) if hints[field.name] != tuple[str, ...])
