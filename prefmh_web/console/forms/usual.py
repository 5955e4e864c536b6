"""Whether a field stands as most people leave it, so that it may be folded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.forms.boundfield import BoundField


@dataclass(frozen=True)
class Fold:
    """Fields behind a title."""

    title: str
    fields: tuple[BoundField, ...]
    is_open: bool


def fold_of(title: str, fields: Iterable[BoundField]) -> Fold:
    """Return fields behind a title, open if one of them needs a look."""
    found = tuple(fields)
    return Fold(title, found, any(map(needs_a_look, found)))


def needs_a_look(field: BoundField) -> bool:
    """Return whether a field has an error, or a value that is not the usual one."""
    return bool(field.errors) or bool(field.field.has_changed(field.field.initial, field.value()))
