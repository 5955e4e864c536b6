"""From the form of a study's texts and shares back to what the protocol has of them."""

from __future__ import annotations

from typing import Any

from prefmh_web.config import Protocol
from prefmh_web.console.forms.protocol_texts import TextsForm
from prefmh_web.console.forms.unshown import changed

PERCENTS = {
    "check_percent": "check_share",
    "gold_percent": "gold_share",
    "repeat_percent": "repeat_share",
}
"""Fields that show a share in hundredths."""


def described(form: TextsForm, before: Protocol) -> dict[str, Any]:
    """Return the parts of a protocol that stand in a checked form.

    What nobody has changed stays as it was: a file may have a share with decimals.
    """
    given, touched = form.cleaned_data, changed(form).union(form.ticked)
    names = {field: PERCENTS.get(field, field) for field in given}
    return {
        name: _value(given[field], field) if field in touched else getattr(before, name)
        for field, name in names.items()
    }


def _value(given: Any, field: str) -> Any:
    if field in PERCENTS:
        return given / 100
    # Browsers send their own line ends.
    return given.replace("\r\n", "\n") if isinstance(given, str) else given
