"""How a step is decided: by votes, exactly, by ratings of each object, as the paper's baselines, by scores, or not at
all.
"""

from django import forms

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.console.forms.choices import offer
from prefmh_web.console.forms.scorers import scorer_choices

VOTES, RATINGS, BASE, SCORE, QUEST = "n-vote", "pointwise", "base", "score", "quest"
KINDS = {
    VOTES: "People or models vote: exact",
    RATINGS: "A model rates each object: a baseline, not exact",
    BASE: "Nobody: each state is an independent draw from p0, always accepted",
    SCORE: "A score of each object, such as MARS’s: exact for p0 times a function of the score",
    QUEST: "A quality estimate, as in QUEST: exact for p0 times exp(r/β)",
}
UNJUDGED = (BASE, SCORE, QUEST)
FORMS = {
    "separate": "Separate: one rating for each question, divided by the highest and summed",
    "joint": "Joint: one question for everything, divided by the highest",
    "difference": "Difference: one question, the ratings as they are",
    "power": "Power: one question, the ratio of the ratings to the power β",
}
SCORE_FORMS = {
    "mars": "MARS: s = ½[min(QED, 0.7) + min((10 − SA)/9, 0.7)], the law is p0·s to the power β",
    "power": "Power: the law is p0·s to the power β, for scores of 0 or more",
    "exponential": "Exponential: the law is p0·exp(β·s)",
}
SCALES = {"1": "1 to 10", "0": "0 to 10"}


class RuleForm(forms.Form):
    """The rule. `form`, `lowest` and `beta` belong to ratings, the others to scores and to QUEST."""

    prefix = "rule"

    kind = forms.ChoiceField(
        choices=KINDS, initial=VOTES, required=False, widget=forms.RadioSelect, label="What decides a step?"
    )
    form = forms.ChoiceField(choices=FORMS, initial="separate", required=False, label="Baseline")
    lowest = forms.ChoiceField(choices=SCALES, initial="1", required=False, label="Rating scale")
    beta = forms.FloatField(
        min_value=0.01, max_value=1000, initial=30, required=False, label="β", help_text="Used by Power."
    )
    score_form = forms.ChoiceField(
        choices=SCORE_FORMS, initial="mars", required=False, label="What is made of the scores"
    )
    scorer = forms.ChoiceField(
        initial="",
        required=False,
        label="Scorer",
        help_text="Of MARS: of QED. Empty for the QED that this site measures.",
    )
    second = forms.ChoiceField(
        initial="",
        required=False,
        label="Scorer of SA",
        help_text="Used by MARS. Empty for the synthetic accessibility that this site measures.",
    )
    exponent = forms.FloatField(min_value=0.001, max_value=1000, initial=30, required=False, label="β")
    quality = forms.ChoiceField(
        initial="", required=False, label="Scorer of quality", help_text="From 0 to 1, higher is better."
    )
    temperature = forms.FloatField(min_value=0.001, max_value=1000, initial=0.1, required=False, label="β")

    def __init__(self, *args, campaign: Campaign | None = None, **kwargs):
        rule = campaign.config.rule if campaign is not None else None
        if rule is not None:
            kwargs["initial"] = _fields_of(rule)
        super().__init__(*args, **kwargs)
        offered = scorer_choices(campaign)
        known = {name for name, _ in offered}
        gone = [
            (name, f"{name} (not in SCORERS any more)") for name in (rule.scorers if rule else ()) if name not in known
        ]
        for field in ("scorer", "second", "quality"):
            offer(self, field, [("", "choose one"), *offered, *gone])

    def clean(self) -> dict:
        super().clean()
        data = self.cleaned_data
        if data.get("kind") == QUEST and not data.get("quality"):
            self.add_error("quality", "Choose the scorer that estimates quality.")
        if data.get("kind") == SCORE and data.get("score_form") in ("power", "exponential") and not data.get("scorer"):
            self.add_error("scorer", "Choose the scorer whose numbers decide.")
        return data

    @property
    def asks_judges(self) -> bool:
        """False where what is chosen, checked or not, needs no questions."""
        return self["kind"].value() not in UNJUDGED

    def rule(self) -> dict:
        """Return the config's rule."""
        made = {RATINGS: self._ratings, SCORE: self._score, QUEST: self._quest}
        kind = self.cleaned_data["kind"] or VOTES
        return {"kind": kind} | (made[kind]() if kind in made else {})

    def _ratings(self) -> dict:
        data = self.cleaned_data
        rule = {"form": data["form"] or "separate", "lowest": int(data["lowest"] or 1)}
        return rule | ({"beta": data["beta"]} if rule["form"] == "power" and data["beta"] is not None else {})

    def _score(self) -> dict:
        data = self.cleaned_data
        rule = {"form": data["score_form"] or "mars"} | _given("beta", data["exponent"])
        if rule["form"] != "mars":
            return rule | {"scorers": [data["scorer"]]}
        usual = sampler.ScoreConfig(form="mars").scorers
        return rule | {"scorers": [data["scorer"] or usual[0], data["second"] or usual[1]]}

    def _quest(self) -> dict:
        data = self.cleaned_data
        return {"scorer": data["quality"]} | _given("beta", data["temperature"])

    def show_problem(self, problem: sampler.ConfigProblem) -> bool:
        """Show a problem with the config's rule; False if it has another."""
        path, _, field = problem.path.partition(".")
        if path == "rule":
            other = "form" if self.asks_judges else "kind"
            self.add_error(field if field in self.fields else other, problem.message)
        return path == "rule"


def _given(name: str, value: float | None) -> dict:
    return {} if value is None else {name: value}


def _fields_of(rule: sampler.RuleConfig) -> dict:
    if isinstance(rule, sampler.ScoreConfig):
        scorer, second = (*rule.scorers, "")[:2]
        shown = {"score_form": rule.form, "scorer": scorer, "second": second, "exponent": rule.beta}
        return {"kind": SCORE} | shown
    if isinstance(rule, sampler.QuestConfig):
        return {"kind": QUEST, "quality": rule.scorer, "temperature": rule.beta}
    return rule.model_dump()


def rule_line(config: sampler.ChainConfig) -> str:
    """Return a config's rule in the researcher's words."""
    rule = config.rule
    line = KINDS[rule.kind]
    if isinstance(rule, sampler.PointwiseConfig):
        power = f", β = {rule.beta:g}" if rule.form == "power" else ""
        return f"{line}\n{FORMS[rule.form]}{power}; ratings from {rule.lowest} to {rule.highest}"
    if isinstance(rule, sampler.ScoreConfig):
        return f"{line}\n{SCORE_FORMS[rule.form]}; β = {rule.beta:g}, scores by {', '.join(rule.scorers)}"
    if isinstance(rule, sampler.QuestConfig):
        return f"{KINDS[QUEST]}; β = {rule.beta:g}, quality by {rule.scorer}"
    return line
