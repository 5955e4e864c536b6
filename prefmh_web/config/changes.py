"""What differs between two configurations, and what of it is fixed once a campaign has started."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from sampler.declared import ui_of

_LONGEST_TOLD = 200


@dataclass(frozen=True)
class Fixed:
    """A field that does not change any more.

    Args:
        label: what it is called on the pages.
        why: what would go wrong.
    """

    label: str
    why: str

    @property
    def sentence(self) -> str:
        """What somebody reads who tries to change it."""
        return f"“{self.label}” cannot change after the start: {self.why}."


@dataclass(frozen=True)
class Change:
    """One field that has another value.

    Args:
        path: from the whole configuration.
        old, new: its values, as plain data.
        is_hidden: others may not see them.
    """

    path: tuple[str, ...]
    old: Any
    new: Any
    is_hidden: bool

    def told(self) -> dict[str, Any]:
        """Return what the event of the change says: of a long text its hash, of what is hidden nothing."""
        values = (None, None) if self.is_hidden else (_short(self.old), _short(self.new))
        return {"path": ".".join(self.path), "old": values[0], "new": values[1]}


def changes_between(before: BaseModel, after: BaseModel, path: tuple[str, ...] = ()) -> Iterator[Change]:
    """Yield each field whose value differs; of a part of another kind, and of a list, the whole."""
    for name, info in type(before).model_fields.items():
        old, new = getattr(before, name), getattr(after, name)
        if isinstance(old, BaseModel) and type(old) is type(new):
            yield from changes_between(old, new, (*path, name))
        elif old != new:
            was, now = (each.model_dump(mode="json", include={name}).get(name) for each in (before, after))
            yield Change((*path, name), was, now, is_hidden=bool(ui_of(info).hidden))


def fixed_at(model: type[BaseModel], path: tuple[str, ...]) -> Fixed | None:
    """Return why a field is fixed, or a part that it stands in; None where it may change."""
    name, *rest = path
    info = model.model_fields[name]
    if why := ui_of(info).fixed:
        return Fixed(info.title or name, why)
    inner: Any = info.annotation
    is_part = isinstance(inner, type) and issubclass(inner, BaseModel)
    return fixed_at(inner, tuple(rest)) if is_part and rest else None


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONGEST_TOLD:
        return f"sha256 {hashlib.sha256(value.encode()).hexdigest()[:16]}"
    return value
