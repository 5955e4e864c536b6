"""Numbers that scorers give the kept states of a run, as `--scorer ROLE=NAME` names them.

The scorers are those of the site (`prefmh_web/scorers`). Each kept state is one row of `EvaluationAnswer`, made before
the scorer is asked and filled when its answer is there: a run that was killed asks for what is missing. An object that
a scorer gives no number has a row without a value; it is not asked about again, and its cell stays empty.

The role `quality` is not asked here. Its numbers belong to campaigns, whose configs name it and whose exports have it;
here they are only counted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.db.models import F, QuerySet

import sampler
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.models import Campaign, Score, State
from prefmh_web.experiments.campaigns import Blocked, Row
from prefmh_web.experiments.models import EvaluationAnswer, ExperimentCampaign
from prefmh_web.objects import OBJECT_KINDS, StoredObject
from prefmh_web.scorers import Answer, NoScore, Scorer, ScorerError, ScorerInterrupted, offered
from sampler.judges import Exhibit

if TYPE_CHECKING:
    from prefmh_web.experiments.run import Run


QUALITY = "quality"
"""The role whose numbers campaigns ask for and keep."""
BATCH = 32
"""Objects that a scorer is asked about before their numbers are stored."""

Place = tuple[str, str, int, int, int]
"""Method, direction, seed, chain, step."""


@dataclass(frozen=True)
class Scoring:
    """What scorers are to say of a run.

    Args:
        owner: of the run.
        settings: the hash of settings.json.
        options: of the run.
        scorers: by role.
        places: of the kept states.
        stored: what stands in one of them, as scorers get it; called when it is asked about, since pictures are large.
    """

    owner: User
    settings: str
    options: sampler.ExperimentOptions
    scorers: Mapping[str, Scorer]
    places: Sequence[Place]
    stored: Callable[[Place], StoredObject]

    @property
    def asked(self) -> Mapping[str, Scorer]:
        """The scorers that are asked here, by role."""
        return {role: scorer for role, scorer in self.scorers.items() if role != QUALITY}

    def rows(self, role: str) -> QuerySet[EvaluationAnswer]:
        """Return the rows of a scorer of this run."""
        return EvaluationAnswer.of_scorers(self.owner, self.settings).filter(key__startswith=_named_key(role))


def found(experiment: sampler.Experiment, named: Mapping[str, str]) -> dict[str, Scorer]:
    """Return the scorers that a command names, by role.

    Raises:
        OptionError: this experiment has no such role, or this site no such scorer.
    """
    there = offered(experiment.objects) if named else {}
    for role, name in named.items():
        if role not in experiment.scorers:
            roles = ", ".join(experiment.scorers) or "none"
            raise sampler.OptionError("--scorer", f"must name a role of {experiment.name} ({roles}), not {role!r}")
        if name not in there:
            known = ", ".join(sorted(there)) or "none"
            raise sampler.OptionError(
                "--scorer", f"must name a scorer that this site offers for {experiment.objects} ({known}), not "
                f"{name!r}; declare it in SCORERS",
            )  # fmt: skip
    return {role: there[name] for role, name in sorted(named.items())}


def described(scorer: Scorer) -> str:
    """Return what settings.json says of a scorer: its name, and what tells its versions apart."""
    about = scorer.description()
    return ": ".join([about["name"], *(value for key, value in about.items() if key != "name")])


def run(scoring: Scoring, show: Callable[[int, int], None], say: Callable[[str], None]) -> None:
    """Ask for every number that is missing, a batch at a time.

    Args:
        show: called with how many states have been asked about, and how many will be.
        say: called with how many objects a scorer gives no number, and why one has none.

    Raises:
        Blocked: a scorer gives no numbers at all.
    """
    planned = len(scoring.places) * len(scoring.asked)
    done = sum(_answered(scoring.rows(role)).count() for role in scoring.asked)
    show(done, planned)
    for role, scorer in scoring.asked.items():
        known = set(_answered(scoring.rows(role)).values_list("key", flat=True))
        missing = [place for place in scoring.places if _key(place, role) not in known]
        reasons: list[str] = []
        for first in range(0, len(missing), BATCH):
            batch = missing[first : first + BATCH]
            reasons += _ask(scoring, role, scorer, batch)
            done += len(batch)
            show(done, planned)
        if reasons:
            say(f"{role}: {len(reasons):,} states have no number, such as one of which it is said: {reasons[0]}")


def score_rows(scoring: Scoring) -> Iterator[Row]:
    """Yield the rows of scores.csv that are scorers'."""
    for role in scoring.asked:
        numbers = dict(scoring.rows(role).filter(value__isnull=False).values_list("key", "value"))
        sources = dict(scoring.rows(role).values_list("key", "source"))
        for place in scoring.places:
            if (key := _key(place, role)) in numbers:
                cells = dict(zip(sampler.outputs.SCORE_KEY, (*place, role), strict=True))
                yield sampler.outputs.SCORES.row(**cells, value=numbers[key], source=sources[key], asks=None)


