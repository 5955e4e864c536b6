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
    preset_names,
    schema,
    settings_document,
    settings_text,
    tournament_matches,
    tournament_schedule,
)
from sampler.commands.report.run_files import RunFiles, StateKey
from sampler.experiments.outputs import table_path
from sampler.judges import PRESETS

Score = Callable[[str, StateKey], float | None]


def begin_run(folder: Path, options: ExperimentOptions, inputs: Mapping[str, list[ExperimentInput]] | None = None):
    """Write settings.json, and return the run."""
    words = {name: PRESETS[name].template.model_dump(mode="json") for name in preset_names(options)}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.json").write_text(settings_text(settings_document(options, words, inputs=inputs)))
    return RunFiles(folder)


def write_rows(folder: Path, table: schema.Table, rows: Iterable[Mapping[str, object]]) -> None:
    path = table_path(folder, table)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.header)
        writer.writerows(table.row(**row) for row in rows)


def write_scores(run: RunFiles, names: Iterable[str], score: Score) -> None:
    """Write scores.csv: what `score` gives each kept state, by name."""
    states = [
        state
        for method in run.options.chosen
        for direction in run.options.directions
        for seed in run.options.seeds
        for state in run.kept(method, direction, seed)
    ]
    columns = ("method", "direction", "seed", "chain", "step")
    rows = (
        {**dict(zip(columns, state, strict=True)), "name": name, "value": value, "source": "planted", "asks": None}
        for name in names
        for state in states
        if (value := score(name, state)) is not None
    )
    write_rows(run.folder, outputs.SCORES, rows)


def write_votes(run: RunFiles, wins: Callable[[str, str, str, int], float], rng: np.random.Generator) -> None:
    """Write pairs.csv and votes.csv; `wins` is the chance of `one` over `other`, by property, methods and prompt."""
    rows = []
    for match in tournament_matches(run.options):
        ends = {}
        for end, state in (("one", match.one_state), ("other", match.other_state)):
            ends |= {end: getattr(match, end), f"{end}_chain": state.chain, f"{end}_step": state.step}
        where = {"direction": match.direction, "seed": match.seed, "prompt": match.prompt, "match": match.number}
        rows.append({"pair": match.key, **where, **ends})
    write_rows(run.folder, outputs.PAIRS, rows)
    votes = []
    for slot in tournament_schedule(run.options):
        match = slot.match
        chance = wins(slot.about, match.one, match.other, match.prompt)
        key = {"pair": match.key, "property": slot.about, "one_first": slot.one_first, "number": 0}
        votes.append({**key, "chose_one": bool(rng.random() < chance), "voter": "planted", "asks": 1})
    write_rows(run.folder, outputs.VOTES, votes)


def write_record(run: RunFiles, name: str, contents: Callable[[int, int], str], chains: int, steps: int) -> None:
    """Write a record that holds what `contents` gives each chain and step, and nothing else."""
    rows = [
        schema.SAMPLES.row(chain=chain, step=step, state=0, content=contents(chain, step))
        for chain in range(chains)
        for step in range(steps + 1)
    ]
    path = run.folder / "records" / name
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("recipe.json", json.dumps({}))
        for table in schema.TABLES:
            text = io.StringIO(newline="")
            csv.writer(text).writerows([table.header, *(rows if table is schema.SAMPLES else [])])
            archive.writestr(table.file, text.getvalue())
