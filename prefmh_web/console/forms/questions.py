"""The questions of a campaign, each with its budget N and who answers it."""

from __future__ import annotations

from django import forms
from django.core.exceptions import ValidationError

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.console.forms.choices import offer

PEOPLE = ""
ORDERS = {
    "random": "Random for each vote",
    "balanced": "Each order for half of the votes (models only)",
    "both": "Two judges, one for each order: a constant bias to one side cancels, and the question counts twice",
}
ORDER_HELP = (
    "Two judges sample p0(x)·exp(2s(x)), not p0(x)·exp(s(x)): each half multiplies the law by exp(s(x)), so this "
    "question weighs twice as much as one that is asked in another order. That holds, and the lean cancels, only if "
    "the same people, or the same model, answer both halves."
)
_HALVES = ("proposal-first", "proposal-second")
WAYS = {
    "sampled": "One reply per vote",
    "log-probabilities": "Drawn from log-probabilities: one request for each order",
}


class QuestionForm(forms.Form):
    """One question and its budget N; the rest of its fields belong to a model that answers it.

    Args:
        endpoints: the names of the endpoints that may.
    """

    question = forms.CharField(
        max_length=300, widget=forms.TextInput(attrs={"placeholder": "Which one would you rather read on?"})
    )
    budget = forms.IntegerField(min_value=1, max_value=1000, initial=2, label="Votes (N)")
    source = forms.ChoiceField(required=False, label="Who answers?")
    order = forms.ChoiceField(
        choices=ORDERS, initial="random", required=False, label="Which object is shown first?", help_text=ORDER_HELP
    )
    temperature = forms.FloatField(
        min_value=0.01,
        max_value=5,
        initial=1.0,
        required=False,
        help_text="Must be above 0: at 0 all votes of the model on a pair would be the same.",
    )
    votes = forms.ChoiceField(choices=WAYS, initial="sampled", required=False, label="How the model votes")
    first = forms.BooleanField(
        required=False, label="Ask before people", help_text="People see only the pairs that the model does not decide."
    )

    def __init__(self, *args, endpoints: tuple[str, ...] = (), **kwargs):
        super().__init__(*args, **kwargs)
        self.has_endpoints = bool(endpoints)
        offer(self, "source", [(PEOPLE, "People"), *((name, name) for name in endpoints)])

    def clean(self):
        super().clean()
        data = self.cleaned_data
        order, budget = data.get("order") or "random", data.get("budget") or 2
        if order == "balanced" and data.get("source") == PEOPLE:
            self.add_error("order", ValidationError("This order is for models only. Choose another one for people."))
        if order != "random" and budget % 2:
            self.add_error("budget", ValidationError("N must be even, because each order gets half of the votes."))
        return data

    def judges(self) -> list[dict]:
        """Return the recipe's judges of this question: one, or two of half its budget, one for each order."""
        data = self.cleaned_data
        judge = {"question": data["question"], "budget": data["budget"], "source": self._source()}
        if data["order"] != "both":
            return [judge | {"order": data["order"] or "random"}]
        half = judge | {"budget": data["budget"] // 2}
        return [half | {"order": order} for order in _HALVES]

    def _source(self) -> dict:
        data = self.cleaned_data
        if data["source"] == PEOPLE:
            return {"kind": "people"}
        return {
            "kind": "model",
            "endpoint": data["source"],
            "temperature": 1.0 if data["temperature"] is None else data["temperature"],
            "votes": data["votes"] or "sampled",
            "first": data["first"],
        }


QuestionFormSet = forms.formset_factory(
    QuestionForm, extra=0, min_num=1, validate_min=True, max_num=8, validate_max=True
)


def judges_in(questions: forms.BaseFormSet[QuestionForm]) -> list[dict]:
    """Return the filled-in questions as the recipe's judges."""
    return [judge for form in questions.forms if form.cleaned_data for judge in form.judges()]


def questions_of(campaign: Campaign) -> list[dict]:
    """Return a campaign's judges as the formset's initial values."""
    judges = campaign.readable_recipe.judges
    return [
        _question_of(judge) | ({"order": "both", "budget": 2 * judge.budget} if judge.order in _HALVES else {})
        for judge in judges
        if _is_asked_once(judge)
        and (judge.order != _HALVES[1] or not any(_is_first_half(other, judge) for other in judges))
    ]


def _question_of(judge: sampler.JudgeRecipe) -> dict:
    row = {"question": judge.question, "budget": judge.budget, "order": judge.order}
    if not isinstance(source := judge.source, sampler.ModelSource):
        return row | {"source": PEOPLE}
    answers = {"temperature": source.temperature, "votes": source.votes, "first": source.first}
    return row | answers | {"source": source.endpoint}


def _is_asked_once(judge: sampler.JudgeRecipe) -> bool:
    """False for all but one of the judges that a panel is for one question."""
    return not isinstance(judge.source, sampler.SeatSource) or judge.source.seat == 1


def _is_first_half(one: sampler.JudgeRecipe, other: sampler.JudgeRecipe) -> bool:
    """True when `one` shows the proposal first and is otherwise the same judge, or was in a draft of version 1."""
    return one.order == _HALVES[0] and (one.question, one.source) == (other.question, other.source)
