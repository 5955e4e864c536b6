"""What a campaign has brought: its samples, the figures that a paper reports, and whether its chains have forgotten
where they began: a property along them, with R-hat and effective sample sizes. Reads only.

The statistics are those of `sampler.diagnostics.convergence`. What is left out of them is told with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from operator import itemgetter

import numpy as np
import numpy.typing as npt
from django.db.models import Count, F, Max, Min, Q, QuerySet, Sum

import sampler
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.models import Campaign, Comparison, Event, State, Vote
from prefmh_web.campaigns.monitoring.trajectories import Trajectories


@dataclass(frozen=True)
class Figures:
    """A campaign in numbers, as the record has them.

    Args:
        chains: those that have opened; `ended` of them were ended at a suspended step.
        is_cut_short: true where it was ended before the last step of the others.
        shortest, longest: steps that a chain has decided.
        acceptance: of the decided steps of all phases.
        samples: states after the decided steps of the sampling phase.
        people: how many gave a vote that counted.
        late: votes that came when their step was decided, and count for nothing.
        votes_of: votes that counted, by the place of the judge.
        length_changes: how often the length was changed after the start, by an extension or *Finish now*.
        extended_to: how many steps there are for each chain, if they were more than at the start.
    """

    chains: int
    ended: int
    is_cut_short: bool
    shortest: int
    longest: int
    steps: int
    acceptance: sampler.diagnostics.Acceptance
    samples: int
    people: int
    late: int
    votes_of: dict[int, int]
    extended_to: int | None
    length_changes: int
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def votes(self) -> int:
        """Votes that counted, of all judges."""
        return sum(self.votes_of.values())


def figures_of(campaign: Campaign) -> Figures:
    """Return a started campaign in numbers, as of now."""
    found = campaign.chains.aggregate(
        chains=Count("pk"), ended=Count("pk", filter=Q(ended_at__isnull=False)), steps=Sum("step", default=0),
        shortest=Min("step", default=0), longest=Max("step", default=0),
        moves=Sum("moves", default=0), accepted=Sum("accepted", default=0),
    )  # fmt: skip
    acceptance = sampler.diagnostics.Acceptance(found.pop("accepted"), found.pop("moves"))
    votes = Vote.objects.filter(judge__campaign=campaign)
    counted = votes.filter(number__isnull=False)
    by_judge = counted.order_by().values_list("judge__place").annotate(n=Count("pk"))
    return Figures(
        **found,
        acceptance=acceptance,
        is_cut_short=is_cut_short(campaign),
        samples=samples_in(campaign).count(),
        people=counted.filter(annotator__isnull=False).order_by().values("annotator").distinct().count(),
        late=votes.filter(number__isnull=True).count(),
        votes_of=dict(by_judge),
        extended_to=started_campaign(campaign).config.steps if campaign.steps_added else None,
        length_changes=campaign.events.filter(kind__in=(Event.Kind.EXTENDED, Event.Kind.FINISHED_NOW)).count(),
        started_at=campaign.started_at,
        finished_at=campaign.finished_at,
    )


def is_cut_short(campaign: Campaign) -> bool:
    """Return whether a campaign was finished while chains had steps left, as a panel is that cannot go on."""
    left = campaign.chains.filter(step__lt=F("length"), ended_at__isnull=True)
    return campaign.status == Campaign.Status.FINISHED and left.exists()


@dataclass(frozen=True)
class Sample:
    """The state of a chain after one of its steps."""

    step: Comparison
    state: State

    @property
    def properties(self) -> str:
        """What can be measured of it, in one line."""
        return started_campaign(self.state.campaign).object_kind.line(objects.stored(self.state))


def samples_in(campaign: Campaign) -> QuerySet[Comparison]:
    """Return the decided steps of the sampling phase (see `ChainConfig.phase_of`), the last steps first."""
    left_out = started_campaign(campaign).config.left_out
    found = Comparison.objects.filter(chain__campaign=campaign, step__gt=left_out, verdict__isnull=False)
    return found.order_by("-step", "chain__place")


def shown_samples(campaign: Campaign, keys: Sequence[int]) -> list[Sample]:
    """Return samples with their objects, by the keys of their steps and in that order."""
    whole = Comparison.objects.select_related("chain", "current", "proposal")
    found = whole.defer("current__code", "proposal__code").in_bulk(keys)
    return [_sample(campaign, found[key]) for key in keys]


def _sample(campaign: Campaign, step: Comparison) -> Sample:
    state = step.proposal if step.verdict == Comparison.Verdict.ACCEPT else step.current
    # Known already: read with every object, a long config would be read as often.
    state.campaign = campaign
    return Sample(step, state)


FloatArray = npt.NDArray[np.float64]

MOST_DRAWS = 200_000
"""Of more draws, every k-th goes into the statistics, so that a page opens in bounded time."""
AIM_R_HAT, AIM_ESS = 1.01, 400
"""What Vehtari et al. (2021) recommend: R-hat below, effective sample sizes above."""


@dataclass(frozen=True)
class Followed:
    """One property along the chains of a campaign.

    Args:
        name: of the property.
        chains: of each chain its place and the numbers after each step, the start's first, until the first object that
            has no number yet.
        first: the first step that the statistics use.
        missing: how many draws come at or after an object without a number.
        target_of: tells the laws of chains apart, by their places (`ChainConfig.target_of`).
    """

    name: str
    chains: tuple[tuple[int, FloatArray], ...]
    first: int
    missing: int
    target_of: Callable[[int], str] = lambda place: ""

    @property
    def label(self) -> str:
        """Its name in words."""
        return self.name.replace("_", " ")

    @cached_property
    def draws(self) -> list[tuple[int, FloatArray]]:
        """Of each chain that has some, its place and the numbers that the statistics use."""
        used = [(place, numbers[self.first :: self.every]) for place, numbers in self.chains]
        return [(place, numbers) for place, numbers in used if len(numbers)]

    @property
    def every(self) -> int:
        """Every how many-th draw is used."""
        there = sum(max(0, len(numbers) - self.first) for _, numbers in self.chains)
        return max(1, -(-there // MOST_DRAWS))

    @cached_property
    def ranks(self) -> list[tuple[int, FloatArray]]:
        """Of each chain its place and the ranks of its draws among all of its target, from 0 to 1.

        Equal draws share their ranks: those of one chain are spread evenly over all that belong to the number. So two
        chains that sample one law fill all ranks alike, also where a property has a few values only.
        """
        of_targets: dict[str, list[tuple[int, FloatArray]]] = {}
        for place, numbers in self.draws:
            of_targets.setdefault(self.target_of(place), []).append((place, numbers))
        return sorted((each for draws in of_targets.values() for each in _ranks(draws)), key=itemgetter(0))

    @cached_property
    def statistics(self) -> sampler.diagnostics.Grouped:
        """R-hat and effective sample sizes of each target."""
        return sampler.diagnostics.by_target((self.target_of(place), numbers) for place, numbers in self.draws)

    @property
    def verdict(self) -> str:
        """What the statistics come to, and what to do; empty where there are none."""
        found = self.statistics
        if not found.measured:
            return ""
        if any(each.r_hat is None for each in found.targets):
            several = " of each prompt" if len(found.targets) > 1 else ""
            return f"One chain has nothing to be compared with: run at least four{several}."
        if (found.r_hat or 0.0) > AIM_R_HAT:
            return "The chains differ: extend the campaign, or let the next one walk farther between two questions."
        if min(found.bulk_ess, found.tail_ess) < AIM_ESS:
            return "The chains agree, but these are few independent samples: extend the campaign."
        return "The chains agree, and these samples are enough for this property."

    @property
    def problem(self) -> str:
        """Why there are no statistics; empty where there are."""
        found = self.statistics
        if found.measured:
            return ""
        return found.targets[0].problem if found.targets else "no step of the sampling phase is decided"


def follow(
    trajectories: Trajectories, name: str, first: int, target_of: Callable[[int], str] = lambda place: ""
) -> Followed:
    """Return a property along the chains.

    Args:
        first: the first step that the statistics use.
        target_of: see `Followed`.

    Raises:
        KeyError: nothing of this name is followed.
    """
    chains, missing = [], 0
    for place, numbers in trajectories.along(name).items():
        without = np.flatnonzero(np.isnan(numbers))
        known = int(without[0]) if len(without) else len(numbers)
        missing += len(numbers) - known
        chains.append((place, numbers[:known]))
    return Followed(name, tuple(chains), first, missing, target_of)


def main_property(campaign: Campaign) -> str:
    """Return the property to follow where nobody has chosen any."""
    return sampler.MAIN_PROPERTIES[campaign.object_kind.name][0]


def _ranks(draws: list[tuple[int, FloatArray]]) -> Iterator[tuple[int, FloatArray]]:
    _, group, size = np.unique(
        np.concatenate([numbers for _, numbers in draws]), return_inverse=True, return_counts=True
    )
    first, most = np.cumsum(size) - size, max(1, len(group) - 1)
    ends = np.cumsum([len(numbers) for _, numbers in draws])[:-1]
    for (place, _), each in zip(draws, np.split(group, ends), strict=True):
        yield place, _spread(each, first, size) / most


def _spread(group: npt.NDArray[np.int64], first: npt.NDArray[np.int64], size: npt.NDArray[np.int64]) -> FloatArray:
    """Return ranks of one chain's draws, in ascending order.

    Args:
        group: of each draw, which number it is.
        first: of each number, the lowest rank that belongs to it.
        size: of each number, how many ranks do.
    """
    number, own = np.unique(group, return_counts=True)
    within = np.arange(len(group)) - np.repeat(np.cumsum(own) - own, own)
    return np.repeat(first[number], own) + (within + 0.5) / np.repeat(own, own) * np.repeat(size[number], own) - 0.5
