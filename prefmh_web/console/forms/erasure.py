"""Forgetting people, and saying that they are paid."""

from __future__ import annotations

from django import forms

from prefmh_web.participants.erasure import Scope


class ForceForm(forms.Form):
    """Whether those are forgotten, too, who are still to be paid."""

    is_forced = forms.BooleanField(
        required=False,
        label="At once, although somebody is still to be paid",
        help_text="The pay cannot be settled afterwards: they are no longer in payments.csv, and they have no code.",
    )

    def __init__(self, *args, **kwargs):
        kwargs.setdefault("auto_id", "forget_%s")
        super().__init__(*args, **kwargs)


class ErasureForm(ForceForm):
    """Of what somebody is forgotten.

    Args:
        has_id: they came with an id, with which they may have come to other campaigns, too.
    """

    scope = forms.ChoiceField(
        choices=[
            (Scope.PARTICIPATION.value, "this campaign"),
            (Scope.PARTICIPANT.value, "all your campaigns to which they came with the same id"),
        ],
        initial=Scope.PARTICIPATION.value,
        widget=forms.RadioSelect,
        label="Delete their data of",
    )
    is_sure = forms.BooleanField(label="I have read what goes and what stays. It cannot be undone.")
    field_order = ("scope", "is_forced", "is_sure")

    def __init__(self, *args, has_id: bool, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["is_forced"].label = "At once, although they are still to be paid"
        if not has_id:
            del self.fields["scope"]
            del self.fields["is_forced"]

    @property
    def scope_chosen(self) -> Scope:
        """Of what."""
        return Scope(self.cleaned_data.get("scope") or Scope.PARTICIPATION)
