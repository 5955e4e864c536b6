"""A run of an experiment, stage by stage: its campaigns, its evaluation, its tables.

A part whose chains learn their proposals together is no campaign, whose chains go on each by itself: it is computed
here, in one go, and its record, replay and report are those of any part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from django.contrib.auth.models import User

import sampler
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.models import Campaign
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.experiments import campaigns, evaluation, scoring, usage
from prefmh_web.experiments.configs import CONFIGS, Part
from prefmh_web.experiments.models import ExperimentCampaign
from prefmh_web.experiments.progress import Display
from prefmh_web.experiments.scoring import ScoredStates
from prefmh_web.objects.kind import Look
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
    if _is_in_lockstep(part):
        _check_lockstep(part)
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
            if _is_in_lockstep(part):
                _save(run, part, partial(_write_lockstep_record, part, _counted(run, parts, number, display)))
                display.say(f"{part.name}: done")
                continue
            campaign = campaigns.ensure(run.owner, run.settings, part, config_of(part))
            made[part.method.name].append(campaign)
            left = None if run.most_requests is None else run.most_requests - spent
            now = partial(usage.of_campaign, run, parts, number, campaign)
            campaigns.run(campaign, run.owner, left, partial(display.show, now))
            spent += campaigns.requests_of(campaign)
            _save(run, part, partial(campaigns.save_record, campaign))
            if _has_pictures(run.options.of_experiment):
                _save_pictures(run.options, part, campaign, run.out)
            display.say(f"{part.name}: done")
    finally:
        _write_calls(run, usage.run_rows(run.options, made, run.endpoints), "run")


def evaluate(run: Run, display: Display) -> None:
    """Ask about the states of the records, scorers first, and write the tables of the evaluation.

    Raises:
        Blocked, LimitReached: as `scoring.run` and `evaluation.run`.
    """
    experiment = run.options.of_experiment
    campaigns.write_table(run.out, outputs.PAIRS, evaluation.pair_rows(run.options))
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
        run.owner, run.settings, run.options, asked.get("evaluator") or asked[evaluation.DETECTOR], contents, left,
        run.inputs, asked.get(evaluation.DETECTOR), states.exhibit if _has_pictures(experiment) else None,
    )  # fmt: skip
    try:
        evaluation.run(wanted, lambda *counts: display.show(partial(usage.of_evaluation, run, *counts)))
    finally:
        campaigns.write_table(run.out, outputs.SCORES, [*evaluation.score_rows(wanted), *numbers])
        campaigns.write_table(run.out, outputs.VOTES, evaluation.vote_rows(wanted))
        _write_calls(run, usage.evaluation_rows(wanted), "evaluate")


def _score(run: Run, states: ScoredStates, display: Display) -> list[campaigns.Row]:
    """Ask the scorers about the states of the records, and return their rows of scores.csv, which are written, too."""
    wanted = scoring.Scoring(run.owner, run.settings, run.options, run.scorers, list(states.places), states.stored)
    try:
        scoring.run(wanted, lambda *counts: display.show(partial(usage.of_scoring, run, *counts)), display.say)
    finally:
        numbers = [*scoring.score_rows(wanted), *(states.quality_rows() if scoring.QUALITY in run.scorers else ())]
        roles = set(run.scorers)
        others = [row for row in campaigns.rows_of(run.out, outputs.SCORES) if row[_NAME] not in roles]
        campaigns.write_table(run.out, outputs.SCORES, [*others, *numbers])
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
    return lambda done: display.show(partial(usage.of_part, run, parts, number, done))


def _save(run: Run, part: Part, write: Callable[[Path], None]) -> None:
    path = run.record(part)
    if path.exists():
        return
    write(path)
    found = sampler.replay_file(path)
    if found.differences:
        path.rename(path.with_suffix(".differs.zip"))
        raise RecordDiffers(f"{part.name}: replaying its record gives something else: {found.differences[0]}")


def _write_calls(run: Run, rows: Iterator[campaigns.Row], stage: str) -> None:
    """Replace one stage's rows of usage.csv."""
    others = [row for row in campaigns.rows_of(run.out, outputs.CALLS) if row[0] != stage]
    mine = list(rows)
    campaigns.write_table(run.out, outputs.CALLS, mine + others if stage == "run" else others + mine)


def _is_in_lockstep(part: Part) -> bool:
    """Say whether a part is one of these: its method learns its proposals."""
    return part.method.parameters.get("proposal") == "learned"


def _check_lockstep(part: Part) -> None:
    """Check that a part can be run here.

    Raises:
        MissingExtra: PyTorch is not installed.
    """
    try:
        sampler.check_lockstep()
    except sampler.MissingExtra as error:
        name = part.method.name
        raise sampler.MissingExtra(f"{name} learns its proposals: {error}; or leave {name} out of --methods") from error


def _write_lockstep_record(part: Part, show: Callable[[int], None], path: Path) -> None:
    """Run a part from its beginning to its end, and write its record, whole or not at all.

    Args:
        show: called with how many steps its chains have taken together.

    Raises:
        MissingExtra: PyTorch is not installed.
        OSError: the record cannot be written.
    """
    [direction] = part.options.directions
    chains, steps = part.options.chains_of(direction), part.options.steps_of(part.method)
    path.parent.mkdir(parents=True, exist_ok=True)
    sampler.record_lockstep(
        path,
        seed=part.seed,
        chains=chains,
        steps=steps,
        vocabulary=part.vocabulary,
        convention="exact" if part.method.parameters["convention"] == "exact" else "paper",
        progress=lambda step: show(step * chains),
    )


_CHAIN = 0
"""The chain that figures show."""


def _has_pictures(experiment: sampler.Experiment) -> bool:
    """Say whether an experiment's figures show pictures of its states."""
    return experiment.objects == "images"


def _save_pictures(options: sampler.ExperimentOptions, part: Part, campaign: Campaign, out: Path) -> None:
    """Write the pictures of one part that are not there yet, each whole or not at all.

    Raises:
        OSError: a picture of the campaign cannot be read, or one cannot be written.
    """
    # A method that only draws may have fewer draws than chains have steps.
    shown = [step for step in sampler.shown_steps(options) if step <= options.steps_of(part.method)]
    wanted = {step: _picture_path(part, step, out) for step in shown}
    missing = {step: path for step, path in wanted.items() if not path.exists()}
    if not missing:
        return
    record = out / outputs.RECORDS / f"{part.name}.zip"
    for row in sampler.read_samples(record):
        step = int(row["step"])
        if int(row["chain_index"]) == _CHAIN and step in missing:
            _write_picture(campaign, int(row["state_index"]), missing[step])


def _picture_path(part: Part, step: int, out: Path) -> Path:
    return out / outputs.IMAGES / outputs.image_name(part.method.name, part.seed, step)


def _write_picture(campaign: Campaign, number: int, path: Path) -> None:
    state = campaign.states.select_related("campaign").get(place=number)
    picture = campaign.object_kind.media(objects.stored(state), Look(raster=True))
    if picture is None:
        raise TypeError(f"{campaign.object_kind.nouns} have no pictures")
    with campaigns.replaced(path) as unfinished:
        unfinished.write_bytes(picture.body)
