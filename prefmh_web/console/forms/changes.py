"""What a researcher changes of a campaign that exists: its name, its length, its caps, and a chain that ends early."""

from __future__ import annotations

from django import forms

from prefmh_web.campaigns.models import Campaign

_MOST_WORDS = 500


class NameForm(forms.Form):
    """Another name, also after the start."""

    name = forms.CharField(
        max_length=Campaign._meta.get_field("name").max_length, label="Name", help_text="Voters do not see it."
    )


class ExtensionFields(forms.Form):
    """How many steps each chain walks more."""

    steps = forms.IntegerField(
        min_value=1,
        max_value=1_000_000,
        label="Further steps of each chain",
        help_text="The chains go on from where they stand, as if the setup had asked for so many steps from the start.",
    )


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


class EndForm(forms.Form):
    """The researcher's reason."""

    words = forms.CharField(
        max_length=_MOST_WORDS,
        widget=forms.Textarea(attrs={"rows": 2}),
        label="Why this chain ends here",
        help_text="It becomes part of the export. Name nobody.",
    )
