"""calls.csv: what asking models took in a run, beside what was planned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from django.db.models import F, QuerySet, Sum
from django.db.models.functions import Greatest

import sampler
from prefmh_web.campaigns.models import Campaign, ModelUsage
from prefmh_web.experiments.campaigns import usage_of
from prefmh_web.experiments.detecting import ROLE
from prefmh_web.experiments.evaluation import Evaluation
from prefmh_web.experiments.folder import Row
from prefmh_web.experiments.forecast import is_written
from prefmh_web.experiments.models import EvaluationAnswer

_SUMS = ("requests", "unreadable", "tokens", "seconds", "cost", "unpriced")


def run_rows(
    options: sampler.ExperimentOptions, campaigns: Mapping[str, list[Campaign]], endpoints: Mapping[str, str]
) -> Iterator[Row]:
    """Yield a row for the writer and one for the judges of each method.

    Args:
        campaigns: by method.
    """
    planned = sampler.planned_sums(options)
    for method, mine in campaigns.items():
        usage = [row for campaign in mine for row in usage_of(campaign)]
        for role, plan in (("writer", "proposals"), ("judge", "judge_requests")):
            if role == "writer" and not is_written(options):
                # Pictures are made here: no request leaves.
                continue
            rows = [row for row in usage if row.is_of_proposals == (role == "writer")]
            if role in endpoints and (rows or planned[plan].get(method)):
                yield _row("run", method, role, endpoints[role], planned[plan].get(method, 0), _summed(rows))


def evaluation_rows(evaluation: Evaluation) -> Iterator[Row]:
    """Yield a row for each method that the evaluator was asked about, and one that a detector was."""
    options = evaluation.options
    planned = sampler.planned_sums(options)["evaluation_requests"]
    if evaluation.detector is None:
        evaluator = evaluation.evaluator.name
        yield from _rows_of(evaluation.answers, "evaluator", evaluator, options.methods, planned)
        return
    detected = sampler.planned_sums(replace(options, matches=0))["evaluation_requests"]
    about_states, votes = (evaluation.answers.filter(kind=kind) for kind in ("score", "vote"))
    yield from _rows_of(about_states, ROLE, evaluation.detector.name, options.methods, detected)
    if options.matches:
        rest = {method: planned[method] - detected[method] for method in options.methods}
        yield from _rows_of(votes, "evaluator", evaluation.evaluator.name, options.methods, rest)


def _rows_of(
    answers: QuerySet[EvaluationAnswer], role: str, endpoint: str, methods: Iterable[str], planned: Mapping[str, int]
) -> Iterator[Row]:
    lost = Greatest(F("asked") - 1, 0)
    for method in methods:
        mine = answers.filter(method=method)
        sums = mine.aggregate(**{name: Sum(name) for name in _SUMS}, repeated=Sum(lost))
        found = {name: value or 0 for name, value in sums.items()}
        yield _row("evaluate", method, role, endpoint, planned.get(method, 0), found)


def _summed(rows: list[ModelUsage]) -> dict[str, Any]:
    return {
        "requests": sum(row.requests for row in rows),
        "unreadable": sum(row.unreadable for row in rows),
        "tokens": sum(row.tokens_in + row.tokens_out for row in rows),
        "seconds": sum(row.seconds for row in rows),
        "cost": sum(row.cost for row in rows),
        "unpriced": sum(row.unpriced for row in rows),
        "repeated": sum(row.repeated for row in rows),
    }


def _row(stage: str, method: str, role: str, endpoint: str, planned: int, found: Mapping[str, Any]) -> Row:
    return sampler.outputs.CALLS.row(
        stage=stage,
        method=method,
        role=role,
        endpoint=endpoint,
        planned=planned,
        requests=found["requests"],
        repeated=found["repeated"],
        unparsable=found["unreadable"],
        tokens=found["tokens"],
        seconds=found["seconds"],
        cost=None if found["unpriced"] else found["cost"],
    )
