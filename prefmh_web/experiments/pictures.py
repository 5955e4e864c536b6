"""The pictures of a run that its figures show, written to its folder: the report is made from files alone."""

from __future__ import annotations

from pathlib import Path

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.started import objects
from prefmh_web.experiments.configs import Part
from prefmh_web.objects.kind import Look

outputs = sampler.outputs
_CHAIN = 0
"""The chain that figures show."""


def are_of(experiment: sampler.Experiment) -> bool:
    """Say whether an experiment's figures show pictures of its states."""
    return experiment.objects == "images"


def save(options: sampler.ExperimentOptions, part: Part, campaign: Campaign, out: Path) -> None:
    """Write the pictures of one part that are not there yet, each whole or not at all.

    Raises:
        OSError: a picture of the campaign cannot be read, or one cannot be written.
    """
    # A method that only draws may have fewer draws than chains have steps.
    shown = [step for step in sampler.shown_steps(options) if step <= options.steps_of(part.method)]
    wanted = {step: _path(part, step, out) for step in shown}
    missing = {step: path for step, path in wanted.items() if not path.exists()}
    if not missing:
        return
    record = out / outputs.RECORDS / f"{part.name}.zip"
    for row in sampler.read_samples(record):
        step = int(row["step"])
        if int(row["chain_index"]) == _CHAIN and step in missing:
            _write(campaign, int(row["state_index"]), missing[step])


def _path(part: Part, step: int, out: Path) -> Path:
    return out / outputs.IMAGES / outputs.image_name(part.method.name, part.seed, step)


def _write(campaign: Campaign, number: int, path: Path) -> None:
    state = campaign.states.select_related("campaign").get(place=number)
    picture = campaign.object_kind.media(objects.stored(state), Look(raster=True))
    if picture is None:
        raise TypeError(f"{campaign.object_kind.nouns} have no pictures")
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_bytes(picture.body)
    unfinished.replace(path)
