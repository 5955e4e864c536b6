"""What a campaign has brought: its samples, the figures that a paper reports, and whether its chains have forgotten
where they began: a property along them, with R-hat and effective sample sizes. Reads only.

The statistics are those of `sampler.diagnostics.convergence`. What is left out of them is told with them.

Where the chains of a campaign have been, and the numbers of these objects, are kept in memory.

What is decided never changes, so a process that has read a campaign once reads only what has come since. A few
campaigns are kept; of each, the steps at which its chains moved, and the numbers of the objects that they moved to.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache, reduce
from operator import itemgetter, or_
from typing import Any

import numpy as np
import numpy.typing as npt
from django.db.models import Count, F, Max, Min, Q, QuerySet, Sum

import sampler
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.models import Campaign, CampaignScorer, Chain, Comparison, Event, Measured, Score, State, Vote


def figures_of(campaign: Campaign) -> dict[str, Any]:
    """Return a started campaign in numbers, as of now and as the record has them.

    Of ``chains``, those that have opened, ``ended`` were ended at a suspended step; it ``is_cut_short`` if it was ended
    before the last step of the others. The ``shortest`` and the ``longest`` have decided so many steps, all together
    ``steps``; ``acceptance`` is that of all phases. ``samples`` are states after the decided steps of the sampling
    phase. So many ``people`` gave a vote that counted; so many came ``late``, when their step was decided, and count
    for nothing. ``votes`` counted, ``votes_of`` each judge by its index. The length was changed ``length_changes``
    times after the start, by an extension or *Finish now*; ``extended_to`` so many steps, if these were more.
    """
    found = campaign.chains.aggregate(
        chains=Count("pk"), ended=Count("pk", filter=Q(ended_at__isnull=False)), steps=Sum("step", default=0),
        shortest=Min("step", default=0), longest=Max("step", default=0),
        moves=Sum("moves", default=0), accepted=Sum("accepted", default=0),
    )  # fmt: skip
    left = campaign.chains.filter(step__lt=F("length"), ended_at__isnull=True)
    votes = Vote.objects.filter(judge__campaign=campaign)
    counted = votes.filter(number__isnull=False).order_by()
    votes_of = dict(counted.values_list("judge__index").annotate(n=Count("pk")))
    return found | {
        "acceptance": sampler.diagnostics.Acceptance(found["accepted"], found["moves"]),
        "is_cut_short": campaign.status == Campaign.Status.FINISHED and left.exists(),
        "samples": samples_in(campaign).count(),
        "people": counted.filter(voter__isnull=False).values("voter").distinct().count(),
        "late": votes.filter(number__isnull=True).count(),
        "votes": sum(votes_of.values()),
        "votes_of": votes_of,
        "extended_to": started_campaign(campaign).config.steps if campaign.steps_added else None,
        "length_changes": campaign.events.filter(kind__in=(Event.Kind.EXTENDED, Event.Kind.FINISHED_NOW)).count(),
        "started_at": campaign.started_at,
        "finished_at": campaign.finished_at,
    }


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
    return found.order_by("-step", "chain__index")


def shown_samples(campaign: Campaign, keys: Sequence[int]) -> list[Sample]:
    """Return samples with their objects, by the keys of their steps and in that order."""
    whole = Comparison.objects.select_related("chain", "current", "proposal")
    found = whole.defer("current__code", "proposal__code").in_bulk(keys)
    samples = []
    for step in (found[key] for key in keys):
        state = step.proposal if step.verdict == Comparison.Verdict.ACCEPT else step.current
        # Known already: read with every object, a long config would be read as often.
        state.campaign = campaign
        samples.append(Sample(step, state))
    return samples


FloatArray = npt.NDArray[np.float64]

MAX_DRAWS = 200_000
"""Of more draws, every k-th goes into the statistics, so that a page opens in bounded time."""


@dataclass(frozen=True)
class Followed:
    """One property along the chains of a campaign.

    Args:
        name: of the property.
        chains: of each chain its index and the numbers after each step, the start's first, until the first object that
            has no number yet.
        first: the first step that the statistics use.
        missing: how many draws come at or after an object without a number.
        target_of: tells the distributions of chains apart, by their indices (`ChainConfig.target_of`).
    """

    name: str
    chains: tuple[tuple[int, FloatArray], ...]
    first: int
    missing: int
    target_of: Callable[[int], str] = lambda index: ""

    @property
    def label(self) -> str:
        """Its name in words."""
        return self.name.replace("_", " ")

    @cached_property
    def draws(self) -> list[tuple[int, FloatArray]]:
        """Of each chain that has some, its index and the numbers that the statistics use."""
        used = [(index, numbers[self.first :: self.every]) for index, numbers in self.chains]
        return [(index, numbers) for index, numbers in used if len(numbers)]

    @property
    def every(self) -> int:
        """Every how many-th draw is used."""
        there = sum(max(0, len(numbers) - self.first) for _, numbers in self.chains)
        return max(1, -(-there // MAX_DRAWS))

    @cached_property
    def ranks(self) -> list[tuple[int, FloatArray]]:
        """Of each chain its index and the ranks of its draws among all of its target, from 0 to 1.

        Equal draws stand in a random order. So two chains that sample one distribution fill all ranks alike, also where
        a property has a few values only.
        """
        of_targets: dict[str, list[tuple[int, FloatArray]]] = {}
        for index, numbers in self.draws:
            of_targets.setdefault(self.target_of(index), []).append((index, numbers))
        return sorted((each for draws in of_targets.values() for each in _ranks(draws)), key=itemgetter(0))

    @cached_property
    def statistics(self) -> sampler.diagnostics.Grouped:
        """R-hat and effective sample sizes of each target."""
        return sampler.diagnostics.by_target((self.target_of(index), numbers) for index, numbers in self.draws)

    @property
    def problem(self) -> str:
        """Why there are no statistics; empty where there are."""
        found = self.statistics
        if found.measured:
            return ""
        return found.targets[0].problem if found.targets else "no step of the sampling phase is decided"


def follow(
    trajectories: Trajectories, name: str, first: int, target_of: Callable[[int], str] = lambda index: ""
) -> Followed:
    """Return a property along the chains.

    Args:
        first: the first step that the statistics use.
        target_of: see `Followed`.

    Raises:
        KeyError: nothing of this name is followed.
    """
    chains, missing = [], 0
    for index, numbers in trajectories.along(name).items():
        without = np.flatnonzero(np.isnan(numbers))
        known = int(without[0]) if len(without) else len(numbers)
        missing += len(numbers) - known
        chains.append((index, numbers[:known]))
    return Followed(name, tuple(chains), first, missing, target_of)


def main_property(campaign: Campaign) -> str:
    """Return the property to follow where nobody has chosen any."""
    return sampler.OBJECT_KINDS[campaign.object_kind.name].main_properties[0]


def _ranks(draws: list[tuple[int, FloatArray]]) -> Iterator[tuple[int, FloatArray]]:
    numbers = np.concatenate([each for _, each in draws])
    # The same order each time, so that a page changes with the draws only.
    ties = np.random.default_rng(0).random(len(numbers))
    ranks = np.empty(len(numbers))
    ranks[np.lexsort((ties, numbers))] = np.linspace(0, 1, len(numbers))
    ends = np.cumsum([len(each) for _, each in draws])[:-1]
    yield from zip((index for index, _ in draws), np.split(ranks, ends), strict=True)


_KEPT = 8
# Of more objects than this the numbers are read with those of the whole campaign.
_ONE_BY_ONE = 500
# In so many groups chains are read at most.
_GROUPS = 20


@dataclass
class _Path:
    """The steps at which one chain moved, 0 for its start; the objects that it moved to; its last decided step."""

    steps: list[int]
    states: list[int]
    last: int = 0

    def follow(self, numbers: dict[int, float]) -> FloatArray:
        """Return the number of the object after each step, from 0; NaN where it has none."""
        found = np.array([numbers.get(state, np.nan) for state in self.states])
        return np.repeat(found, np.diff([*self.steps, self.last + 1]))

    def stops(self, most: int) -> list[tuple[int, int]]:
        """Return some steps and the objects there, evenly over the moves."""
        chosen = np.unique(np.linspace(0, len(self.steps) - 1, most).round().astype(int)).tolist()
        return [(self.steps[each], self.states[each]) for each in chosen]


@dataclass
class Trajectories:
    """The chains of one campaign; `read` brings them up to now."""

    campaign_id: int
    scorers: dict[str, int]
    """The keys of its scorers, by name."""
    measures: tuple[str, ...]
    _paths: dict[int, _Path] = field(default_factory=dict)
    _visited: set[int] = field(default_factory=set)
    _numbers: dict[str, dict[int, float]] = field(default_factory=dict)
    _measured: set[int] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def names(self) -> tuple[str, ...]:
        """What can be followed: what is measured of every object, and the scorers' numbers."""
        return (*self.measures, *(name for name in self.scorers if name not in self.measures))

    def read(self) -> None:
        """Read the steps that were decided since, and what was measured of the objects."""
        with self._lock:
            self._read_steps()
            self._read_measures()
            for name in self.scorers:
                self._read_scores(name)

    @property
    def unmeasured(self) -> int:
        """How many objects that a chain has been at are not measured yet."""
        return len(self._visited - self._measured)

    @property
    def visited(self) -> int:
        """At how many objects a chain has been."""
        return len(self._visited)

    def along(self, name: str) -> dict[int, FloatArray]:
        """Return a number along each chain by its index: of the object after each step, the start's first.

        Where an object has no number it is NaN.

        Raises:
            KeyError: nothing of this name is followed.
        """
        if name not in self.names:
            raise KeyError(name)
        with self._lock:
            numbers = self._numbers.get(name, {})
            return {index: path.follow(numbers) for index, path in sorted(self._paths.items())}

    def stops(self, most: int) -> dict[int, list[tuple[int, int]]]:
        """Return by each chain's index some of its steps, evenly over its moves, and the keys of the objects there: its
        start first, and last where it is now.
        """
        with self._lock:
            return {index: path.stops(most) for index, path in sorted(self._paths.items())}

    def _read_steps(self) -> None:
        chains = Chain.objects.filter(campaign=self.campaign_id).values_list("pk", "index", "start", "step")
        behind: dict[int, tuple[_Path, int]] = {}
        for key, index, start, step in chains:
            path = self._paths.setdefault(index, _Path([0], [start]))
            self._visited.add(start)
            if path.last < step:
                behind[key] = path, step
        if not behind:
            return
        accepted = accepted_since({key: path.last for key, (path, _) in behind.items()})
        for key, step, state in accepted.values_list("chain", "step", "proposal"):
            path, last = behind[key]
            # Those that were decided after the chains were read come next time.
            if path.last < step <= last and state != path.states[-1]:
                path.steps.append(step)
                path.states.append(state)
                self._visited.add(state)
        for path, last in behind.values():
            path.last = last

    def _read_measures(self) -> None:
        found = self._of_new(Measured.objects.filter(state__campaign=self.campaign_id), self._measured)
        for state, numbers in found.values_list("state", "numbers"):
            self._measured.add(state)
            for name, number in numbers.items():
                self._numbers.setdefault(name, {})[state] = number

    def _read_scores(self, name: str) -> None:
        if name in self.measures:
            # A scorer of a measured number's name gives that number.
            return
        scored = self._numbers.setdefault(name, {})
        # One that has no number may be asked for again.
        found = self._of_new(Score.objects.filter(scorer=self.scorers[name], value__isnull=False), scored.keys())
        scored.update(found.values_list("state", "value"))

    def _of_new(self, rows: QuerySet[Any], known: AbstractSet[int]) -> QuerySet[Any]:
        """Return the rows of objects that a chain has been at and that are not known, and perhaps of others."""
        unknown = self._visited - known
        return rows.filter(state__in=unknown) if len(unknown) <= _ONE_BY_ONE else rows


