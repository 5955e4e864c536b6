"""Forms in a list, as many as somebody fills in."""

from __future__ import annotations

from typing import Any

from django import forms


def formset_of(form: type[forms.Form], most: int, *, least: int = 0, extra: int = 0) -> type[forms.BaseFormSet[Any]]:
    """Return the formset of these forms.

    Args:
        least, most: how many may be filled in.
        extra: how many empty ones stand below those that are filled in.
    """
    return forms.formset_factory(
        form,
        extra=extra,
        min_num=least,
        validate_min=True,
        max_num=most,
        validate_max=True,
        # Django would build a thousand forms beyond the most, for whoever asks for them.
        absolute_max=2 * most,
    )
