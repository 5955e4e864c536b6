"""How a step is decided: by votes, exactly, or by ratings of each object, as the paper's baselines."""

from django import forms

import sampler
from prefmh_web.campaigns.models import Campaign

VOTES, RATINGS = "n-vote", "pointwise"
KINDS = {
    VOTES: "People or models vote: exact",
    RATINGS: "A model rates each object: a baseline, not exact",
}
FORMS = {
    "separate": "Separate: one rating for each question, divided by the highest and summed",
    "joint": "Joint: one question for everything, divided by the highest",
    "difference": "Difference: one question, the ratings as they are",
    "power": "Power: one question, the ratio of the ratings to the power β",
}
SCALES = {"1": "1 to 10", "0": "0 to 10"}


class RuleForm(forms.Form):
    """The rule; all fields but its kind belong to ratings."""

    prefix = "rule"

    kind = forms.ChoiceField(
        choices=KINDS, initial=VOTES, required=False, widget=forms.RadioSelect, label="What decides a step?"
    )
    form = forms.ChoiceField(choices=FORMS, initial="separate", required=False, label="Baseline")
    lowest = forms.ChoiceField(choices=SCALES, initial="1", required=False, label="Rating scale")
    beta = forms.FloatField(
        min_value=0.01, max_value=1000, initial=30, required=False, label="β", help_text="Used by Power."
    )

    def __init__(self, *args, campaign: Campaign | None = None, **kwargs):
        if campaign is not None:
            kwargs["initial"] = campaign.readable_recipe.rule.model_dump()
        super().__init__(*args, **kwargs)

    def rule(self) -> dict:
        """Return the recipe's rule."""
        data = self.cleaned_data
        if data["kind"] != RATINGS:
            return {"kind": VOTES}
        rule = {"kind": RATINGS, "form": data["form"] or "separate", "lowest": int(data["lowest"] or 1)}
        return rule | ({"beta": data["beta"]} if rule["form"] == "power" and data["beta"] is not None else {})

    def show_problem(self, problem: sampler.RecipeProblem) -> bool:
        """Show a problem with the recipe's rule; False if it has another."""
        path, _, field = problem.path.partition(".")
        if path == "rule":
            self.add_error(field if field in self.fields else "form", problem.message)
        return path == "rule"


def rule_line(recipe: sampler.Recipe) -> str:
    """Return a recipe's rule in the researcher's words."""
    rule = recipe.rule
    if not isinstance(rule, sampler.PointwiseRecipe):
        return KINDS[VOTES]
    power = f", β = {rule.beta:g}" if rule.form == "power" else ""
    return f"{KINDS[RATINGS]}\n{FORMS[rule.form]}{power}; ratings from {rule.lowest} to {rule.highest}"
