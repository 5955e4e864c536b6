"""The name of a campaign."""

from django import forms

from prefmh_web.campaigns.models import Campaign


class NameForm(forms.Form):
    """Another name, also after the start."""

    name = forms.CharField(
        max_length=Campaign._meta.get_field("name").max_length, label="Name", help_text="Voters do not see it."
    )
