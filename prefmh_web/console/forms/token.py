"""A token for a program."""

from django import forms

from prefmh_web.accounts.models import ApiToken


class TokenForm(forms.Form):
    """What a token is called, and what it may do."""

    name = forms.CharField(
        max_length=60, label="Name", help_text="For you: which program has it, such as “analysis notebook”."
    )
    scope = forms.ChoiceField(
        choices=ApiToken.Scope.choices, widget=forms.RadioSelect, initial=ApiToken.Scope.READ, label="It may"
    )
