"""Where the chains of a campaign have been, and the numbers of these objects, kept in memory.

What is decided never changes, so a process that has read a campaign once reads only what has come since. A few
campaigns are kept; of each, the steps at which its chains moved, and the numbers of the objects that they moved to.

What a researcher watches of a campaign's walks: its warm-up, what that has chosen, and how many votes are won.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from django.db.models import Exists, F, Max, Min, OuterRef, Q, QuerySet
from django.utils import timezone

import sampler
from prefmh_web.campaigns.models import OF_THE_START, Campaign, Chain, Comparison, Measured, Score
from prefmh_web.campaigns.monitoring.judging import Share

if TYPE_CHECKING:
    from prefmh_web.campaigns.monitoring.progress import ChainProgress


FloatArray = npt.NDArray[np.float64]

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
    _scored: dict[str, set[int]] = field(default_factory=dict)
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

    @property
    def until(self) -> datetime | None:
        """Until when the steps were decided that can be drawn: the first object that is not measured ends the lines."""
        steps = Comparison.objects.filter(chain__campaign=self.campaign_id)
        waiting = steps.filter(verdict=Comparison.Verdict.ACCEPT, proposal__measured=None)
        first: datetime | None = waiting.aggregate(at=Min("decided_at"))["at"] if self.unmeasured else None
        last: datetime | None = steps.filter(step=F("chain__step")).aggregate(at=Max("decided_at"))["at"]
        return first or last

    def along(self, name: str) -> dict[int, FloatArray]:
        """Return a number along each chain by its place: of the object after each step, the start's first.

        Where an object has no number it is NaN.

        Raises:
            KeyError: nothing of this name is followed.
        """
        if name not in self.names:
            raise KeyError(name)
        with self._lock:
            numbers = self._numbers.get(name, {})
            return {place: path.follow(numbers) for place, path in sorted(self._paths.items())}

    def stops(self, most: int) -> dict[int, list[tuple[int, int]]]:
        """Return by each chain's index some of its steps, evenly over its moves, and the keys of the objects there: its
        start first, and last where it is now.
        """
        with self._lock:
            return {index: path.stops(most) for index, path in sorted(self._paths.items())}

    def _read_steps(self) -> None:
        chains = Chain.objects.filter(campaign=self.campaign_id).values_list("pk", "place", "start", "step")
        behind: dict[int, tuple[_Path, int]] = {}
        for key, place, start, step in chains:
            path = self._paths.setdefault(place, _Path([0], [start]))
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
        unknown = self._visited - self._measured
        rows: Iterable[tuple[int, dict[str, Any]]] = (
            Measured.objects.filter(state__campaign=self.campaign_id, **_only(unknown)).values_list("state", "numbers")
            if unknown
            else ()
        )
        for state, numbers in rows:
            self._measured.add(state)
            for name, number in numbers.items():
                self._numbers.setdefault(name, {})[state] = number

    def _read_scores(self, name: str) -> None:
        scored = self._scored.setdefault(name, set())
        unknown = self._visited - scored
        if not unknown or name in self.measures:
            # A scorer of a measured number's name gives that number.
            return
        found = Score.objects.filter(scorer=self.scorers[name], **_only(unknown)).values_list("state", "value")
        for state, value in found:
            # Without a number it may be asked for again.
            if value is not None:
                scored.add(state)
                self._numbers.setdefault(name, {})[state] = value


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


def _only(states: set[int]) -> dict[str, Any]:
    return {"state__in": states} if len(states) <= _ONE_BY_ONE else {}


_memory: OrderedDict[tuple[int, Any], Trajectories] = OrderedDict()
_memory_lock = threading.Lock()


def trajectories_of(campaign: Campaign) -> Trajectories:
    """Return where the chains of a started campaign have been until now."""
    key = campaign.pk, campaign.started_at
    with _memory_lock:
        if key not in _memory:
            measures = sampler.properties_of_kind(campaign.object_kind.name)
            _memory[key] = Trajectories(campaign.pk, dict(campaign.scorers.values_list("name", "pk")), measures)
        found = _memory[key]
        _memory.move_to_end(key)
        while len(_memory) > _KEPT:
            _memory.popitem(last=False)
    found.read()
    return found


# Of fewer votes, the share that is won says little.
_FEWEST_VOTES = 50
_LEAST_PERCENT_WON = 10


def walks_of(campaign: Campaign, there: Sequence[ChainProgress]) -> dict[str, Any] | None:
    """Return how a started campaign's walks are getting on; None where it makes one move between two pairs.

    ``length`` is how far steps walk after the warm-up: None while that is not chosen, or where there are several
    lengths; ``own_length`` if the warm-up is ended. ``waited_for`` are the chains that have not come to its end, by
    place, with at most ``steps_left``; ``late`` those without a decision for longer than the config's patience.
    ``tried`` is what each length of the grid did, and ``rule`` how one was chosen from these. ``won`` are the counted
    votes for the proposal since the warm-up, of the chains of the start; None of too few.
    """
    config = campaign.config
    kernel: Any = config.kernel
    if kernel.kind != "walk":
        return None
    # Chains that open later have no part in what the warm-up finds.
    of_start = [each for each in there if each.chain.place < config.chains]
    behind = [each.chain for each in of_start if each.chain.step < campaign.warm_up]
    own = kernel.length[0].length
    length = campaign.walk_length if campaign.warm_up else (own if len(kernel.length) == 1 else None)
    found: dict[str, Any] = campaign.tuning or {}
    trials: list[dict[str, Any]] = found.get("trials", [])
    won = _won(campaign, of_start, trials)
    return {
        "is_warming_up": campaign.is_warming_up,
        "warm_up": campaign.warm_up,
        "length": length,
        "waited_for": [chain.place for chain in behind] if campaign.is_warming_up else [],
        "steps_left": max((campaign.warm_up - chain.step for chain in behind), default=0),
        "late": [chain.place for chain in late_chains(campaign)],
        "own_length": own,
        "patience_minutes": config.warm_up.patience_minutes if config.warm_up else 0,
        "was_ended": "ended_at" in found,
        "is_the_middle": found.get("because") == sampler.MIDDLE,
        "tried": trials,
        "furthest": max((trial["jump_per_vote"] for trial in trials), default=0),
        "rule": found.get("rule", ""),
        "won": won,
        # So few votes for the proposal that careless ones count for much.
        "wins_too_little": won is not None and won.percent < _LEAST_PERCENT_WON,
        "shorter": _shorter(trials, length),
    }


def late_chains(campaign: Campaign) -> QuerySet[Chain]:
    """Chains that have not decided a step for longer than the config's patience while a running campaign warms up."""
    warm_up = campaign.config.warm_up
    if warm_up is None or not (campaign.is_warming_up and campaign.is_running) or campaign.started_at is None:
        return Chain.objects.none()
    since = timezone.now() - timedelta(minutes=warm_up.patience_minutes)
    return _still_since(campaign, since) if campaign.started_at < since else Chain.objects.none()


