"""What the stages of a run have taken, from the database: for its progress, and beside what was planned (calls.csv)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.db.models import F, QuerySet, Sum
from django.db.models.functions import Greatest

import sampler
from prefmh_web.campaigns.models import Campaign, ModelUsage
from prefmh_web.experiments.campaigns import Row, usage_of
from prefmh_web.experiments.configs import Part
from prefmh_web.experiments.evaluation import DETECTOR, Evaluation
from prefmh_web.experiments.models import EvaluationAnswer
from prefmh_web.experiments.progress import Standing, is_written

if TYPE_CHECKING:
    from prefmh_web.experiments.run import Run


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
    yield from _rows_of(about_states, DETECTOR, evaluation.detector.name, options.methods, detected)
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


def of_campaign(run: Run, parts: Sequence[Part], number: int, campaign: Campaign) -> Standing:
    """Return how far the parts are, when the campaign of the `number`-th, from 1, is under way."""
    done = campaign.chains.aggregate(all=Sum("step"))["all"] or 0
    starting = (campaign.start_progress or "starting") if campaign.is_draft else ""
    return of_part(run, parts, number, done, starting)


def of_part(run: Run, parts: Sequence[Part], number: int, done: int, starting: str = "") -> Standing:
    """Return how far the parts are, when the chains of the `number`-th, from 1, have taken so many steps together.

    Args:
        starting: how far its start is; empty once it has started.
    """
    name = parts[number - 1].name
    before, weights = parts[: number - 1], _weights(parts)
    requests, cost = taken(run)
    return Standing(
        stage="run",
        part=f"{name}: {starting}" if starting else name,
        number=number,
        parts=len(parts),
        done=sum(map(_steps, before)) + done,
        planned=sum(map(_steps, parts)),
        unit="steps",
        requests=requests,
        cost=cost,
        work=sum(_steps(each) * weight for each, weight in zip(before, weights, strict=False))
        + done * weights[number - 1],
        all_work=sum(_steps(each) * weight for each, weight in zip(parts, weights, strict=True)),
    )


def of_evaluation(run: Run, done: int, planned: int) -> Standing:
    """Return how far the evaluation is, of whose answers so many have come."""
    requests, cost = taken(run)
    return Standing("evaluate", "answers", 1, 1, done, planned, "answers", requests, cost, done, planned)


def of_scoring(run: Run, done: int, planned: int) -> Standing:
    """Return how far the scorers are, who have been asked about so many states."""
    requests, cost = taken(run)
    return Standing("score", "scorers", 1, 1, done, planned, "states", requests, cost, done, planned)


def taken(run: Run) -> tuple[int, float | None]:
    """Return the requests of a run so far and their cost; None where a price is not known."""
    campaigns = ModelUsage.objects.filter(
        campaign__experiment__owner=run.owner, campaign__experiment__settings=run.settings
    )
    answers = EvaluationAnswer.of_models(run.owner, run.settings)
    sums = [_sums(campaigns), _sums(answers)]
    requests = sum(int(each["requests"]) for each in sums)
    known = requests and not any(each["unpriced"] for each in sums)
    return requests, sum(each["cost"] for each in sums) if known else None


def _sums(rows: QuerySet[ModelUsage] | QuerySet[EvaluationAnswer]) -> dict[str, float]:
    found = rows.aggregate(**{name: Sum(name) for name in ("requests", "cost", "unpriced")})
    return {name: value or 0 for name, value in found.items()}


def _steps(part: Part) -> int:
    """Return how many steps the chains of a part take together."""
    return part.chains * part.options.steps_of(part.method)


def _weights(parts: Sequence[Part]) -> list[float]:
    """Return the work of a step of each part: its requests, or the same for all where nobody is asked anything."""
    found = [_requests_a_step(part) for part in parts]
    return found if any(found) else [1.0] * len(parts)


def _requests_a_step(part: Part) -> float:
    """Return how many requests are planned for a step of a part, its share of the starts included."""
    sums = sampler.planned_sums(part.options)
    name = part.method.name
    steps = sums["proposals"][name]
    return sums["judge_requests"][name] / steps + is_written(part.options)
