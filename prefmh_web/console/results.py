"""What the pages Results and Convergence show of a started campaign, beside its numbers (`monitoring/results.py`).

found_page         objects with their shares as voters saw them, and the way of each chain
spreads_of         how the measured properties of its samples are spread, beside draws from its base distribution
paragraph          how the study is described in a paper; the sentences stand in `templates/console/methods.txt`
convergence_for    statistics and plots of the chosen properties, and how each chain accepts
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from django import forms
from django.conf import settings
from django.core.paginator import Paginator
from django.core.validators import MaxLengthValidator
from django.http import QueryDict
from django.template.loader import render_to_string

import sampler
from prefmh_web.campaigns import dispatch, objects
from prefmh_web.campaigns.frozen import plan_of, started_campaign
from prefmh_web.campaigns.models import Campaign, Chain, State
from prefmh_web.campaigns.monitoring import results as monitored
from prefmh_web.console.plots import MAX_POINTS, histogram, rank_overlay, traces
from prefmh_web.console.preview import PreviewObject
from prefmh_web.console.words import in_words
from prefmh_web.objects import ObjectKind, StoredObject

_MAX_OBJECTS, _MAX_TARGETS, _MAX_CHAINS, _MAX_STOPS = 20, 10, 12, 7


def found_page(campaign: Campaign, results: sampler.CampaignResults) -> dict[str, Any]:
    """Return what `console/_found.html` shows of the results: the objects of each target that are visited most, how
    many targets are left out, and of some chains the steps of some of their objects, from the start to now.
    """
    shown = results.targets[:_MAX_TARGETS]
    indices = {each.object for target in shown for each in results.of_target(target)[:_MAX_OBJECTS] if each.steps}
    states = {state.index: state for state in _with(campaign, index__in=indices)}
    stops = dict(list(monitored.trajectories_of(campaign).stops(_MAX_STOPS).items())[:_MAX_CHAINS])
    on_the_way = {
        state.pk: state for state in _with(campaign, pk__in={key for each in stops.values() for _, key in each})
    }
    return {
        "results": results,
        "targets": [_target(results, target, states) for target in shown],
        "more_targets": len(results.targets) - len(shown),
        "chains": [(index, [(step, on_the_way[key]) for step, key in along]) for index, along in stops.items()],
    }


def _target(results: sampler.CampaignResults, target: str, states: Mapping[int, State]) -> dict[str, Any]:
    """Return the objects of one target; how many further ones were visited, which results.csv has; and how many of the
    list were not, with the most that the share of each can be.
    """
    questions, every = results.asked_of(target), results.of_target(target)
    visited = [each for each in every if each.steps]
    objects = [_object(each, states[each.object], questions) for each in visited[:_MAX_OBJECTS]]
    return {
        "target": target,
        "questions": questions,
        "objects": objects,
        "left": len(visited) - len(objects),
        "unseen": len(every) - len(visited),
        "unseen_at_most": sampler.percent(every[-1].high),
    }


def _object(share: sampler.Share, state: State, questions: Sequence[sampler.QuestionResult]) -> dict[str, Any]:
    number = share.object
    return {
        "state": state,
        "share": share,
        "opinions": [(each, each.won[number], each.lost[number], each.scores.get(number)) for each in questions],
    }


def _with(campaign: Campaign, **wanted: Any) -> Iterator[State]:
    """Yield states that know their campaign: read with every object, a long config would be read as often."""
    for state in campaign.states.filter(**wanted).defer("code"):
        state.campaign = campaign
        yield state


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


def paragraph(campaign: Campaign, figures: dict[str, Any]) -> str:
    """Return the methods paragraph of a started campaign."""
    config = started_campaign(campaign).config
    distribution, _, letters = campaign.config.target_distribution.partition("; ")
    questions = _questions(campaign, config)
    context = {
        "campaign": campaign,
        "config": config,
        "figures": figures,
        "version": version(),
        "objects": campaign.states.count(),
        "is_uniform": campaign.states.order_by().values("weight").distinct().count() == 1,
        "move": _move(config.kernel),
        "questions": questions,
        "has_orders": any(is_in_each_order for *_, is_in_each_order in questions),
        "rule": in_words(config.rule),
        "distribution": distribution,
        "letters": letters,
        "is_distribution_known": not distribution.startswith("not known"),
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


def _questions(campaign: Campaign, config: sampler.ChainConfig) -> list[tuple[str, str, int, bool]]:
    """Return each question once, with who answers it, N, and whether that is N in each order of the objects."""
    rows = campaign.judges.select_related("endpoint").order_by("index")
    asked = [
        (judge.question, _who(judge.source, row.answered_by), judge.votes, judge.order.startswith("proposal-"))
        for judge, row in zip(config.judges, rows, strict=True)
    ]
    return list(dict.fromkeys(asked))


def _who(source: Any, name: str) -> str:
    if isinstance(source, sampler.ModelSource):
        drawn = ", votes drawn from its log-probabilities" if source.votes == "log-probabilities" else ""
        return f"the model {name} at temperature {source.temperature:g}{drawn}"
    return "each member of a panel" if isinstance(source, sampler.PanelistSource) else "people"


def _given(config: sampler.ChainConfig, figures: dict[str, Any]) -> list[tuple[str, int]]:
    """Return how many votes people and models gave that counted; nothing where no votes decide."""
    if config.rule.evidence != "votes" or not config.rule.asks_judges:
        return []
    people = "1 person" if figures["people"] == 1 else f"{figures['people']:,} people"
    given: Counter[str] = Counter()
    for index, judge in enumerate(config.judges):
        given["Models" if isinstance(judge.source, sampler.ModelSource) else people] += figures["votes_of"].get(
            index, 0
        )
    return list(given.items())


_MAX_MEASURED = 400
# A picture takes about a hundred times as long to measure as a text.
_MAX_FILES = 100
_SEED = 20
_FEWEST = 2
_NOT_DRAWN = {
    "molecules": "The base distribution of these molecules is known up to a factor only, so nothing is drawn from it.",
    "model-texts": "A model server writes the texts of the base distribution, and none are asked for only to compare.",
    "model-images": "A model makes the images of the base distribution, and none are made only to compare.",
}


def spreads_of(campaign: Campaign) -> dict[str, Any]:
    """Return how a started campaign's samples so far are spread: `plots`, one for each property that is a number; how
    many samples are `measured`, evenly over all; how many are `drawn` from the base distribution beside them; and why
    none can be (`not_drawn`).
    """
    return _spreads(campaign.pk, sum(campaign.chains.values_list("step", flat=True)))


@lru_cache(maxsize=32)
def _spreads(campaign_id: int, decided: int) -> dict[str, Any]:
    """Return the spreads of a campaign as of when so many steps were decided."""
    campaign = Campaign.objects.get(pk=campaign_id)
    kind = campaign.object_kind
    most = _MAX_MEASURED if kind.medium == "words" else _MAX_FILES
    samples, draws = _measured(kind, _evenly(campaign, most)), _measured(kind, _drawn(campaign, most))
    plots = [
        histogram(name.replace("_", " "), found, draws.get(name, ()))
        for name, found in samples.items()
        if len(found) >= _FEWEST
    ]
    measured, drawn = (max(map(len, each.values()), default=0) for each in (samples, draws))
    not_drawn = _NOT_DRAWN.get(started_campaign(campaign).config.space.kind, "")
    return {"plots": plots, "measured": measured, "drawn": drawn, "not_drawn": not_drawn}


def _evenly(campaign: Campaign, most: int) -> list[StoredObject]:
    # There may be millions, so nothing but their keys is read of those that are not chosen.
    keys = np.fromiter(monitored.samples_in(campaign).values_list("pk", flat=True).iterator(), dtype=np.int64)
    chosen = keys[np.unique(np.linspace(0, len(keys) - 1, most).astype(int))].tolist() if len(keys) else []
    return [objects.stored(sample.state) for sample in monitored.shown_samples(campaign, chosen)]


def _drawn(campaign: Campaign, most: int) -> list[StoredObject]:
    """Return draws from p0; nothing where it cannot be drawn here. A space starts its chains at such draws."""
    config = started_campaign(campaign).config
    if config.space.kind in _NOT_DRAWN:
        return []
    space: Any = plan_of(campaign).space
    rng = np.random.default_rng(_SEED)
    states = [space.start(rng, number % config.chains) for number in range(most)]
    if isinstance(space, sampler.Catalog):
        rows = {row.index: row for row in State.objects.filter(campaign=campaign, index__in=set(states))}
        for row in rows.values():
            row.campaign = campaign
        return [objects.stored(rows[state]) for state in states]
    name = config.space.objects
    codes = [space.encode(state) if name == "images" else "" for state in states]
    return [PreviewObject(name, space.content(state), code).stored for state, code in zip(states, codes, strict=True)]


def _measured(kind: ObjectKind, shown: Iterable[StoredObject]) -> dict[str, list[float]]:
    """Return each measure's numbers; objects without one are left out of it."""
    found: dict[str, list[float]] = {}
    for each in shown:
        for name, value in kind.measures(each).items():
            if isinstance(value, (int, float)) and math.isfinite(value):
                found.setdefault(name, []).append(float(value))
    return found


