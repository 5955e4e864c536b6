"""The form with which people report a problem with a pair, and skip it."""

from django import forms
from django.utils.translation import gettext_lazy as _

from prefmh_web.campaigns.models import Problem

_REASONS = {
    Problem.Reason.NOT_SHOWN: _("One of them is not shown, or is broken."),
    Problem.Reason.UPSETTING: _("One of them is upsetting."),
    Problem.Reason.UNDECIDED: _("I cannot decide."),
    Problem.Reason.OTHER: _("Something else."),
}


class ProblemForm(forms.Form):
    """What is wrong with a pair."""

    reason = forms.ChoiceField(
        choices=list(_REASONS.items()), widget=forms.RadioSelect, label=_("What is wrong with this pair?")
    )
    words = forms.CharField(
        max_length=Problem.MOST_WORDS,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        label=_("In your own words, if you like"),
    )
