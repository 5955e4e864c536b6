"""Fields that are fixed after the start: shown as they are, and refused if something else is posted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any

from django import forms


def fix(form: forms.BaseForm, names: Iterable[str]) -> None:
    """Let nobody type in fields of a form."""
    for name in names:
        form.fields[name].disabled = True


def changed_though_fixed(form: forms.BaseForm) -> Iterator[str]:
    """Yield the fixed fields for which something else is posted than they hold. A browser posts nothing for them."""
    for name, shown in form.fields.items():
        html_name = form.add_prefix(name)
        if not shown.disabled or html_name not in form.data:
            continue
        field = copy(shown)
        # Django passes over what is posted for a disabled field.
        field.disabled = False
        posted = field.widget.value_from_datadict(form.data, form.files, html_name)
        if field.has_changed(form.get_initial_for_field(shown, name), posted):
            yield name


def as_posted(form: forms.BaseForm) -> dict[str, Any]:
    """Return what a browser would post of a form that nobody has touched and whose fields are not fixed."""
    held: dict[str, Any] = {}
    for bound in form:
        value = bound.value()
        if isinstance(bound.field, forms.BooleanField):
            held |= {bound.html_name: "on"} if value else {}
        else:
            held[bound.html_name] = "" if value is None else str(value)
    return held
