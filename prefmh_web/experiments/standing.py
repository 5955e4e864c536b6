"""How far the stages of a run are, from the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.db.models import QuerySet, Sum

import sampler
from prefmh_web.campaigns.models import Campaign, ModelUsage
from prefmh_web.experiments.configs import Part
from prefmh_web.experiments.forecast import is_written
from prefmh_web.experiments.models import EvaluationAnswer
from prefmh_web.experiments.progress import Standing

if TYPE_CHECKING:
    from prefmh_web.experiments.run import Run


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
