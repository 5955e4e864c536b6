"""The texts of a study, and how often something comes between the votes: the fields of a `Protocol` that stand once."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django import forms

from prefmh_web.config import USUAL_WAIT_MINUTES

_LONGEST_TEXT = 300_000
USUAL_PERCENT = 5


class TextsForm(forms.Form):
    """The texts of a study, and how often its comprehension check may be tried."""

    instructions = forms.CharField(
        max_length=_LONGEST_TEXT,
        required=False,
        widget=forms.Textarea(attrs={"rows": 8}),
        label="Instructions",
        help_text="In Markdown, on a page of their own. A picture stands in the text as a data address.",
    )
    tries = forms.IntegerField(
        min_value=1,
        max_value=20,
        initial=2,
        label="Tries",
        help_text="So often a person may answer the questions about the instructions. After that their part ends.",
    )
    check_percent = forms.IntegerField(
        min_value=0,
        max_value=50,
        initial=0,
        label="Attention checks, per 100 votes",
        help_text="A pair between two pairs; the question says which side to choose. When one comes is drawn by lot "
        "and does not depend on the pairs. Its answer is never a vote. 0 for none.",
    )
    gold_percent = forms.IntegerField(
        min_value=0,
        max_value=50,
        initial=0,
        label="Gold checks, per 100 votes",
        help_text="One of the gold pairs below, between two pairs. It looks like any other, and its answer is no vote.",
    )
    repeat_percent = forms.IntegerField(
        min_value=0,
        max_value=50,
        initial=0,
        label="Repeats, per 100 votes",
        help_text="A decided pair that the person has judged, once more: it shows how steady their answers are. Its "
        "answer is never a vote and never ends a part.",
    )
    wait_minutes = forms.IntegerField(
        min_value=0,
        max_value=1440,
        required=False,
        label="Longest wait, in minutes",
        help_text="Somebody for whom no pair has been free for so long has done their part, and it ends as “nothing "
        f"left to vote on”. Empty: {USUAL_WAIT_MINUTES} where a platform pays people, no end elsewhere. 0: no end.",
    )
    wait_is_paid = forms.BooleanField(
        required=False,
        label="The time that people wait is paid",
        help_text="Those who wait are told so.",
    )
    usual_checks = forms.BooleanField(
        required=False,
        label="Check now and then that people attend",
        help_text=f"After {USUAL_PERCENT} of 100 votes comes an attention check, and after {USUAL_PERCENT} a pair that "
        "the person has judged before. Neither is a vote. After saving you can change the numbers.",
    )
    checks_may_fail = forms.IntegerField(min_value=0, max_value=1000, initial=2, label="So many may fail")
    checks_end = forms.BooleanField(required=False, initial=True, label="One more ends the part")
    debriefing = forms.CharField(
        max_length=_LONGEST_TEXT,
        required=False,
        widget=forms.Textarea(attrs={"rows": 5}),
        label="Debriefing",
        help_text="In Markdown. People read it when their part has ended.",
    )

    ticked: Collection[str] = frozenset()
    """Fields whose value comes from the tick above them, once the form is checked."""

    def clean(self) -> dict[str, Any]:
        super().clean()
        if self.cleaned_data.pop("usual_checks", False):
            self.ticked = {name for name in ("check_percent", "repeat_percent") if not self.cleaned_data.get(name)}
            self.cleaned_data |= dict.fromkeys(self.ticked, USUAL_PERCENT)
        return self.cleaned_data
