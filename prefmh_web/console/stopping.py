"""Why chains stop, in words: a stopping rule, and how a campaign has ended."""

from __future__ import annotations

import sampler
from prefmh_web.campaigns.models import Campaign, StoppingLook
from prefmh_web.campaigns.monitoring.results import is_cut_short

DEPENDS = "So the length depends on what was seen."
CUT_SHORT = "The campaign was ended before its last step."


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
    ended = campaign.chains.filter(ended_at__isnull=False).count()
    others, last = campaign.chains.count() - ended, campaign.looks.last()
    sentences = [_ended(ended, others)]
    if is_cut_short(campaign):
        sentences.append(CUT_SHORT)
    elif others:
        sentences.append(_walked(last, _each_of(others, has_ended=bool(ended))))
    if last is not None and not last.stops:
        sentences.append("The stopping rule was not met at any look before.")
    return " ".join(sentence for sentence in sentences if sentence)


def _ended(ended: int, others: int) -> str:
    if not ended:
        return ""
    if not others:
        return "Every chain was ended at a parked step."
    return f"{ended:,} chain{' was' if ended == 1 else 's were'} ended at a parked step."


def _each_of(others: int, *, has_ended: bool) -> str:
    if not has_ended:
        return "every chain"
    return "the other chain" if others == 1 else "each of the other chains"


def _walked(last: StoppingLook | None, chains: str) -> str:
    if last is not None and last.stops:
        return f"The stopping rule was met at step {last.step:,}, and {chains} stopped there."
    return f"{chains.capitalize()} has come to its last step."


def _looks(rule: sampler.StoppingRecipe, steps: int) -> str:
    looks = rule.looks(steps)
    if len(looks) == 1:
        return f"{looks[0]:,}"
    return f"{looks[0]:,}, {looks[1]:,}{', …' if len(looks) > 2 else ''} before {steps:,}"
