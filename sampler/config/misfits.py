"""Where the parts of a config do not fit together, though each is what it should be."""

from __future__ import annotations

from collections.abc import Iterator

from sampler.config.config import MOST_STEPS, ChainConfig
from sampler.config.problems import ConfigProblem
from sampler.judges.config import ModelSource, hearing_misfits, vision_misfits
from sampler.judges.templates import template_misfits, template_of
from sampler.kernels import MOVES_IN, WalkConfig, WarmUp
from sampler.objects.properties import property_names
from sampler.spaces.catalog import CatalogConfig


def unbalanced(config: ChainConfig) -> Iterator[ConfigProblem]:
    """Yield the judges whose orders leave no law in balance."""
    yield from (ConfigProblem(*problem) for problem in config.rule.unbalanced(config.judges))


def wrong_target(config: ChainConfig) -> Iterator[ConfigProblem]:
    """Yield that the law which a config says it samples is another one."""
    if config.target not in (None, config.law):
        yield ConfigProblem(
            "target", f"judges and rule sample another distribution: write “{config.law}”, or leave it out"
        )


def misfits(config: ChainConfig) -> Iterator[ConfigProblem]:
    """Yield where the space, the kernel, the rule and who answers do not fit together."""
    space = config.space.kind
    for move in sorted(config.moves):
        if space not in MOVES_IN[move]:
            fitting = " or ".join(f"'{kind}'" for kind, spaces in MOVES_IN.items() if space in spaces)
            message = f"'{move}' does not move in a space of kind '{space}'; use {fitting}, or a mixture"
            yield ConfigProblem("kernel", message)
    if "neighbours" in config.moves and isinstance(config.space, CatalogConfig) and not config.space.neighbours:
        yield ConfigProblem("space.neighbours", "must be 1 or more for a kernel that moves to neighbours")
    if isinstance(config.kernel, WalkConfig):
        yield from (ConfigProblem(*problem) for problem in config.kernel.misfits(space))
    if config.warm_up is not None:
        yield from _warm_up_misfits(config, config.warm_up)
    if config.max_chains is not None:
        yield from (ConfigProblem("max_chains", message) for message in _elastic_misfits(config, config.max_chains))
    if config.chains_at_most * config.steps > MOST_STEPS:
        chains, steps = f"{config.chains_at_most:,} chains", f"{config.steps:,} steps"
        message = f"must be fewer: {chains} of {steps} are too many; all chains together have at most {MOST_STEPS:,}"
        yield ConfigProblem("steps", message)
    if config.burn_in >= config.steps:
        yield ConfigProblem("burn_in", f"must be less than the {config.steps} steps")
    yield from _rule_misfits(config)
    asks_models = bool(config.judges) and all(isinstance(judge.source, ModelSource) for judge in config.judges)
    if config.estimate and not asks_models:
        message = "is shown to models behind endpoints only, which can wait for it; leave it out"
        yield ConfigProblem("space.estimate", message)
    yield from (ConfigProblem(*problem) for problem in hearing_misfits(config.judges, config.space.objects))
    yield from (ConfigProblem(*problem) for problem in vision_misfits(config.judges, config.space.objects))
    sources = [judge.source for judge in config.judges]
    if any(map(template_of, sources)):
        yield from (ConfigProblem(*problem) for problem in template_misfits(sources, config.fitting))


def _rule_misfits(config: ChainConfig) -> Iterator[ConfigProblem]:
    rule = config.rule
    yield from (ConfigProblem(*problem) for problem in rule.misfits(config.judges))
    yield from (ConfigProblem(*problem) for problem in rule.kernel_misfits(config.kernel))
    if rule.asks_judges and not config.judges:
        yield ConfigProblem("judges", f"there must be 1 to 8 under rule '{rule.kind}': who answers what?")


def _elastic_misfits(config: ChainConfig, most: int) -> Iterator[str]:
    if most <= config.chains:
        yield f"must be more than the {config.chains} chains of the start; leave it out for a fixed number of chains"
    if not config.rule.asks_judges:
        yield "does not go with a rule that asks nobody: chains open when a person would wait; leave it out"
    elif config.panelists:
        yield "does not go with a panel: each further chain waits for all panelists; leave it out"
    elif any(judge.source.kind != "people" for judge in config.judges):
        yield "does not go with models that judge: chains open when a person would wait; leave it out"


def _warm_up_misfits(config: ChainConfig, warm_up: WarmUp) -> Iterator[ConfigProblem]:
    if warm_up.steps >= config.steps:
        yield ConfigProblem("kernel.warm_up.steps", f"must be less than the {config.steps} steps of a chain")
    elif warm_up.steps + warm_up.burn_in >= config.steps:
        message = f"leaves no step to sample: {warm_up.steps} + {warm_up.burn_in} steps of {config.steps}"
        yield ConfigProblem("kernel.warm_up.burn_in", message)
    names = property_names(config.space.model_dump(mode="json"))
    if unknown := [name for name in warm_up.properties if name not in names]:
        known = ", ".join(names) or "none, because the record does not hold the files; write the length yourself"
        message = f"there is no property '{unknown[0]}' of these objects; there are {known}"
        yield ConfigProblem("kernel.warm_up.properties", message)
    if config.panelists:
        message = (
            "weighs votes as if all were alike, and the panelists of a panel differ; choose a fixed number of moves"
        )
        yield ConfigProblem("kernel.warm_up", message)
    if config.rule.evidence != "votes":
        yield ConfigProblem("kernel.warm_up", "counts votes, and this rule takes none; write the length yourself")