A_PAGE = 25


def convergence_for(campaign: Campaign, asked: QueryDict) -> dict[str, Any]:
    """Return what the tab Convergence shows of a started campaign as it stands now.

    Args:
        asked: what the page's address asks for.
    """
    trajectories, left_out = monitored.trajectories_of(campaign), campaign.config.left_out
    if trajectories.unmeasured:
        dispatch.measure(campaign)
    form = ConvergenceForm(asked, trajectories.names, monitored.main_property(campaign), left_out)
    chosen = form.cleaned_data if form.is_valid() else {}
    first = 1 if chosen.get("all_steps") else left_out + 1
    names = chosen.get("properties", [])
    followed = [monitored.follow(trajectories, name, first, campaign.config.target_of) for name in names]
    # All plots share the points that may be drawn.
    points = MAX_POINTS // max(1, len(followed))
    chains = Paginator(Chain.objects.filter(campaign=campaign).order_by("index"), A_PAGE).get_page(asked.get("page"))
    return {
        "form": form,
        "trajectories": trajectories,
        "measured": trajectories.visited - trajectories.unmeasured,
        "left_out": left_out,
        "followed": followed,
        "shown": [
            (each, traces(each.label, each.chains, points), each.ranks and rank_overlay(each.label, each.ranks))
            for each in followed
        ],
        "chains": chains,
        "max_draws": monitored.MAX_DRAWS,
        # Of prompts, those that look worst; for the filter `slice`.
        "max_targets": ":10",
    }