def _still_since(campaign: Campaign, since: datetime) -> QuerySet[Chain]:
    decided = Comparison.objects.filter(chain=OuterRef("pk"), step=OuterRef("step"), decided_at__gte=since)
    first = campaign.chains.filter(OF_THE_START)
    behind = first.filter(step__lt=campaign.warm_up)
    # Should the choice itself fail, all of them are late.
    return (behind if behind.exists() else first).filter(~Exists(decided)).order_by("place")


def _won(campaign: Campaign, chains: Sequence[ChainProgress], trials: Sequence[dict[str, Any]]) -> Share | None:
    if campaign.is_warming_up or (campaign.warm_up and not trials):
        return None
    votes = sum(each.votes for each in chains) - sum(int(trial["votes"]) for trial in trials)
    votes_for = sum(each.votes_for for each in chains) - sum(int(trial["votes_for"]) for trial in trials)
    return Share(votes_for, votes) if votes >= _FEWEST_VOTES else None


def _shorter(trials: Sequence[dict[str, Any]], length: int | None) -> dict[str, Any] | None:
    """Return the next shorter length of the grid, and how many times as many votes it costs for the same distance as
    the chosen one, by what the warm-up has found.
    """
    chosen = next((trial for trial in trials if trial["length"] == length), None)
    shorter = [trial for trial in trials if length is not None and trial["length"] < length]
    if chosen is None or not shorter:
        return None
    jump = shorter[-1]["jump_per_vote"]
    return {"length": shorter[-1]["length"], "cost": chosen["jump_per_vote"] / jump if jump else None}
