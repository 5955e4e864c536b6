"""How a study is described in a paper: a paragraph from its setup and its record, and what to cite.

Every number in it is one of the setup or of the record (`monitoring/results.py`). The sentences stand in
`templates/console/methods.txt`.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.template.loader import render_to_string

import sampler
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.monitoring.results import Figures
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
    law, _, letters = campaign.target_law.partition("; ")
    context = {
        "campaign": campaign,
        "config": config,
        "figures": figures,
        "version": version(),
        "objects": campaign.states.count(),
        "is_uniform": campaign.states.order_by().values("weight").distinct().count() == 1,
        "move": _move(config.kernel),
        "questions": _questions(campaign, config),
        "rule": in_words(config.rule),
        "law": law,
        "letters": letters,
        "is_law_known": not law.startswith("not known"),
        "given": _given(config, figures),
    }
    return " ".join(render_to_string("console/methods.txt", context).split())


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


def _questions(campaign: Campaign, config: sampler.ChainConfig) -> list[tuple[str, str, int]]:
    """Return each question once, with who answers it and N."""
    rows = campaign.judges.select_related("endpoint").order_by("place")
    asked = [
        (judge.question, _who(judge.source, row.answered_by), judge.votes)
        for judge, row in zip(config.judges, rows, strict=True)
    ]
    return list(dict.fromkeys(asked))


def _who(source: Any, name: str) -> str:
    if isinstance(source, sampler.ModelSource):
        drawn = ", votes drawn from its log-probabilities" if source.votes == "log-probabilities" else ""
        return f"the model {name} at temperature {source.temperature:g}{drawn}"
    return "each member of a panel" if isinstance(source, sampler.PanelistSource) else "people"


def _given(config: sampler.ChainConfig, figures: Figures) -> list[tuple[str, int]]:
    """Return how many votes people and models gave that counted; nothing where no votes decide."""
    if config.rule.evidence != "votes" or not config.rule.asks_judges:
        return []
    people = "1 person" if figures.people == 1 else f"{figures.people:,} people"
    given: Counter[str] = Counter()
    for place, judge in enumerate(config.judges):
        given["Models" if isinstance(judge.source, sampler.ModelSource) else people] += figures.votes_of.get(place, 0)
    return list(given.items())
