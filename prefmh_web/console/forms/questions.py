"""The questions of a campaign, each with its budget N and who answers it."""

from __future__ import annotations

from collections.abc import Sequence

from django import forms
from django.core.exceptions import ValidationError

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.console.forms.choices import offer
from prefmh_web.console.forms.prompts import PromptFields, prompt_fields_of
from prefmh_web.console.forms.rows import formset_of
from prefmh_web.console.forms.usual import needs_a_look
from prefmh_web.console.forms.vision import VisionFields, vision_fields_of

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
_OF_A_MODEL = ("votes", "temperature", "first", "all_at_once", "law_unverified", "reasons")
_HALVES = ("proposal-first", "proposal-second")
WAYS = {
    "sampled": "One reply per vote",
    "log-probabilities": "Drawn from log-probabilities: one request for each order",
}


class QuestionForm(PromptFields, VisionFields):
    """One question and its budget N; the rest of its fields belong to a model that answers it.

    Args:
        endpoints: the names of the endpoints that may.
    """

    question = forms.CharField(
        max_length=300, widget=forms.TextInput(attrs={"placeholder": "Which one would you rather read on?"})
    )
    budget = forms.IntegerField(
        min_value=1,
        max_value=1000,
        initial=2,
        label="Votes on a pair, at most",
        help_text="N. Each is from another person, or all are from one model.",
    )
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
    all_at_once = forms.BooleanField(
        required=False,
        label="Ask for all votes at once",
        help_text="As fast as possible: a step takes about the time of one request, and votes that come after the "
        "outcome is settled are wasted. Otherwise only as many are asked for as can be needed, in several rounds. "
        "The outcome is the same.",
    )
    law_unverified = forms.BooleanField(
        required=False,
        label="Accept a model whose sampling cannot be verified",
        help_text="Needed for one reply per vote from most hosted models and all that reason: they may truncate. The "
        "campaign's page and record then say “law of the sampler not verified”.",
    )

    reasons = forms.BooleanField(
        required=False,
        label="Keep the model’s reasons",
        help_text="What a model thinks before it replies, where its server says it: the first 2,000 characters beside "
        "each vote, on the campaign’s page and in reasons.csv. There are none with log-probabilities.",
    )

    def __init__(self, *args, endpoints: tuple[str, ...] = (), **kwargs):
        super().__init__(*args, **kwargs)
        self.has_endpoints = bool(endpoints)
        offer(self, "source", [(PEOPLE, "People"), *((name, name) for name in endpoints)])

    @property
    def has_own_order(self) -> bool:
        """True where another order than the usual one is chosen, or is wrong."""
        return needs_a_look(self["order"])

    @property
    def has_own_answers(self) -> bool:
        """True where something is chosen of how a model answers, or is wrong."""
        return any(needs_a_look(self[name]) for name in _OF_A_MODEL)

    def clean(self):
        super().clean()
        data = self.cleaned_data
        order, budget = data.get("order") or "random", data.get("budget") or 2
        if order == "balanced" and data.get("source") == PEOPLE:
            self.add_error("order", ValidationError("This order is for models. Choose another one for people."))
        if order != "random" and budget % 2:
            self.add_error("budget", ValidationError("N must be even, because each order gets half of the votes."))
        return data

    def judges(self) -> list[dict]:
        """Return the config's judges of this question: one, or two of half its budget, one for each order."""
        data = self.cleaned_data
        judge = {"question": data["question"], "votes": data["budget"], "source": self.who_answers()}
        if data["order"] != "both":
            return [judge | {"order": data["order"] or "random"}]
        half = judge | {"votes": data["budget"] // 2}
        return [half | {"order": order} for order in _HALVES]

    def who_answers(self) -> dict:
        """Return who answers, as the config has it."""
        data = self.cleaned_data
        if data["source"] == PEOPLE:
            return {"kind": "people"}
        return {
            "kind": "model",
            "endpoint": data["source"],
            "temperature": 1.0 if data["temperature"] is None else data["temperature"],
            "votes": data["votes"] or "sampled",
            "first": data["first"],
            **({name: True for name in ("law_unverified", "reasons", "all_at_once") if data[name]}),
            **self.own_words(),
            **self.vision(),
        }


QuestionFormSet = formset_of(QuestionForm, 8, least=1)


def judges_in(questions: forms.BaseFormSet[QuestionForm]) -> list[dict]:
    """Return the filled-in questions as the config's judges."""
    return [judge for form in questions.forms if form.cleaned_data for judge in form.judges()]


def questions_of(campaign: Campaign) -> list[dict]:
    """Return a campaign's judges as the formset's initial values."""
    judges = campaign.config.judges
    return [
        _question_of(judge) | ({"order": "both", "budget": 2 * judge.votes} if judge.order in _HALVES else {})
        for judge in judges
        if _is_asked_once(judge, campaign.config.panelists)
        and (judge.order != _HALVES[1] or not any(_is_first_half(other, judge) for other in judges))
    ]


def _question_of(judge: sampler.JudgeConfig) -> dict:
    row = {"question": judge.question, "budget": judge.votes, "order": judge.order}
    if not isinstance(source := judge.source, sampler.ModelSource):
        return row | {"source": PEOPLE}
    answers = {"temperature": source.temperature, "votes": source.votes, "first": source.first}
    answers |= {
        "law_unverified": source.law_unverified,
        "reasons": source.reasons,
        "all_at_once": source.all_at_once,
        **prompt_fields_of(source),
    }
    return row | answers | vision_fields_of(source.vision) | {"source": source.endpoint}


def _is_asked_once(judge: sampler.JudgeConfig, names: Sequence[str]) -> bool:
    """False for all but one of the judges that a panel is for one question."""
    return not isinstance(judge.source, sampler.PanelistSource) or judge.source.name == names[0]


def _is_first_half(one: sampler.JudgeConfig, other: sampler.JudgeConfig) -> bool:
    """True when `one` shows the proposal first and is otherwise the same judge, or was in a draft of version 1."""
    return one.order == _HALVES[0] and (one.question, one.source) == (other.question, other.source)
