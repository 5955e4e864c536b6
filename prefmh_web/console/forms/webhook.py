"""Where a campaign's events are sent, and which."""

from __future__ import annotations

from django import forms

from prefmh_web.campaigns.models import Webhook


class WebhookForm(forms.Form):
    """The address of a program, and what it is told."""

    url = forms.CharField(
        max_length=500,
        label="Address",
        help_text="Such as https://lab.example/hooks/prefmh. Requests are POST, with JSON.",
        widget=forms.TextInput(attrs={"inputmode": "url", "autocomplete": "off", "spellcheck": "false"}),
    )
    events = forms.MultipleChoiceField(
        choices=Webhook.Event.choices,
        widget=forms.CheckboxSelectMultiple,
        initial=Webhook.Event.values,
        label="Events",
    )
