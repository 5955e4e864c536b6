"""Molecules: QED, ease of synthesis, diversity and MolSkill of the final states, mean ± SE over runs (L1554-1568)."""

from __future__ import annotations

import numpy as np

from sampler.commands.report.estimates import Estimate, over_runs
from sampler.commands.report.run_files import RunFiles
from sampler.experiments.final_molecules import measures_of
from sampler.experiments.settings import ExperimentMethod


def measure(run: RunFiles) -> dict[tuple[str, str], Estimate]:
    """Return the table's cells: each is one number for each seed, over all kept states, duplicates included."""
    found = {}
    for method in run.options.chosen:
        runs = [_of_one_run(run, method, seed) for seed in run.options.seeds]
        for column in run.options.of_experiment.columns:
            found[method.name, column.name] = over_runs([each[column.name] for each in runs if column.name in each])
    return found


def _of_one_run(run: RunFiles, method: ExperimentMethod, seed: int) -> dict[str, float]:
    (direction,) = run.options.directions
    measures = measures_of(list(run.contents(method, direction, seed).values()))
    given = [run.score("molskill", state) for state in run.kept(method, direction, seed)]
    # Of part of the molecules, a mean would be that of another set.
    if given and None not in given:
        values = [value for value in given if value is not None]
        measures |= {"molskill_mean": float(np.mean(values)), "molskill_median": float(np.median(values))}
    return measures
