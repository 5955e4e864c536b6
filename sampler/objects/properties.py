"""Numbers that say something about an object, by name: measured from what a record holds of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from functools import cache
from typing import Any, get_type_hints

from sampler.objects import OBJECT_KINDS
from sampler.objects.items import FileKind
from sampler.spaces import objects_of
from sampler.spaces.patterns import ImagesConfig

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
    description = get_type_hints(OBJECT_KINDS[kind].describe)["return"]
    hints = get_type_hints(description)
    return tuple(field.name for field in fields(description) if hints[field.name] != tuple[str, ...])
