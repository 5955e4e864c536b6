"""Numbers that say something about an object, by name: measured from what a record holds of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from functools import cache
from typing import Any, get_type_hints

from sampler.spaces import objects_of

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


def measure_of(space: Mapping[str, Any]) -> Measure | None:
    """Return how the objects of a config's space are measured; None where a record does not hold them.

    The function raises ValueError for an object that cannot be read.

    Raises:
        KeyError: `space` is no space of a config.
    """
    kind = objects_of(space)
    # Imported when they are needed: RDKit takes long.
    if kind == "texts":
        from sampler.objects.prose import describe_text

        return cache(lambda content, code: asdict(describe_text(content)))
    if kind == "markdown":
        from sampler.objects.markdown.measures import describe_markdown

        return cache(lambda content, code: asdict(describe_markdown(content)))
    if kind == "molecules":
        from sampler.objects.molecules.measures import describe_molecule

        return cache(lambda content, code: _numeric(asdict(describe_molecule(content))))
    if space["kind"] != "images":
        return None
    from sampler.objects.images.measures import describe_image
    from sampler.spaces.patterns import ImagesConfig

    patterns = ImagesConfig.model_validate(space).build()
    return cache(lambda content, code: asdict(describe_image(patterns.pixels(patterns.decode(code)))))


def property_names(space: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the properties that `measure_of` finds; none where a record does not hold the objects."""
    kind = objects_of(space)
    if kind == "audio" or (kind == "images" and space["kind"] != "images"):
        return ()
    description = _description(kind)
    return _numbers_of(description)


def properties_of_kind(kind: str) -> tuple[str, ...]:
    """Return the names of the numbers that are measured of a kind of object, whoever holds the objects.

    Args:
        kind: a name of `OBJECT_KINDS`.
    """
    return _numbers_of(_description(kind))


def _numbers_of(description: Any) -> tuple[str, ...]:
    hints = get_type_hints(description)
    return tuple(field.name for field in fields(description) if hints[field.name] != tuple[str, ...])


def _description(kind: str) -> Any:
    if kind == "texts":
        from sampler.objects.prose import TextDescription

        return TextDescription
    if kind == "markdown":
        from sampler.objects.markdown.measures import MarkdownDescription

        return MarkdownDescription
    if kind == "molecules":
        from sampler.objects.molecules.measures import MoleculeDescription

        return MoleculeDescription
    if kind == "audio":
        from sampler.objects.audio.measures import AudioDescription

        return AudioDescription
    from sampler.objects.images.measures import ImageDescription

    return ImageDescription


def _numeric(measures: Mapping[str, Any]) -> Mapping[str, float]:
    return {name: value for name, value in measures.items() if isinstance(value, int | float)}