def call_rows(scoring: Scoring, campaigns: Mapping[str, Sequence[Campaign]]) -> Iterator[Row]:
    """Yield a row of calls.csv for each scorer and method: the objects that it was asked about are its requests.

    Args:
        campaigns: by method; those of role `quality` have what their campaigns have stored.
    """
    for role, scorer in scoring.scorers.items():
        planned = sampler.planned_scores(scoring.options, role)
        for method in scoring.options.methods:
            if role == QUALITY:
                yield _quality_row(scorer, method, planned[method], campaigns.get(method, ()))
                continue
            rows = list(scoring.rows(role).filter(method=method))
            yield sampler.outputs.CALLS.row(
                **_named(scorer, role, method, planned[method]),
                requests=sum(row.requests for row in rows),
                repeated=sum(max(0, row.asked - 1) for row in rows),
                unparsable=sum(row.unreadable for row in rows),
                tokens=0,
                seconds=sum(row.seconds for row in rows),
                cost=None,
            )


def _quality_row(scorer: Scorer, method: str, planned: int, campaigns: Sequence[Campaign]) -> Row:
    scores = Score.objects.filter(scorer__campaign__in=campaigns, scorer__name=scorer.name)
    return sampler.outputs.CALLS.row(
        **_named(scorer, QUALITY, method, planned),
        requests=scores.count(),
        # A batch that is lost with its process leaves no trace: nobody can tell how far it was.
        repeated=None,
        unparsable=scores.filter(value=None).count(),
        tokens=0,
        seconds=None,
        cost=None,
    )


def _named(scorer: Scorer, role: str, method: str, planned: int) -> dict[str, str | int]:
    return {"stage": "score", "method": method, "role": role, "endpoint": scorer.name, "planned": planned}


def _ask(scoring: Scoring, role: str, scorer: Scorer, batch: Sequence[Place]) -> list[str]:
    """Ask about some states and store what comes; return why some have no number."""
    rows = [
        EvaluationAnswer.objects.get_or_create(
            owner=scoring.owner,
            settings=scoring.settings,
            kind=EvaluationAnswer.Kind.SCORE,
            key=_key(place, role),
            defaults={"method": place[0], "source": scorer.name},
        )[0].pk
        for place in batch
    ]
    # Before they are asked about: what a process that dies has begun was asked for all the same.
    EvaluationAnswer.objects.filter(pk__in=rows).update(asked=F("asked") + 1)
    began = time.monotonic()
    kind = OBJECT_KINDS[scoring.options.of_experiment.objects]
    try:
        answers = scorer.scores(kind, [scoring.stored(place) for place in batch])
    except ScorerInterrupted as error:
        raise Blocked(f"the scorer {scorer.name} was stopped; run the same command again to go on") from error
    except ScorerError as error:
        raise Blocked(
            f"the scorer {scorer.name} gives no numbers: {error}. Run the same command again once it does; what has "
            "come is kept"
        ) from error
    seconds = (time.monotonic() - began) / len(batch)
    for row, answer in zip(rows, answers, strict=True):
        _store(row, answer, seconds)
    return [answer.reason for answer in answers if isinstance(answer, NoScore)]


def _store(row: int, answer: Answer, seconds: float) -> None:
    has_none = isinstance(answer, NoScore)
    EvaluationAnswer.objects.filter(pk=row).update(
        value=None if isinstance(answer, NoScore) else answer,
        requests=F("requests") + 1,
        unreadable=int(has_none),
        seconds=F("seconds") + seconds,
    )


def _answered(rows: QuerySet[EvaluationAnswer]) -> QuerySet[EvaluationAnswer]:
    """Return those that are not to be asked for again: with a number, or with the answer that there is none."""
    return rows.filter(requests__gt=0)


def _key(place: Place, role: str) -> str:
    return _named_key(role) + "|".join(map(str, place))


def _named_key(role: str) -> str:
    return f"{EvaluationAnswer.SCORER}{role}|"


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
