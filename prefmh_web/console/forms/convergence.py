"""What the tab Convergence follows. It comes with the address, so a page can be kept as a bookmark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict

# With 200 chains, each takes some 20 kB of every message to an open page.
MOST_AT_ONCE = 3


class ConvergenceForm(forms.Form):
    """Which properties are followed, and whether the first steps are left out."""

    properties = forms.MultipleChoiceField(
        required=False,
        label="Properties",
        widget=forms.CheckboxSelectMultiple,
        help_text=f"At most {MOST_AT_ONCE} at once.",
    )
    all_steps = forms.BooleanField(required=False, label="Include the first steps in the statistics")

    def __init__(self, asked: QueryDict, names: Sequence[str], usual: str, left_out: int) -> None:
        """Take what the address asks for.

        Args:
            names: of all properties that can be followed.
            usual: the one that is followed where the address names none.
            left_out: how many of the first steps the statistics leave out unless they are asked for.
        """
        data = asked.copy()
        if "properties" not in data:
            data.setlist("properties", [usual])
        super().__init__(data, auto_id="follow_%s")
        choices: Any = [(name, name.replace("_", " ")) for name in names]
        self.fields["properties"].choices = choices  # type: ignore[attr-defined]  # of fields with choices
        if not left_out:
            del self.fields["all_steps"]

    def clean_properties(self) -> list[str]:
        """Refuse more than a page can show.

        Raises:
            ValidationError: there are more.
        """
        chosen: list[str] = self.cleaned_data["properties"]
        if len(chosen) > MOST_AT_ONCE:
            raise ValidationError(f"Choose at most {MOST_AT_ONCE} properties; these are {len(chosen)}.")
        return chosen

    @property
    def chosen(self) -> list[str]:
        """The properties to follow; none where the address asks for something else."""
        return self.cleaned_data["properties"] if self.is_valid() else []

    @property
    def wants_all_steps(self) -> bool:
        """True where the statistics are to include the first steps."""
        return self.is_valid() and bool(self.cleaned_data.get("all_steps"))
