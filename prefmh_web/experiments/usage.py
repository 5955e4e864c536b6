"""What a run has taken, from the database: how far it is, and beside what was planned (calls.csv)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from django.db.models import F, QuerySet, Sum
from django.db.models.functions import Greatest

import sampler
from prefmh_web.campaigns.models import ModelUsage, Score
from prefmh_web.experiments.configs import Run
from prefmh_web.experiments.models import EvaluationAnswer
from prefmh_web.experiments.progress import Standing

QUALITY = "quality"
"""The scorer whose numbers campaigns ask for and keep, since QUEST and judges go by them."""
_REPEATED = {ModelUsage: F("repeated"), EvaluationAnswer: Greatest(F("asked") - 1, 0)}


def answers_of(run: Run) -> QuerySet[EvaluationAnswer]:
    """Return what models and scorers are asked about the states of a run."""
    return EvaluationAnswer.objects.filter(owner=run.owner, settings=run.settings)


def asked_of_models(run: Run) -> QuerySet[EvaluationAnswer]:
    """Return what models are asked about them."""
    return answers_of(run).exclude(role__in=run.options.of_experiment.scorers)


def taken(run: Run) -> tuple[int, float | None]:
    """Return the requests of a run so far and their cost; None where a price is not known."""
    sums = [_sums(_used(run)), _sums(asked_of_models(run))]
    requests = sum(each["requests"] for each in sums)
    known = requests and not any(each["unpriced"] for each in sums)
    return requests, sum(each["cost"] for each in sums) if known else None


def standing(run: Run, number: int, done: int, starting: str = "") -> Standing:
    """Return how far the parts are.

    Args:
        number: of the part that is under way, from 0.
        done: steps that its chains have taken together.
        starting: how far its start is; empty once it has started.
    """
    steps = [each.chains * each.steps for each in run.parts]
    name = run.parts[number].name
    title = f"run, part {number + 1} of {len(steps)} ({f'{name}: {starting}' if starting else name})"
    return Standing(title, sum(steps[:number]) + done, sum(steps), "steps", *taken(run))


def requests_in_all(run: Run) -> int:
    """Return how many requests are planned for a run: its writer's, its judges' and its evaluation's."""
    sums = sampler.planned_sums(run.options)
    written = sums["writer_requests"]["all"] * run.writer_is_asked
    return written + sums["judge_requests"]["all"] + sums["evaluation_requests"]["all"]


def call_rows(run: Run) -> Iterator[dict[str, Any]]:
    """Yield the rows of calls.csv: of campaigns, of scorers, and of models that are asked about the states."""
    options, planned = run.options, sampler.planned_sums(run.options)
    experiment = options.of_experiment
    for method in options.methods:
        mine = _used(run).filter(campaign__experiment__method=method)
        for role, plan in (("writer", "writer_requests"), ("judge", "judge_requests")):
            is_asked = role == "judge" or run.writer_is_asked
            used = mine.filter(place__lt=0) if role == "writer" else mine.filter(place__gte=0)
            if is_asked and role in run.endpoints and (planned[plan][method] or used):
                yield _row("run", method, role, run.endpoints[role], planned[plan][method], _sums(used))
    for role, scorer in run.scorers.items():
        for method, count in sampler.planned_scores(options, role).items():
            if method != "all":
                asked = answers_of(run).filter(role=role, method=method)
                found = _of_quality(run, method) if role == QUALITY else _sums(asked) | {"cost": None}
                yield _row("score", method, role, scorer.name, count, found)
    about_states = sampler.planned_sums(replace(options, matches=0))["evaluation_requests"]
    rated, compared = ({each.role for each in asked} for asked in (experiment.rated, experiment.compared))
    for role in sorted((rated | compared) & run.endpoints.keys()):
        for method in options.methods:
            in_tournament = planned["evaluation_requests"][method] - about_states[method]
            if count := (role in rated) * about_states[method] + (role in compared) * in_tournament:
                found = _sums(answers_of(run).filter(role=role, method=method))
                yield _row("evaluate", method, role, run.endpoints[role], count, found)


def _used(run: Run) -> QuerySet[ModelUsage]:
    return ModelUsage.objects.filter(campaign__experiment__owner=run.owner, campaign__experiment__settings=run.settings)


def _sums(rows: QuerySet[Any]) -> dict[str, Any]:
    """Return what was taken, by the columns of calls.csv, and how many requests have no known price."""
    columns: dict[str, Any] = {name: F(name) for name in ("requests", "seconds", "cost", "unpriced")}
    columns |= {
        "unparsable": F("unreadable"),
        "tokens": F("tokens_in") + F("tokens_out"),
        "repeated": _REPEATED[rows.model],
    }
    sums = rows.aggregate(**{f"sum_{name}": Sum(column) for name, column in columns.items()})
    return {name.removeprefix("sum_"): value or 0 for name, value in sums.items()}


def _of_quality(run: Run, method: str) -> dict[str, Any]:
    scores = Score.objects.filter(
        scorer__campaign__experiment__owner=run.owner,
        scorer__campaign__experiment__settings=run.settings,
        scorer__campaign__experiment__method=method,
        scorer__name=run.scorers[QUALITY].name,
    )
    # A batch that is lost with its process leaves no trace: nobody can tell how far it was.
    unknown = {"repeated": None, "seconds": None, "cost": None}
    return unknown | {"requests": scores.count(), "unparsable": scores.filter(value=None).count(), "tokens": 0}


def _row(stage: str, method: str, role: str, endpoint: str, planned: int, found: Mapping[str, Any]) -> dict[str, Any]:
    about = {"stage": stage, "method": method, "role": role, "endpoint": endpoint, "planned": planned}
    taken = {name: found[name] for name in ("requests", "repeated", "unparsable", "tokens", "seconds")}
    return about | taken | {"cost": None if found.get("unpriced") else found["cost"]}
