"""Where the chains of a campaign have been, and the numbers of these objects, kept in memory.

What is decided never changes, so a process that has read a campaign once reads only what has come since. A few
campaigns are kept; of each, the steps at which its chains moved, and the numbers of the objects that they moved to.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import numpy.typing as npt
from django.db.models import F, Max, Min, Q, QuerySet

import sampler
from prefmh_web.campaigns.models import Campaign, Chain, Comparison, Measured, Score

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
