"""Why the chain of a suspended step is ended."""

from django import forms

_MOST_WORDS = 500


class EndForm(forms.Form):
    """The researcher's reason."""

    words = forms.CharField(
        max_length=_MOST_WORDS,
        widget=forms.Textarea(attrs={"rows": 2}),
        label="Why this chain ends here",
        help_text="It becomes part of the export. Name nobody.",
    )
