"""MARS's metrics over runs with different seeds, beside the paper's row; and two ways to run, compared seed by seed.

Errors are SD / √n over n runs, as in the paper's table ("De novo molecular design").
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from sampler.experiments.mars import COLUMNS, FinalMolecule, row_of
from sampler.objects.molecules.diversity import diversity
from sampler.spaces.molecules.graph import heavy_atoms

PAPER: Mapping[str, tuple[float, float]] = {
    "QED": (0.773, 0.002),
    "SA as (10 - SA) / 9": (0.789, 0.006),
    "diversity": (0.895, 0.005),
}
"""The row "MARS" of the paper's table: mean and standard error over 5 seeds of 200 chains and 1,000 steps."""


def metrics(ended: Sequence[FinalMolecule]) -> dict[str, float]:
    """Return the metrics of one run's final molecules, at least two of them."""
    return {
        "QED": float(np.mean([each.qed for each in ended])),
        "SA as (10 - SA) / 9": float(np.mean([(10 - each.sa) / 9 for each in ended])),
        "diversity": diversity([each.smiles for each in ended]),
        "score": float(np.mean([each.score for each in ended])),
        "heavy atoms": float(np.mean([heavy_atoms(each.smiles) for each in ended])),
    }


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and its standard error SD / √n; NaN for the error of a single value."""
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return float(np.mean(values)), error


def table(runs: Sequence[Sequence[FinalMolecule]]) -> list[str]:
    """Return a line for each metric over runs, with the paper's number where it has one."""
    found = [metrics(ended) for ended in runs]
    lines = []
    for name in found[0]:
        mean, error = mean_and_error([each[name] for each in found])
        paper = "; paper's MARS {:.3f} ± {:.3f}".format(*PAPER[name]) if name in PAPER else ""
        lines.append(f"{name:21} {mean:.3f} ± {error:.3f} over {len(runs)} seeds{paper}")
    return lines


def differences(
    runs: Sequence[Sequence[FinalMolecule]], others: Sequence[Sequence[FinalMolecule]]
) -> dict[str, tuple[float, float]]:
    """Return run minus other of each metric, paired by their places: mean and standard error.

    Raises:
        ValueError: not as many of one as of the other.
    """
    pairs = [(metrics(run), metrics(other)) for run, other in zip(runs, others, strict=True)]
    return {name: mean_and_error([one[name] - other[name] for one, other in pairs]) for name in pairs[0][0]}


def write_seeds(runs: Mapping[int, Sequence[FinalMolecule]], out: Path) -> None:
    """Write the final molecules of several seeds as CSV, the seed first.

    Raises:
        OSError: the file cannot be written.
    """
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("seed", *COLUMNS))
        for seed, ended in runs.items():
            writer.writerows((seed, *row_of(final)) for final in ended)
