"""The kept states of a run as scorers and models get them: what stands there, with its prompt and its reference."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sampler
from prefmh_web.campaigns.models import State
from prefmh_web.campaigns.started import objects
from prefmh_web.experiments.folder import Row
from prefmh_web.experiments.models import ExperimentCampaign
from prefmh_web.experiments.scoring import QUALITY, Place
from prefmh_web.objects import OBJECT_KINDS, StoredObject
from sampler.judges import Exhibit

if TYPE_CHECKING:
    from prefmh_web.experiments.run import Run


@dataclass(frozen=True)
class ScoredStates:
    """What stands in the kept states of a run, from its records.

    Raises:
        RecordError: a record is missing or cannot be read.
    """

    run: Run

    @cached_property
    def places(self) -> Mapping[Place, tuple[str, int]]:
        """The content of each kept state and its number in its record."""
        found = {}
        for part in self.run.parts():
            kept = set(sampler.kept_steps(self.run.options, part.method))
            for row in sampler.read_samples(self.run.record(part)):
                if int(row["step"]) in kept:
                    place = part.method.name, part.direction, part.seed, int(row["chain_index"]), int(row["step"])
                    found[place] = row["content"], int(row["state_index"])
        return found

    def quality_rows(self) -> Iterator[Row]:
        """Yield the rows of scores.csv of the role `quality`: what the records say of the kept states."""
        name = self.run.scorers[QUALITY].name
        for part in self.run.parts():
            given = {
                int(row["state_index"]): row["score"]
                for row in sampler.read_record(self.run.record(part))["scores"]
                if row["scorer"] == name and row["score"]
            }
            mine = (part.method.name, part.direction, part.seed)
            for place, (_, state) in self.places.items():
                if place[:3] == mine and state in given:
                    cells = dict(zip(sampler.outputs.SCORE_KEY, (*place, QUALITY), strict=True))
                    yield sampler.outputs.SCORES.row(**cells, value=float(given[state]), source=name, asks=None)

    def stored(self, place: Place) -> StoredObject:
        """Return what stands in a kept state. A picture is the one that its campaign has."""
        content, number = self.places[place]
        if OBJECT_KINDS[self.run.options.of_experiment.objects].medium == "picture":
            found = objects.stored(self._row(place, number))
        else:
            found = StoredObject(content)
        return replace(found, told=self._told(place))

    def exhibit(self, place: Place) -> Exhibit:
        """Return what a model is shown of a kept state."""
        return OBJECT_KINDS[self.run.options.of_experiment.objects].exhibit(self.stored(place), sees_pictures=True)

    def _row(self, place: Place, number: int) -> State:
        method, direction, seed = place[:3]
        part = ExperimentCampaign.objects.get(
            owner=self.run.owner, settings=self.run.settings, method=method, direction=direction, seed=seed
        )
        return State.objects.select_related("campaign").get(campaign=part.campaign_id, place=number)

    def _told(self, place: Place) -> tuple[tuple[str, str], ...]:
        given = self._inputs.get(place[1], ())
        if not given:
            return ()
        about = given[place[3] % self.run.options.direction(place[1]).inputs]
        return tuple((name, about[name]) for name in ("prompt", "reference") if about[name])

    @cached_property
    def _inputs(self) -> Mapping[str, Any]:
        document = json.loads((self.run.out / sampler.outputs.SETTINGS).read_text(encoding="utf-8"))
        found: Mapping[str, Any] = document["inputs"]
        return found
