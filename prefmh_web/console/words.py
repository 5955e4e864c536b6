"""How pages word things: how long something takes, a part of a configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

import sampler
from sampler.declared import ui, ui_of
from sampler.judges import PromptTemplate

_MINUTE, _DAY = 60, 86_400


def duration(seconds: float) -> str:
    """Return a duration with one unit, or with two where the larger one alone would be coarse: 8 s, 12 min, 3 h 20 min,
    5 days.
    """
    if seconds < 99.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes = round(seconds / _MINUTE)
    if minutes < 100:
        return f"{minutes} min"
    if seconds < 2 * _DAY:
        # Tens of minutes are enough beside hours.
        hours, rest = divmod(round(seconds / 600) * 10, 60)
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    return f"{round(seconds / _DAY):,} days"


_MAX_NAMED, _MAX_NUMBERS = 40, 8


def in_words(part: BaseModel, *, whole: bool = False) -> str:
    """Return what a part is called, and then each of its fields that is not as usual.

    Args:
        whole: fields that are as usual are told, too.
    """
    said = [str(part.model_config.get("title") or ""), *_fields(part, whole)]
    return "; ".join(each for each in said if each)


def value_in_words(part: BaseModel, name: str) -> str:
    """Return what one field of a part holds; empty for nothing."""
    value, info = getattr(part, name), type(part).model_fields[name]
    return "" if value is None else _value(value, info, ui_of(info))


def _fields(part: BaseModel, whole: bool) -> Iterator[str]:
    for name, info in type(part).model_fields.items():
        value, shown = getattr(part, name), ui_of(info)
        is_usual = not whole and not info.is_required() and value == info.get_default()
        if not (is_usual or value is None or shown.hidden or shown.widget == "none" or info.title is None):
            # A percentage brings its sign along.
            yield f"{info.title.removesuffix(', in percent')}: {_value(value, info, shown)}"


def _value(value: Any, info: FieldInfo, shown: ui) -> str:
    if isinstance(value, PromptTemplate):
        return f"version {value.version}"
    if isinstance(value, sampler.PanelistSource):
        # Not everybody who may see a configuration may see the names of its panel.
        return str(value.model_config.get("title"))
    if isinstance(value, BaseModel):
        return in_words(value)
    if isinstance(value, tuple):
        if len(value) > _MAX_NAMED:
            return f"{len(value)} of them"
        if len(value) > _MAX_NUMBERS and all(each is None or isinstance(each, float) for each in value):
            return f"{len(value)} numbers"
        told = (_value(each, info, shown) for each in value)
        return ", ".join(f"({each})" if "; " in each else each for each in told) or "none"
    if shown.choices == "scenarios":
        return f"“{sampler.STORY_SCENARIOS[value].prompt}”"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{100 * value:g} %" if shown.unit == "percent" else f"{value:g}"
    return str(shown.labels.get(str(value), value))
