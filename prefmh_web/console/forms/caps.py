"""Caps on what a campaign's models may take."""

from __future__ import annotations

from django import forms

from prefmh_web.campaigns.models import Campaign


class CapFields(forms.Form):
    """Both may be left empty; with both, the first to be reached counts."""

    cost_cap = forms.DecimalField(
        min_value=0,
        max_digits=12,
        decimal_places=2,
        required=False,
        label="Models may cost at most",
        help_text="In the currency of your endpoints’ prices. At the cap the campaign pauses. Empty for no cap.",
    )
    request_cap = forms.IntegerField(
        min_value=1,
        max_value=10**12,
        required=False,
        label="Models may be sent at most so many requests",
        help_text="Requests that fail count, too. Empty for no cap.",
    )

    @classmethod
    def of(cls, campaign: Campaign) -> CapFields:
        """Return the form filled in with a campaign's caps."""
        return cls(initial={name: getattr(campaign, name) for name in cls.base_fields}, auto_id="caps_%s")
