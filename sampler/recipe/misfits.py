"""Where the parts of a recipe do not fit together, though each is what it should be."""

from __future__ import annotations

from collections.abc import Iterator

from sampler.judges.recipe import hearing_misfits, vision_misfits
from sampler.judges.sources import ModelSource
from sampler.judges.templates import template_misfits, template_of
from sampler.kernels import MOVES_IN, WalkRecipe, WarmUp
from sampler.objects.properties import property_names
from sampler.recipe.problems import RecipeProblem
from sampler.recipe.recipe import MOST_STEPS, Recipe
from sampler.spaces.catalog import CatalogRecipe


def unbalanced(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Yield the judges whose orders leave no law in balance."""
    yield from (RecipeProblem(*problem) for problem in recipe.rule.unbalanced(recipe.judges))


def wrong_target(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Yield that the law which a recipe says it samples is another one."""
    if recipe.target not in (None, recipe.law):
        yield RecipeProblem("target", f"judges and rule sample another law: write “{recipe.law}”, or leave it out")


def misfits(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Yield where the space, the kernel, the rule and who answers do not fit together."""
    space = recipe.space.kind
    for move in sorted(recipe.moves):
        if space not in MOVES_IN[move]:
            fitting = " or ".join(f"'{kind}'" for kind, spaces in MOVES_IN.items() if space in spaces)
            message = f"'{move}' does not move in a space of kind '{space}'; use {fitting}, or a mixture"
            yield RecipeProblem("kernel", message)
    if "neighbours" in recipe.moves and isinstance(recipe.space, CatalogRecipe) and not recipe.space.neighbours:
        yield RecipeProblem("space.neighbours", "must be 1 or more for a kernel that moves to neighbours")
    if isinstance(recipe.kernel, WalkRecipe):
        yield from (RecipeProblem(*problem) for problem in recipe.kernel.misfits(space))
    if recipe.warm_up is not None:
        yield from _warm_up_misfits(recipe, recipe.warm_up)
    if recipe.most_chains is not None:
        yield from (RecipeProblem("most_chains", message) for message in _elastic_misfits(recipe, recipe.most_chains))
    if recipe.chains_at_most * recipe.steps > MOST_STEPS:
        chains, steps = f"{recipe.chains_at_most:,} chains", f"{recipe.steps:,} steps"
        message = f"must be fewer: {chains} of {steps} are too many; all chains together have at most {MOST_STEPS:,}"
        yield RecipeProblem("steps", message)
    if recipe.burn_in >= recipe.steps:
        yield RecipeProblem("burn_in", f"must be less than the {recipe.steps} steps")
    yield from _rule_misfits(recipe)
    asks_models = bool(recipe.judges) and all(isinstance(judge.source, ModelSource) for judge in recipe.judges)
    if recipe.estimate and not asks_models:
        message = "is shown to models behind endpoints only, which can wait for it; leave it out"
        yield RecipeProblem("space.estimate", message)
    yield from (RecipeProblem(*problem) for problem in hearing_misfits(recipe.judges, recipe.space.objects))
    yield from (RecipeProblem(*problem) for problem in vision_misfits(recipe.judges, recipe.space.objects))
    sources = [judge.source for judge in recipe.judges]
    if any(map(template_of, sources)):
        yield from (RecipeProblem(*problem) for problem in template_misfits(sources, recipe.fitting))


def _rule_misfits(recipe: Recipe) -> Iterator[RecipeProblem]:
    rule = recipe.rule
    yield from (RecipeProblem(*problem) for problem in rule.misfits(recipe.judges))
    yield from (RecipeProblem(*problem) for problem in rule.kernel_misfits(recipe.kernel))
    if rule.asks_judges and not recipe.judges:
        yield RecipeProblem("judges", f"there must be 1 to 8 under rule '{rule.kind}': who answers what?")


def _elastic_misfits(recipe: Recipe, most: int) -> Iterator[str]:
    if most <= recipe.chains:
        yield f"must be more than the {recipe.chains} chains of the start; leave it out for a fixed number of chains"
    if not recipe.rule.asks_judges:
        yield "does not go with a rule that asks nobody: chains open when a person would wait; leave it out"
    elif recipe.panelists:
        yield "does not go with a panel: each further chain waits for all panelists; leave it out"
    elif any(judge.source.kind != "people" for judge in recipe.judges):
        yield "does not go with models that judge: chains open when a person would wait; leave it out"


def _warm_up_misfits(recipe: Recipe, warm_up: WarmUp) -> Iterator[RecipeProblem]:
    if warm_up.steps >= recipe.steps:
        yield RecipeProblem("kernel.warm_up.steps", f"must be less than the {recipe.steps} steps of a chain")
    elif warm_up.steps + warm_up.settling >= recipe.steps:
        message = f"leaves no step to sample: {warm_up.steps} + {warm_up.settling} steps of {recipe.steps}"
        yield RecipeProblem("kernel.warm_up.settling", message)
    names = property_names(recipe.space.model_dump(mode="json"))
    if unknown := [name for name in warm_up.properties if name not in names]:
        known = ", ".join(names) or "none, because the record does not hold the files; write the length yourself"
        message = f"there is no property '{unknown[0]}' of these objects; there are {known}"
        yield RecipeProblem("kernel.warm_up.properties", message)
    if recipe.panelists:
        message = (
            "weighs votes as those of one law, and the panelists of a panel differ; choose a fixed number of moves"
        )
        yield RecipeProblem("kernel.warm_up", message)
    if recipe.rule.evidence != "votes":
        yield RecipeProblem("kernel.warm_up", "counts votes, and this rule takes none; write the length yourself")
