"""What the page Results says a campaign has found: objects with their shares as voters saw them, and one verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sampler
from prefmh_web.campaigns.models import Campaign, State
from prefmh_web.campaigns.monitoring.trajectories import trajectories_of

_MOST_OBJECTS, _MOST_TARGETS, _MOST_CHAINS, _MOST_STOPS = 20, 10, 12, 7


@dataclass(frozen=True)
class Opinion:
    """What the votes on one question say about an object."""

    won: int
    lost: int
    score: sampler.Score | None
    has_column: bool


@dataclass(frozen=True)
class FoundObject:
    """An object with its share, in the page's figures."""

    state: State
    share: sampler.Share
    opinions: list[Opinion]

    @property
    def percent(self) -> str:
        """The share with its interval."""
        return f"{self.share.share:.1%}"

    @property
    def interval(self) -> str:
        """From where to where it may lie."""
        return f"{self.share.low:.1%} to {self.share.high:.1%}"


@dataclass(frozen=True)
class FoundTarget:
    """The objects of one target.

    Args:
        left: how many further objects were visited; they are in results.csv.
        unseen: how many objects of the list were not, and the most that the share of each can be, in percent.
    """

    target: str
    questions: list[sampler.Question]
    objects: list[FoundObject]
    left: int
    unseen: int
    unseen_at_most: str


@dataclass(frozen=True)
class ChainPath:
    """One chain from its start to now: steps and the objects there."""

    index: int
    stops: list[tuple[int, State]]


@dataclass(frozen=True)
class FoundPage:
    """What was found, for the page."""

    answer: sampler.Answer
    targets: list[FoundTarget]
    more_targets: int
    chains: list[ChainPath]


def found_page(campaign: Campaign, answer: sampler.Answer) -> FoundPage:
    """Return what to show of an answer."""
    shown = answer.targets[:_MOST_TARGETS]
    places = {each.object for target in shown for each in answer.of_target(target)[:_MOST_OBJECTS] if each.steps}
    states = {state.place: state for state in _with(campaign, place__in=places)}
    targets = [_target(answer, target, states) for target in shown]
    return FoundPage(answer, targets, len(answer.targets) - len(shown), list(_paths(campaign)))


def _target(answer: sampler.Answer, target: str, states: Mapping[int, State]) -> FoundTarget:
    questions, every = answer.asked_of(target), answer.of_target(target)
    visited = [each for each in every if each.steps]
    objects = [
        FoundObject(states[each.object], each, [_opinion(question, each.object) for question in questions])
        for each in visited[:_MOST_OBJECTS]
    ]
    unseen = len(every) - len(visited)
    return FoundTarget(
        target, questions, objects, len(visited) - len(objects), unseen, f"{every[-1].high:.1%}" if unseen else ""
    )


def _opinion(question: sampler.Question, number: int) -> Opinion:
    return Opinion(question.won[number], question.lost[number], question.scores.get(number), bool(question.scores))


def _paths(campaign: Campaign) -> Iterator[ChainPath]:
    stops = dict(list(trajectories_of(campaign).stops(_MOST_STOPS).items())[:_MOST_CHAINS])
    keys = {key for along in stops.values() for _, key in along}
    states = {state.pk: state for state in _with(campaign, pk__in=keys)}
    for index, along in stops.items():
        yield ChainPath(index, [(step, states[key]) for step, key in along])


def _with(campaign: Campaign, **wanted: Any) -> Iterator[State]:
    """Yield states that know their campaign: read with every object, a long config would be read as often."""
    for state in campaign.states.filter(**wanted).defer("code"):
        state.campaign = campaign
        yield state
