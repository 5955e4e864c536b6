"""Folders of runs whose truth is known: records, ratings and votes are drawn from what a test has planted."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from sampler import (
    ExperimentInput,
    ExperimentOptions,
    outputs,
    settings_document,
    settings_text,
    tables,
    tournament_schedule,
)
from sampler.experiments.metrics import RunFiles
from sampler.experiments.options import StateKey
from sampler.experiments.outputs import write_table

Score = Callable[[str, StateKey], float | None]


def begin_run(
    folder: Path,
    options: ExperimentOptions,
    inputs: Mapping[str, list[ExperimentInput]] | None = None,
    models: Mapping[str, str] | None = None,
):
    """Write settings.json, and return the run."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.json").write_text(settings_text(settings_document(options, inputs=inputs, models=models)))
    return RunFiles(folder)


def write_scores(run: RunFiles, names: Iterable[str], score: Score) -> None:
    """Write scores.csv: what `score` gives each kept state, by name."""
    states = [
        state for method in run.options.chosen for direction in run.options.directions
        for state in run.kept(method, direction)
    ]  # fmt: skip
    rows = (
        {**state._asdict(), "name": name, "value": value, "source": "planted", "attempts": None}
        for name in names
        for state in states
        if (value := score(name, state)) is not None
    )
    write_table(run.folder, outputs.SCORES, rows)


def write_votes(run: RunFiles, wins: Callable[[str, str, str, int], float], rng: np.random.Generator) -> None:
    """Write votes.csv; `wins` is the chance of `one` over `other`, by property, methods and prompt."""
    votes = []
    for slot in tournament_schedule(run.options):
        match = slot.match
        chance = wins(slot.about, match.one.method, match.other.method, match.prompt)
        key = dict(zip(outputs.VOTE_KEY, (*slot.key, 0), strict=True))
        votes.append({**key, "chose_one": bool(rng.random() < chance), "voter": "planted", "attempts": 1})
    write_table(run.folder, outputs.VOTES, votes)


def write_record(run: RunFiles, name: str, contents: Callable[[int, int], str], chains: int, steps: int) -> None:
    """Write a record that holds what `contents` gives each chain and step, and nothing else."""
    rows = [
        tables.SAMPLES.row(
            chain_index=chain, step=step, state_index=0, content=contents(chain, step), phase=tables.SAMPLING
        )
        for chain in range(chains)
        for step in range(steps + 1)
    ]
    path = run.folder / "records" / name
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("campaign.json", json.dumps({}))
        for table in tables.TABLES:
            text = io.StringIO(newline="")
            csv.writer(text).writerows([table.header, *(rows if table is tables.SAMPLES else [])])
            archive.writestr(table.file, text.getvalue())
