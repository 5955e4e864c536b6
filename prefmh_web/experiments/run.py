"""A run of an experiment, stage by stage: its campaigns, its evaluation, its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from django.contrib.auth.models import User

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.experiments import (
    calls,
    campaigns,
    detecting,
    evaluation,
    folder,
    lockstep_part,
    pictures,
    scoring,
    standing,
)
from prefmh_web.experiments.configs import CONFIGS, Part
from prefmh_web.experiments.models import ExperimentCampaign
from prefmh_web.experiments.progress import Display
from prefmh_web.experiments.scored_states import ScoredStates
from prefmh_web.scorers import Scorer

outputs = sampler.outputs
_NAME = sampler.outputs.SCORE_KEY.index("name")


class RecordDiffers(Exception):  # noqa: N818 - reads as the sentence it starts
    """A record says otherwise than its replay."""


@dataclass(frozen=True)
class Run:
    """One run of an experiment.

    Args:
        options: what it consists of.
        owner: of its campaigns and endpoints.
        out: its folder.
        settings: the hash of its settings.json.
        endpoints: names, by role.
        inputs: prompts, by direction.
        most_requests: of all its stages together.
        scorers: by role.
        vocabulary: the arms of molecules, as the config of their space has them.
    """

    options: sampler.ExperimentOptions
    owner: User
    out: Path
    settings: str
    endpoints: Mapping[str, str]
    inputs: Mapping[str, Sequence[str]]
    most_requests: int | None = None
    scorers: Mapping[str, Scorer] = field(default_factory=dict)
    vocabulary: Literal["default"] | tuple[str, ...] = "default"

    def parts(self) -> Iterator[Part]:
        """Yield its campaigns: by direction, seed and method."""
        scorers = {role: scorer.name for role, scorer in self.scorers.items()}
        for direction in self.options.directions:
            for seed in self.options.seeds:
                for method in self.options.chosen:
                    inputs = self.inputs.get(direction.name, ())
                    named = (self.endpoints, inputs, scorers, self.vocabulary)
                    yield Part(self.options, method, direction.name, seed, *named)

    def record(self, part: Part) -> Path:
        """Return where a part's record stands."""
        return self.out / outputs.RECORDS / f"{part.name}.zip"


def check(part: Part) -> None:
    """Check that a part can be run.

    Raises:
        ValueError: its config cannot be run.
        MissingExtra: something that computes it is not installed.
    """
    if lockstep_part.takes(part):
        lockstep_part.check(part)
    else:
        config_of(part)


def config_of(part: Part) -> dict[str, Any]:
    """Return a part's config, checked.

    Raises:
        ValueError: it cannot be run; `sampler.ConfigError` is one.
    """
    return sampler.parse_config(CONFIGS[part.options.experiment](part)).model_dump(mode="json")


def sample(run: Run, display: Display) -> None:
    """Run every part and save its record, which is replayed.

    Raises:
        Blocked, LimitReached: as `campaigns.run`.
        RecordDiffers: a replay differs from its record.
    """
    spent = 0
    made: dict[str, list[Campaign]] = {method.name: [] for method in run.options.chosen}
    try:
        for number, part in enumerate(parts := list(run.parts()), start=1):
            if lockstep_part.takes(part):
                _save(run, part, partial(lockstep_part.write_record, part, _counted(run, parts, number, display)))
                display.say(f"{part.name}: done")
                continue
            campaign = campaigns.ensure(run.owner, run.settings, part, config_of(part))
            made[part.method.name].append(campaign)
            left = None if run.most_requests is None else run.most_requests - spent
            now = partial(standing.of_campaign, run, parts, number, campaign)
            campaigns.run(campaign, run.owner, left, partial(display.show, now))
            spent += campaigns.requests_of(campaign)
            _save(run, part, partial(campaigns.save_record, campaign))
            if pictures.are_of(run.options.of_experiment):
                pictures.save(run.options, part, campaign, run.out)
            display.say(f"{part.name}: done")
    finally:
        _write_calls(run, calls.run_rows(run.options, made, run.endpoints), "run")


