"""How people report a problem with a pair that they skip: the form, and what follows."""

import uuid

from django import forms
from django.utils.translation import gettext_lazy as _

from prefmh_web.campaigns.engine import suspension
from prefmh_web.campaigns.models import Annotator, Problem
from prefmh_web.campaigns.monitoring import problems

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


def report(key: uuid.UUID, annotator: Annotator, reason: Problem.Reason, words: str = "") -> None:
    """Store a problem with a pair that somebody has skipped. After enough reports that an object is not shown, nobody
    else is asked about that pair.
    """
    problem = problems.note(key, annotator, reason, words)
    if problem and problem.lease and reason == Problem.Reason.NOT_SHOWN:
        suspension.after_report(problem.lease.comparison_id)
