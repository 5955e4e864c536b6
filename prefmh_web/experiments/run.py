"""A run of an experiment, stage by stage: its campaigns, its evaluation, its tables.

A part whose chains learn their proposals together is no campaign, whose chains go on each by itself: it is computed
here, in one go, and its record, replay and report are those of any part.
"""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path

from django.db.models import Sum

import sampler
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.record import export
from prefmh_web.experiments import campaigns, evaluation
from prefmh_web.experiments.campaigns import Display, RunStatus
from prefmh_web.experiments.configs import Part, Run, config_of
from prefmh_web.objects.kind import RenderOptions
from sampler import outputs

_SHOWN_CHAIN = 0
"""The chain that figures show."""


class RecordDiffers(Exception):  # noqa: N818 - reads as the sentence it starts
    """A record says otherwise than its replay."""


def check(part: Part) -> None:
    """Check that a part can be run.

    Raises:
        ValueError: its config cannot be run.
        MissingExtra: something that computes it is not installed.
    """
    if not part.method.learns:
        config_of(part)
        return
    try:
        sampler.torch_library()
    except sampler.MissingExtra as error:
        name = part.method.name
        raise sampler.MissingExtra(f"{name} learns its proposals: {error}; or leave {name} out of --methods") from error


def sample(run: Run, display: Display) -> None:
    """Run every part and save its record, which is replayed.

    Raises:
        Blocked, LimitReached: as `campaigns.run`.
        RecordDiffers: a replay differs from its record.
    """
    try:
        for number, part in enumerate(run.parts):
            if part.method.learns:
                _save(part, partial(_write_lockstep_record, part, number, display))
            else:
                campaign = campaigns.ensure(part)
                others = campaigns.taken(run)[0] - campaigns.requests_of(campaign)
                left = None if run.max_requests is None else run.max_requests - others
                campaigns.run(campaign, left, partial(display.show, partial(_status, run, number, campaign)))
                _save(part, partial(_write_export, campaign))
                if run.options.of_experiment.objects == "images":
                    _save_pictures(part, campaign)
            display.say(f"{part.name}: done")
    finally:
        outputs.write_table(run.out, outputs.CALLS, campaigns.call_rows(run))


def evaluate(run: Run, display: Display) -> None:
    """Ask about the states of the records, scorers first, and write the tables of the evaluation.

    Raises:
        Blocked, LimitReached: as `evaluation.ask_scorers` and `evaluation.ask_models`.
    """
    outputs.write_table(run.out, outputs.PAIRS, map(outputs.pair_row, sampler.tournament_matches(run.options)))
    states = evaluation.KeptStates(run)

    def show(stage: str, done: int, planned: int) -> None:
        display.show(lambda: RunStatus(stage, done, planned, "answers", *campaigns.taken(run)))

    try:
        evaluation.ask_scorers(run, states, partial(show, "score"), display.say)
        evaluation.ask_models(run, states, partial(show, "evaluate"))
    finally:
        outputs.write_table(run.out, outputs.SCORES, evaluation.score_rows(run, states))
        outputs.write_table(run.out, outputs.VOTES, evaluation.vote_rows(run))
        outputs.write_table(run.out, outputs.CALLS, campaigns.call_rows(run))


def report(run: Run, display: Display) -> None:
    """Write the table and the figures.

    Raises:
        MissingExtra: what draws figures is not installed.
    """
    for path in (*sampler.write_report(run.out), _write_readme(run)):
        display.say(str(path))


def _write_readme(run: Run) -> Path:
    """Write what the folder is: the command, settings, versions, time and cost; a cost that is not known is empty."""
    title = (run.out / "table.md").read_text(encoding="utf-8").splitlines()[0]
    requests, cost = campaigns.taken(run)
    begun = datetime.fromtimestamp((run.out / outputs.SETTINGS).stat().st_mtime, UTC)
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "rdkit", "matplotlib"))
    lines = (
        title,
        "",
        f"- Command: `{shlex.join(('manage.py', *sys.argv[1:]))}`",
        f"- Settings: `{outputs.SETTINGS}`, each with its source, prompts and models; SHA-256 {run.settings}",
        f"- Versions: Python {platform.python_version()}, {versions}",
        f"- Time: {begun:%Y-%m-%d %H:%M} to {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        f"- Requests: {requests:,}; what each role took stands in `{outputs.CALLS}`",
        f"- Cost: {'' if cost is None else f'{cost:,.2f}'}".rstrip(),
        "",
        "`records/` holds what chains did, `evaluation/` what was asked about kept states, `table.*` and `figures/`",
        "what follows; `python -m sampler report` makes these two again.",
    )
    with outputs.replaced(run.out / "README") as unfinished:
        unfinished.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return run.out / "README"


def _status(run: Run, number: int, campaign: Campaign) -> RunStatus:
    done = campaign.chains.aggregate(all=Sum("step"))["all"] or 0
    starting = (campaign.start_progress or "starting") if campaign.is_draft else ""
    return campaigns.run_status(run, number, done, starting)


def _save(part: Part, write: Callable[[Path], object]) -> None:
    path = part.record
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path)
    found = sampler.replay_file(path)
    if found.differences:
        path.rename(path.with_suffix(".differs.zip"))
        raise RecordDiffers(f"{part.name}: replaying its record gives something else: {found.differences[0]}")


def _write_export(campaign: Campaign, path: Path) -> None:
    with outputs.replaced(path) as unfinished, unfinished.open("wb") as file:
        file.writelines(export.archive(campaign))


def _write_lockstep_record(part: Part, number: int, display: Display, path: Path) -> None:
    fixed = {"seed": part.seed, "chains": part.chains, "steps": part.steps}
    convention, space = part.method.kernel["convention"], {"vocabulary": part.run.vocabulary}
    settings = sampler.MarsSettings.model_validate({**fixed, "convention": convention, "space": space})
    status = partial(campaigns.run_status, part.run, number)
    sampler.run_learned(settings, path, progress=lambda step: display.show(lambda: status(step * part.chains)))


def _save_pictures(part: Part, campaign: Campaign) -> None:
    """Write the pictures of one part that figures show and that are not there yet, each whole or not at all.

    Raises:
        OSError: a picture of the campaign cannot be read, or one cannot be written.
    """
    # A method that only draws may have fewer draws than chains have steps.
    folder = part.run.out / outputs.IMAGES
    figures = {*sampler.shown_steps(part.options), *sampler.selected_steps(part.options)}
    shown = [step for step in figures if step <= part.steps]
    wanted = {step: folder / outputs.image_name(part.method.name, part.seed, step) for step in shown}
    missing = {step: path for step, path in wanted.items() if not path.exists()}
    for row in sampler.read_samples(part.record) if missing else ():
        step = int(row["step"])
        if int(row["chain_index"]) == _SHOWN_CHAIN and step in missing:
            state = campaign.states.select_related("campaign").get(index=int(row["state_index"]))
            picture = campaign.object_kind.media(objects.stored(state), RenderOptions(raster=True))
            if picture is None:
                raise TypeError(f"{campaign.object_kind.nouns} have no pictures")
            with outputs.replaced(missing[step]) as unfinished:
                unfinished.write_bytes(picture.body)
