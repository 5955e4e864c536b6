"""A stopping rule in words: when it stops chains, and whether it has."""

from __future__ import annotations

import sampler
from prefmh_web.campaigns.models import Campaign

DEPENDS = "So the length depends on what was seen."


def rule_in_words(recipe: sampler.Recipe) -> str:
    """Return when the chains of a recipe stop; empty where their number of steps is fixed."""
    rule = recipe.stopping
    if rule is None:
        return ""
    return (
        f"all chains stop at the first of the steps {_looks(rule, recipe.steps)} at which, of the property "
        f"{rule.property.replace('_', ' ')}, R-hat is at most {rule.r_hat:.10g} and the bulk and tail effective sample "
        f"sizes are at least {rule.ess:,.10g}, else at step {recipe.steps:,}"
    )


def ending_in_words(campaign: Campaign) -> str:
    """Return why the chains of a finished campaign walk no further."""
    last = campaign.looks.last()
    if last is None:
        return "Every chain has come to its last step."
    if last.stops:
        return f"The stopping rule was met at step {last.step:,}, and all chains stopped there."
    return "Every chain has come to its last step. The stopping rule was not met at any look before."


def _looks(rule: sampler.StoppingRecipe, steps: int) -> str:
    looks = rule.looks(steps)
    if len(looks) == 1:
        return f"{looks[0]:,}"
    return f"{looks[0]:,}, {looks[1]:,}{', …' if len(looks) > 2 else ''} before {steps:,}"
