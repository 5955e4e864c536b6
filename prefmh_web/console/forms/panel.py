"""Who answers the questions that people answer: a crowd, or a panel of named people, each a judge of their own."""

from __future__ import annotations

from collections import Counter

from django import forms

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.console.forms.questions import PEOPLE, QuestionForm

CROWD, PANEL = "crowd", "panel"
KINDS = {
    CROWD: "A crowd: whoever opens the link",
    PANEL: "A panel: people whom you name, each with a link of their own",
}
_MOST_JUDGES = 8
# From so many panelists on, a step is accepted less than once in a hundred times.
_MANY = 6
_ONE_VOTE = (
    "With a panel, N is 1: with more, or in both orders, the same person would be asked about the same pair twice in a "
    "step, and the second answer is no fresh one."
)


class PanelForm(forms.Form):
    """Who the people are; the names stay with the campaign's owner."""

    prefix = "panel"

    kind = forms.ChoiceField(
        choices=KINDS, initial=CROWD, required=False, widget=forms.RadioSelect, label="Which people answer?"
    )
    names = forms.CharField(
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 5}),
        label="People of the panel, one name per line",
        help_text="Voters, colleagues in the campaign and the record see a number for each. The names are "
        "for you and the admins of this site.",
    )
    many = forms.BooleanField(
        required=False, label="I want more than six answers on each pair, although chains then hardly move"
    )

    def __init__(self, *args, campaign: Campaign | None = None, **kwargs):
        if campaign is not None:
            kwargs["initial"] = _fields_of(campaign)
        super().__init__(*args, **kwargs)

    def clean_names(self) -> list[str]:
        names = [name for line in self.cleaned_data["names"].splitlines() if (name := " ".join(line.split()))]
        if len(longest := max(names, key=len, default="")) > 120:
            raise forms.ValidationError(f"A name has at most 120 characters; “{longest[:20]}…” has {len(longest)}.")
        if twice := next((name for name, count in Counter(names).items() if count > 1), None):
            raise forms.ValidationError(f"“{twice}” stands there twice. Each person is one panelist.")
        return names

    def clean(self) -> dict:
        super().clean()
        if self.is_panel and "names" not in self.errors and not self.cleaned_data["names"]:
            self.add_error("names", "Name at least one person, or choose a crowd.")
        return self.cleaned_data

    @property
    def is_panel(self) -> bool:
        """True where a panel is chosen."""
        return bool(self.cleaned_data.get("kind") == PANEL)

    @property
    def panelists(self) -> list[str]:
        """The names; none for a crowd."""
        return self.cleaned_data["names"] if self.is_panel else []

    def fits(self, questions: forms.BaseFormSet[QuestionForm]) -> bool:
        """True when the questions can be asked of the panel, if there is one; otherwise the forms say why not."""
        if not self.is_panel:
            return True
        asked = [form for form in questions.forms if form.cleaned_data]
        of_people = [form for form in asked if form.cleaned_data["source"] == PEOPLE]
        for form in of_people:
            if form.cleaned_data["budget"] != 1 or (form.cleaned_data["order"] or "random") != "random":
                form.add_error("budget" if form.cleaned_data["budget"] != 1 else "order", _ONE_VOTE)
        self._demand_few(len(of_people) * len(self.panelists), len(asked) - len(of_people))
        return not (self.errors or any(form.errors for form in of_people))

    def _demand_few(self, answers: int, models: int) -> None:
        if not answers:
            self.add_error("names", "No question is asked of people. Choose “People” for one, or a crowd here.")
        elif answers + models > _MOST_JUDGES:
            self.add_error(
                "names",
                f"People times questions are {answers} answers on each pair. With those of models, {_MOST_JUDGES} are "
                "possible at most. Remove people or questions.",
            )
        elif answers > _MANY and not self.cleaned_data["many"]:
            percent = 100 * sampler.best_acceptance(answers)
            self.add_error(
                "many",
                f"All {answers} answers must be a yes for a step to be accepted: {percent:.1f} % of the steps at best, "
                "if nobody cares. Tick this box if you want that.",
            )

    def with_panelists(self, judges: list[dict]) -> list[dict]:
        """Return the judges of a config with each one that people are in as many copies as there are panelists."""
        if not self.panelists:
            return judges
        return [
            judge | source
            for judge in judges
            for source in (
                [{"source": {"kind": "panelist", "name": name}} for name in self.panelists]
                if judge["source"]["kind"] == "people"
                else [{}]
            )
        ]


def _fields_of(campaign: Campaign) -> dict:
    names = campaign.config.panelists
    questions = sum(judge.source.kind == "panelist" for judge in campaign.config.judges)
    return {"kind": PANEL if names else CROWD, "names": "\n".join(names), "many": questions > _MANY}