def evaluate(run: Run, display: Display) -> None:
    """Ask about the states of the records, scorers first, and write the tables of the evaluation.

    Raises:
        Blocked, LimitReached: as `scoring.run` and `evaluation.run`.
    """
    experiment = run.options.of_experiment
    folder.write_table(run.out, outputs.PAIRS, evaluation.pair_rows(run.options))
    states = ScoredStates(run)
    numbers = _score(run, states, display) if run.scorers else []
    if not experiment.rated and not run.options.matches:
        display.say(f"{experiment.name}: no model is asked about its states")
        return
    spent = sum(map(campaigns.requests_of, Campaign.objects.filter(experiment__settings=run.settings)))
    asked = {role: Endpoint.objects.get(owner=run.owner, name=run.endpoints[role]) for role in experiment.evaluated_by
             if role in run.endpoints}  # fmt: skip
    left = None if run.most_requests is None else run.most_requests - spent
    contents = {place: content for place, (content, _) in states.places.items()}
    wanted = evaluation.Evaluation(
        run.owner, run.settings, run.options, asked.get("evaluator") or asked[detecting.ROLE], contents, left,
        run.inputs, asked.get(detecting.ROLE), states.exhibit if pictures.are_of(experiment) else None,
    )  # fmt: skip
    try:
        evaluation.run(wanted, lambda *counts: display.show(partial(standing.of_evaluation, run, *counts)))
    finally:
        folder.write_table(run.out, outputs.SCORES, [*evaluation.score_rows(wanted), *numbers])
        folder.write_table(run.out, outputs.VOTES, evaluation.vote_rows(wanted))
        _write_calls(run, calls.evaluation_rows(wanted), "evaluate")


def _score(run: Run, states: ScoredStates, display: Display) -> list[folder.Row]:
    """Ask the scorers about the states of the records, and return their rows of scores.csv, which are written, too."""
    wanted = scoring.Scoring(run.owner, run.settings, run.options, run.scorers, list(states.places), states.stored)
    try:
        scoring.run(wanted, lambda *counts: display.show(partial(standing.of_scoring, run, *counts)), display.say)
    finally:
        numbers = [*scoring.score_rows(wanted), *(states.quality_rows() if scoring.QUALITY in run.scorers else ())]
        roles = set(run.scorers)
        others = [row for row in folder.rows_of(run.out, outputs.SCORES) if row[_NAME] not in roles]
        folder.write_table(run.out, outputs.SCORES, [*others, *numbers])
        _write_calls(run, scoring.call_rows(wanted, _campaigns_of(run)), "score")
    return numbers


def _campaigns_of(run: Run) -> dict[str, list[Campaign]]:
    found: dict[str, list[Campaign]] = {}
    for row in ExperimentCampaign.objects.filter(owner=run.owner, settings=run.settings).select_related("campaign"):
        found.setdefault(row.method, []).append(row.campaign)
    return found


def report(run: Run, display: Display) -> None:
    """Write the table and the figures.

    Raises:
        MissingExtra: what draws figures is not installed.
    """
    for path in sampler.write_report(run.out):
        display.say(str(path))


def _counted(run: Run, parts: Sequence[Part], number: int, display: Display) -> Callable[[int], None]:
    """Return what shows how many steps the chains of the `number`-th part have taken together."""
    return lambda done: display.show(partial(standing.of_part, run, parts, number, done))


def _save(run: Run, part: Part, write: Callable[[Path], None]) -> None:
    path = run.record(part)
    if path.exists():
        return
    write(path)
    found = sampler.replay_file(path)
    if found.differences:
        path.rename(path.with_suffix(".differs.zip"))
        raise RecordDiffers(f"{part.name}: replaying its record gives something else: {found.differences[0]}")


def _write_calls(run: Run, rows: Iterator[folder.Row], stage: str) -> None:
    """Replace one stage's rows of calls.csv."""
    others = [row for row in folder.rows_of(run.out, outputs.CALLS) if row[0] != stage]
    mine = list(rows)
    folder.write_table(run.out, outputs.CALLS, mine + others if stage == "run" else others + mine)