# With 200 chains, each takes some 20 kB of every message to an open page.
MAX_AT_ONCE = 3


class ConvergenceForm(forms.Form):
    """Which properties are followed, and whether the first steps are left out."""

    properties = forms.MultipleChoiceField(
        required=False,
        label="Properties",
        widget=forms.CheckboxSelectMultiple,
        help_text=f"At most {MAX_AT_ONCE} at once.",
        validators=[
            MaxLengthValidator(MAX_AT_ONCE, "Choose at most %(limit_value)d properties; these are %(show_value)d.")
        ],
    )
    all_steps = forms.BooleanField(required=False, label="Include the first steps in the statistics")

    def __init__(self, asked: QueryDict, names: Sequence[str], usual: str, left_out: int) -> None:
        """Take what the address asks for.

        Args:
            names: of all properties that can be followed.
            usual: the one that is followed where the address names none.
            left_out: how many of the first steps the statistics leave out unless they are asked for.
        """
        data = asked.copy()
        if "properties" not in data:
            data.setlist("properties", [usual])
        super().__init__(data, auto_id="follow_%s")
        choices: Any = [(name, name.replace("_", " ")) for name in names]
        self.fields["properties"].choices = choices  # type: ignore[attr-defined]  # of fields with choices
        if not left_out:
            del self.fields["all_steps"]
