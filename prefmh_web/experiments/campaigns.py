"""The campaigns of a run: found again or made, started, waited for; and what a run has taken, beside what was planned.

A campaign is found by its owner, the hash of settings.json, its method, direction and seed. So the same command, run
again, goes on where it was killed; what chains have done is in the database.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Greatest

import sampler
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine.usage import note_repeated_start
from prefmh_web.campaigns.lifecycle import changes, model_start
from prefmh_web.campaigns.models import Campaign, Comparison, ModelUsage, Score
from prefmh_web.config import CampaignConfig
from prefmh_web.console.words import duration
from prefmh_web.experiments.configs import Part, Run, config_of
from prefmh_web.experiments.models import EvaluationAnswer, ExperimentCampaign

_LOOK_EVERY_S = 0.5
_FINISHED = Campaign.Status.FINISHED


class Blocked(Exception):  # noqa: N818 - reads as the sentence it starts
    """A campaign does not go on by itself; the message says why and what to do."""


class LimitReached(Exception):  # noqa: N818 - reads as the sentence it starts
    """So many requests as were allowed have been made."""

    def __init__(self) -> None:
        super().__init__("--max-requests is reached; run the same command with a higher number to go on")


def ensure(part: Part) -> Campaign:
    """Return the campaign of a part, made if there is none; two commands at once make one."""
    run, config = part.run, config_of(part)
    key = {"owner": run.owner, "settings": run.settings, "method": part.method.name, "direction": part.direction}
    with transaction.atomic():
        # Whoever makes one holds its owner's row.
        User.objects.select_for_update().get(pk=run.owner.pk)
        found = ExperimentCampaign.objects.filter(**key, seed=part.seed).select_related("campaign").first()
        if found is not None:
            return found.campaign
        name = f"{part.options.of_experiment.title}: {part.name}"[:120]
        campaign = changes.create(owner=run.owner, config=CampaignConfig.model_validate(config | {"name": name}))
        ExperimentCampaign.objects.create(**key, seed=part.seed, experiment=part.options.experiment, campaign=campaign)
    return campaign


def run(campaign: Campaign, max_requests: int | None, show: Callable[[], None]) -> None:
    """Start a campaign or go on with it, and return when its last step is decided.

    Args:
        max_requests: of its writer and its judges, those of earlier runs included; None for no limit.
        show: called every now and then.

    Raises:
        Blocked: it waits for somebody.
        LimitReached: it has made as many requests as it may.
    """
    campaign.refresh_from_db()
    if campaign.status == _FINISHED:
        return
    if max_requests is not None and max_requests <= requests_of(campaign):
        raise LimitReached
    if campaign.request_cap != max_requests:
        caps = campaign.config.caps.model_copy(update={"requests": max_requests})
        changes.apply(campaign, campaign.typed_config.model_copy(update={"caps": caps}), campaign.owner)
    if campaign.is_draft:
        if settings.EMBEDDED and campaign.starting_since is not None:
            # An earlier command was killed in it: starts are made by the command itself here.
            note_repeated_start(campaign)
        lifecycle.request_start(campaign)
    elif campaign.status == Campaign.Status.PAUSED:
        _resume(campaign, max_requests)
    while campaign.status != _FINISHED:
        time.sleep(_LOOK_EVERY_S)
        campaign.refresh_from_db()
        show()
        _check(campaign, max_requests)


def requests_of(campaign: Campaign) -> int:
    """Return how many requests the writer and the judges of a campaign have been sent."""
    return sum(campaign.model_usage.values_list("requests", flat=True))


def _resume(campaign: Campaign, max_requests: int | None) -> None:
    try:
        lifecycle.resume(campaign)
    except lifecycle.NotPossible as reason:
        if max_requests is not None and _is_at_a_cap(campaign):
            raise LimitReached from reason
        raise Blocked(f"{campaign.name} cannot go on: {reason}") from reason


def _check(campaign: Campaign, max_requests: int | None) -> None:
    """Raise if a campaign does not go on by itself."""
    if campaign.is_draft and campaign.start_trouble:
        if max_requests is not None and _is_at_a_cap(campaign):
            raise LimitReached
        raise Blocked(f"{campaign.name} could not be started: {campaign.start_trouble}")
    if campaign.status == Campaign.Status.PAUSED:
        if campaign.paused_because and max_requests is not None:
            raise LimitReached
        reason = campaign.paused_because or "somebody has paused it; resume it on its page"
        raise Blocked(f"{campaign.name} is paused: {reason}")
    for judge in campaign.judges.exclude(stopped_because=""):
        raise Blocked(f"{campaign.name}: {judge.stopped_because} Open the campaign's page to go on.")
    for scorer in campaign.scorers.filter(name__in=campaign.config.needed_scorers).exclude(stopped_because=""):
        raise Blocked(
            f"{campaign.name}: the scorer {scorer.name} gives no numbers: {scorer.stopped_because}. Fix it, press "
            "“Try the scorers again” on the campaign's page, and run the same command again"
        )
    # Each chain that is not at its end waits for a number that its scorer says there is not, or for somebody to see to
    # what a judge ran into.
    none = Score.objects.filter(
        scorer__campaign=campaign, scorer__name__in=campaign.config.needed_scorers, value__isnull=True
    )
    opened = Comparison.objects.filter(chain=OuterRef("pk"), verdict__isnull=True)
    without = Q(current__in=none.values("state")) | Q(proposal__in=none.values("state"))
    suspended = Q(turns__asked=0, turns__until__isnull=True)
    unfinished = campaign.chains.filter(step__lt=F("length"), ended_at=None)
    if 0 < unfinished.count() == unfinished.filter(Exists(opened.filter(without | suspended))).count():
        missing = none.select_related("scorer").first()
        why = (
            f"waits for a number that {missing.scorer.name} does not give: {missing.reason}"
            if missing
            else "is suspended"
        )
        raise Blocked(f"{campaign.name}: every open step {why}. Open the campaign's page to go on")


def _is_at_a_cap(campaign: Campaign) -> bool:
    """Say whether one of its models may not be asked once more."""
    try:
        model_start.require_room(campaign)
    except lifecycle.NotPossible:
        return True
    return False


_LINE_EVERY_S = 10.0
QUALITY = "quality"
"""The scorer whose numbers campaigns ask for and keep, since QUEST and judges go by them."""
_REPEATED = {ModelUsage: F("repeated"), EvaluationAnswer: Greatest(F("asked") - 1, 0)}


@dataclass(frozen=True)
class RunStatus:
    """How far a run is.

    Args:
        title: the stage and what is under way, in words.
        done: steps or answers of the stage that there are.
        planned: how many there will be.
        unit: what is counted.
        requests: of the whole run so far.
        cost: of these; None where a price is not known.
    """

    title: str
    done: int
    planned: int
    unit: str
    requests: int
    cost: float | None


class Display:
    """Shows lines, and between them every now and then how far the run is.

    Args:
        say: takes a line.
        clock: seconds, of any beginning.
        max_requests: that are planned for the whole run.
    """

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float], max_requests: int) -> None:
        self.say, self._clock, self._max_requests = say, clock, max_requests
        self._shown: tuple[float, int] | None = None

    def show(self, status: Callable[[], RunStatus]) -> None:
        """Show how far the run is, when it is time to; `status` is called only then."""
        now = self._clock()
        if self._shown is None or now - self._shown[0] >= _LINE_EVERY_S:
            found = status()
            self.say(self._described(found, now))
            self._shown = now, found.requests

    def _described(self, status: RunStatus, now: float) -> str:
        """Return a line about how far a run is, at the rate since the last line: what is not known is left out."""
        before, requests = self._shown or (now, 0), status.requests
        rate = (requests - before[1]) / (now - before[0]) if now > before[0] else 0.0
        said = [f"{status.title}: {status.done:,} of {status.planned:,} {status.unit}"]
        if self._max_requests:
            speed = f" ({rate:,.1f}/s)" if rate else ""
            said.append(f"{requests:,} of at most {self._max_requests:,} requests{speed}")
        if status.cost is not None:
            said.append(f"cost {status.cost:,.2f}")
        if rate and requests < self._max_requests:
            said.append(f"at most {duration((self._max_requests - requests) / rate)} left of the whole run")
        return ", ".join(said)


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


def run_status(run: Run, number: int, done: int, starting: str = "") -> RunStatus:
    """Return how far the parts are.

    Args:
        number: of the part that is under way, from 0.
        done: steps that its chains have taken together.
        starting: how far its start is; empty once it has started.
    """
    steps = [each.chains * each.steps for each in run.parts]
    name = run.parts[number].name
    title = f"run, part {number + 1} of {len(steps)} ({f'{name}: {starting}' if starting else name})"
    return RunStatus(title, sum(steps[:number]) + done, sum(steps), "steps", *taken(run))


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
            used = mine.filter(judge_index__lt=0) if role == "writer" else mine.filter(judge_index__gte=0)
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