def accepted_since(last: dict[int, int]) -> QuerySet[Comparison]:
    """Return the accepted steps of some chains that follow the last ones known, in their order, and few others.

    Chains that are about as far are asked for together: one that has opened late does not let all steps of the others
    be read again.

    Args:
        last: the last step known of each chain, by its key; of one chain or more.
    """
    ordered = sorted(last, key=lambda key: last[key])
    size = -(-len(ordered) // _GROUPS)
    groups = [ordered[begun : begun + size] for begun in range(0, len(ordered), size)]
    since = reduce(or_, (Q(chain__in=group, step__gt=last[group[0]]) for group in groups))
    return Comparison.objects.filter(since, verdict=Comparison.Verdict.ACCEPT).order_by("chain", "step")


def trajectories_of(campaign: Campaign) -> Trajectories:
    """Return where the chains of a started campaign have been until now."""
    found = _trajectories(campaign.pk, campaign.started_at, campaign.object_kind.name)
    found.read()
    return found


# Started again under the same number, as tests do, it is another one.
@lru_cache(maxsize=_KEPT)
def _trajectories(campaign_id: int, started_at: datetime, kind: str) -> Trajectories:
    scorers = CampaignScorer.objects.filter(campaign=campaign_id).values_list("name", "pk")
    return Trajectories(campaign_id, dict(scorers), sampler.properties_of_kind(kind))
