"""How people report a problem with a pair that they skip: the form, and what follows."""

import uuid

from django import forms
from django.utils.translation import gettext_lazy as _

from prefmh_web.campaigns.engine import suspension
from prefmh_web.campaigns.events import LONGEST_REPORT
from prefmh_web.campaigns.models import Annotator, ReportReason
from prefmh_web.campaigns.monitoring import steps

_REASONS = {
    ReportReason.NOT_SHOWN: _("One of them is not shown, or is broken."),
    ReportReason.UPSETTING: _("One of them is upsetting."),
    ReportReason.UNDECIDED: _("I cannot decide."),
    ReportReason.OTHER: _("Something else."),
}


class ProblemForm(forms.Form):
    """What is wrong with a pair."""

    reason = forms.ChoiceField(
        choices=list(_REASONS.items()), widget=forms.RadioSelect, label=_("What is wrong with this pair?")
    )
    words = forms.CharField(
        max_length=LONGEST_REPORT,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        label=_("In your own words, if you like"),
    )


def report(key: uuid.UUID, annotator: Annotator, reason: ReportReason, words: str = "") -> None:
    """Store a problem with a pair that somebody has skipped. After enough reports that an object is not shown, nobody
    else is asked about that pair.
    """
    lease = steps.note(key, annotator, reason, words)
    if lease and reason == ReportReason.NOT_SHOWN:
        suspension.after_report(lease.comparison_id)
