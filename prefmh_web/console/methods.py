"""How a study is described in a paper: a paragraph from its setup and its record, and what to cite.

Every number in it is one of the setup or of the record (`monitoring/results.py`). Each sentence has a function, and
`paragraph` is their order.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from django.conf import settings

import sampler
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.monitoring.results import Figures
from prefmh_web.console.board import CUT_SHORT
from prefmh_web.console.words import in_words

PAPER = (
    "A. Smogorghevski, N. Rosenfeld and Y. Romano. When Metropolis and Hastings Meet Bradley and Terry: Exact MCMC "
    "From Preference Voting. Unpublished manuscript."
)


@lru_cache(maxsize=1)
def version() -> str:
    """Return the version of this program."""
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())["project"]
    return str(project["version"])


def software() -> str:
    """Return how this program is cited."""
    return f"The prefmh authors. prefmh, version {version()}. Software."


def paragraph(campaign: Campaign, figures: Figures) -> str:
    """Return the methods paragraph of a started campaign."""
    config = started_campaign(campaign).config
    sentences = [
        f"We sampled {campaign.object_kind.nouns} with prefmh {version()} (Smogorghevski, Rosenfeld and Romano).",
        _space(campaign, config),
        f"Each step proposes {_move(config.kernel)}.",
        *_judges(campaign, config),
        *_rule(config),
        _law(campaign),
        *_lengths(config, figures),
        *_votes(config, figures),
        *_acceptance(figures),
        *_dates(figures),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _space(campaign: Campaign, config: sampler.ChainConfig) -> str:
    space: Any = config.space
    if space.kind == "catalog":
        weights = np.array(campaign.states.values_list("weight", flat=True), dtype=np.float64)
        p0 = "is uniform over them" if np.all(weights == weights[0]) else "weights them as the list says"
        return (
            f"The objects are a list of {len(weights):,} {campaign.object_kind.nouns}; the base distribution p0 {p0}."
        )
    return _SPACES[space.kind](space)


_SPACES: dict[str, Callable[[Any], str]] = {
    "texts": lambda space: (
        f"The texts are written by the small model “{space.model}” at temperature {space.temperature:g}; the base "
        "distribution p0 is the distribution of its texts."
    ),
    "molecules": lambda space: (
        f"The base distribution p0 over molecules is set by their size and filters; all chains start at {space.start}."
    ),
    "images": lambda space: (
        f"The images are made by the decoder “{space.decoder}” of latent vectors, whose base distribution p0 is "
        "standard normal."
    ),
    "model-texts": lambda space: (
        f"The texts are written by the model {space.model} at temperature {space.temperature:g}; the base distribution "
        "p0 is the distribution of its texts."
    ),
    "model-images": lambda space: (
        f"The images are made by the model {space.model} of latent noise, whose base distribution p0 is standard "
        "normal."
    ),
}


def _move(kernel: Any) -> str:
    """Return what a kernel proposes, after the word “proposes”."""
    if kernel.kind == "mixture":
        return ", or ".join(f"with probability {part.weight:g} {_move(part.kernel)}" for part in kernel.parts)
    if kernel.kind == "walk":
        lengths = " or ".join(f"{each.length:,}" for each in kernel.length)
        found = " (or as many as a warm-up has chosen)" if kernel.warm_up else ""
        return f"the end of {lengths} moves{found}, each of which proposes {_move(kernel.kernel)}"
    return _MOVES[kernel.kind](kernel)


_MOVES: dict[str, Callable[[Any], str]] = {
    "independent": lambda kernel: "a draw from p0, whatever the current object is",
    "neighbours": lambda kernel: "one of the nearest neighbours of the current object, each with the same probability",
    "suffix": lambda kernel: "the current text with its end written again from a random cut",
    "fragments": lambda kernel: (
        f"to add a fragment to the current molecule (with probability {kernel.add:g}) or to delete one"
    ),
    "crank-nicolson": lambda kernel: f"a Crank–Nicolson move of the latent vector with step size {kernel.beta:g}",
}


def _judges(campaign: Campaign, config: sampler.ChainConfig) -> Iterator[str]:
    seen: dict[tuple[str, str, int], None] = {}
    for judge, row in zip(config.judges, campaign.judges.select_related("endpoint").order_by("place"), strict=True):
        seen[judge.question, _who(judge.source, row.answered_by), judge.votes] = None
    noun = "ratings" if config.rule.evidence == "ratings" else "votes"
    for question, who, budget in seen:
        about = "of an object" if noun == "ratings" else "on a pair"
        yield f"The question “{question}” was answered by {who}, with at most N = {budget} {noun} {about}."
    if config.panelists:
        yield f"The panel has {len(config.panelists)} members, and each of them decides separately."


def _who(source: Any, name: str) -> str:
    if isinstance(source, sampler.ModelSource):
        drawn = ", votes drawn from its log-probabilities" if source.votes == "log-probabilities" else ""
        return f"the model {name} at temperature {source.temperature:g}{drawn}"
    return "each member of a panel" if isinstance(source, sampler.PanelistSource) else "people"


def _rule(config: sampler.ChainConfig) -> Iterator[str]:
    if config.rule.kind != "n-vote":
        yield f"The rule of acceptance was: {in_words(config.rule)}."
        return
    yield (
        "A proposal was accepted with probability min(1, r0 ∏ K/(N − K + 1)), where r0 is the base ratio and K is how "
        "many of a judge’s N votes are for the proposal; the product is over the judges."
    )
    yield (
        "Voting on a step stopped as soon as the missing votes could not change its outcome, which leaves the sampled "
        "distribution as it is."
    )


def _law(campaign: Campaign) -> str:
    law, _, letters = campaign.target_law.partition("; ")
    if law.startswith("not known"):
        return f"Which distribution the chains sample is {law}."
    return f"The chains sample the distribution proportional to {law}{f' ({letters})' if letters else ''}."


def _lengths(config: sampler.ChainConfig, figures: Figures) -> Iterator[str]:
    chains = f"{figures.chains:,} chain{'' if figures.chains == 1 else 's'}"
    if figures.shortest == figures.longest:
        steps = f"of {_counted(figures.longest, 'step')}{' each' if figures.chains > 1 else ''}"
    else:
        steps = f"of {figures.shortest:,} to {figures.longest:,} steps"
    yield f"We ran {chains} {steps}, {figures.steps:,} steps in all, from the seed {config.seed}."
    if figures.ended:
        yield f"Of the chains, {figures.ended:,} ended early, at a step that could not be decided."
    if figures.is_cut_short:
        yield CUT_SHORT
    if figures.extended_to:
        yield f"Their length was extended to {figures.extended_to:,} steps after the start."
    if figures.length_changes:
        yield f"After a look at the results the length was changed {_counted(figures.length_changes, 'time')}."
        yield "The intervals do not allow for that."
    warm_up = (
        "" if config.warm_up is None else f"; warm-up {config.warm_up.steps:,}, settling {config.warm_up.settling:,}"
    )
    left_out = f"The first {_counted(config.left_out, 'step')} of each chain (burn-in {config.burn_in:,}{warm_up})"
    yield (
        f"{left_out} are left out, which leaves {_counted(figures.samples, 'sample')}."
        if config.left_out
        else f"The states after all of them are {_counted(figures.samples, 'sample')}."
    )


def _votes(config: sampler.ChainConfig, figures: Figures) -> Iterator[str]:
    if config.rule.evidence != "votes" or not config.rule.asks_judges:
        return
    given: Counter[str] = Counter()
    for place, judge in enumerate(config.judges):
        given[_givers(judge.source)] += figures.votes_of.get(place, 0)
    people = "1 person" if figures.people == 1 else f"{figures.people:,} people"
    for givers, words in (("people", people), ("models", "Models")):
        if givers in given:
            yield f"{words} gave {_counted(given[givers], 'vote')} that counted."
    if figures.late:
        late = "1 vote came" if figures.late == 1 else f"{figures.late:,} votes came"
        yield f"Another {late} after the step was decided and did not count."


def _givers(source: Any) -> str:
    return "models" if isinstance(source, sampler.ModelSource) else "people"


def _acceptance(figures: Figures) -> Iterator[str]:
    found = figures.acceptance
    if found.differed:
        yield (
            f"Of the {found.differed:,} proposals that differed from the current object, {found.accepted:,} "
            f"({found.percent}) were accepted."
        )


def _dates(figures: Figures) -> Iterator[str]:
    if figures.started_at and figures.finished_at:
        first, last = (f"{each.day} {each:%B %Y}" for each in (figures.started_at, figures.finished_at))
        yield f"The study ran on {first}." if first == last else f"The study ran from {first} to {last}."


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
