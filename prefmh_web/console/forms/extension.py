"""Further steps for a started campaign."""

from django import forms


class ExtensionFields(forms.Form):
    """How many steps each chain walks more."""

    steps = forms.IntegerField(
        min_value=1,
        max_value=1_000_000,
        label="Further steps of each chain",
        help_text="The chains go on from where they stand, as if the setup had asked for so many steps from the start.",
    )
