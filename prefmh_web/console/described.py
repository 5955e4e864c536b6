"""A part of a configuration in the words of its declaration: for pages and for the paragraph about methods.

What is hidden from others is left out, and what stands at its default.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from sampler.declared import ui, ui_of

_MOST_NAMED = 40


def in_words(part: BaseModel) -> str:
    """Return what a part is called, and then each of its fields that is not as usual."""
    said = [str(part.model_config.get("title") or ""), *_fields(part)]
    return "; ".join(each for each in said if each)


def _fields(part: BaseModel) -> Iterator[str]:
    for name, info in type(part).model_fields.items():
        value, shown = getattr(part, name), ui_of(info)
        is_usual = not info.is_required() and value == info.get_default()
        if not (is_usual or value is None or shown.hidden or shown.widget == "none" or info.title is None):
            yield f"{info.title}: {_value(value, info, shown)}"


def _value(value: Any, info: FieldInfo, shown: ui) -> str:
    if isinstance(value, BaseModel):
        return in_words(value)
    if isinstance(value, tuple):
        if len(value) > _MOST_NAMED:
            return f"{len(value)} of them"
        return ", ".join(_value(each, info, shown) for each in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{100 * value:g} %" if shown.unit == "percent" else f"{value:g}"
    return str(shown.labels.get(str(value), value))
