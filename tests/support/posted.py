"""A form as a browser sends it back when nobody has touched it."""

from __future__ import annotations

from typing import Any

from django import forms


def sent_back(*parts: forms.BaseForm | forms.BaseFormSet) -> dict[str, Any]:
    """Return the fields of forms and formsets with the values that a page shows, line ends as browsers send them."""
    found: dict[str, Any] = {}
    for part in parts:
        if isinstance(part, forms.BaseFormSet):
            found |= sent_back(part.management_form, *part.forms)
            continue
        for each in part:
            value = _sent(each)
            if value is not None:
                found[each.html_name] = value
    return found


def _sent(field: forms.BoundField) -> Any:
    widget, value = field.field.widget, field.value()
    if isinstance(widget, forms.FileInput):
        return None
    if isinstance(widget, forms.CheckboxInput):
        return "on" if value else None
    if isinstance(widget, forms.SelectMultiple | forms.CheckboxSelectMultiple):
        chosen = {str(getattr(each, "pk", each)) for each in value or ()}
        # In the order of the page, not in that of the draft.
        return [str(choice) for choice, _ in field.field.choices if str(choice) in chosen]
    if value is None:
        return ""
    text = widget.format_value(value)
    text = text[0] if isinstance(text, list) else text
    return str("" if text is None else text).replace("\r\n", "\n").replace("\n", "\r\n")
