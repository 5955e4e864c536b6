"""Which steps of a campaign are shown. It comes with the address, so a list can be kept as a bookmark."""

from __future__ import annotations

from typing import Any

from django import forms

from prefmh_web.campaigns.monitoring.steps import Standing, Wanted
from prefmh_web.campaigns.started import StartedCampaign

_LARGEST = 2**31 - 1
_STANDINGS = {
    Standing.DECIDED: "decided",
    Standing.ACCEPTED: "accepted",
    Standing.REJECTED: "rejected",
    Standing.OPEN: "open",
    Standing.SUSPENDED: "suspended",
    Standing.ENDED: "where a chain was ended",
    Standing.UNMOVED: "proposal equal to the current object",
}


class StepsForm(forms.Form):
    """Limits of the list of steps; an empty field sets none."""

    chain = forms.IntegerField(min_value=0, max_value=_LARGEST, required=False)
    standing = forms.ChoiceField(
        choices=[("", "all"), *((each.value, label) for each, label in _STANDINGS.items())],
        required=False,
        label="Verdict",
    )
    judge = forms.TypedChoiceField(coerce=int, empty_value=None, required=False, label="Votes of")
    person = forms.IntegerField(min_value=1, max_value=_LARGEST, required=False, label="Voted by person")
    seconds = forms.FloatField(
        min_value=0,
        max_value=10**8,
        required=False,
        label="At least, in seconds",
    )

    def __init__(self, *args: Any, started: StartedCampaign, **kwargs: Any) -> None:
        kwargs.setdefault("auto_id", "show_%s")
        super().__init__(*args, **kwargs)
        if started.config.rule.evidence != "votes":
            # Ratings and scores belong to objects; nobody votes on a step.
            del self.fields["judge"], self.fields["person"]
            return
        panelists = (
            f"{judge.question} (panelist {judge.panelist})" if judge.panelist else judge.question
            for judge in started.judges
        )
        judges = self.fields["judge"]
        assert isinstance(judges, forms.TypedChoiceField)
        judges.choices = [("", "all judges"), *enumerate(panelists)]

    @property
    def wanted(self) -> Wanted | None:
        """What is asked for; None if a field cannot be read."""
        if not self.is_valid():
            return None
        asked = self.cleaned_data
        return Wanted(
            chain=asked["chain"],
            standing=Standing(asked["standing"]) if asked["standing"] else None,
            judge=asked.get("judge"),
            person=asked.get("person"),
            seconds=asked["seconds"],
        )
