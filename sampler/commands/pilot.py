"""python -m sampler pilot."""

from __future__ import annotations

import argparse
from pathlib import Path

from sampler.commands.arguments import UnusableFileError, positive, seed
from sampler.diagnostics.extras import analysis_library

ABOUT = "log-weights of molecule sizes, so that a chain without judges has drug-like sizes"
DETAILS = (
    "Learn how many molecules there are of each size by stochastic approximation (Wang-Landau), then set the "
    "log-weights of p0 so that sizes follow a truncated normal distribution. The package's own were made so."
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    command.add_argument("--arms", type=Path, metavar="FILE", help="vocabulary (default: the package's own)")
    command.add_argument("--steps", type=positive, default=1_200_000, metavar="N", help="(default: %(default)s)")
    command.add_argument("--seed", type=seed, default=0, metavar="S", help="(default: %(default)s)")
    command.add_argument(
        "--out", type=Path, default=Path("size_weights.tsv"), metavar="FILE", help="output file (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> None:
    """Run it, and print what it has found or written."""
    from sampler.experiments.size_pilot import steps_in_all, write_pilot

    tqdm = analysis_library("tqdm").tqdm
    try:
        with tqdm(total=steps_in_all(options.steps), unit=" steps", unit_scale=True) as bar:
            outcome = write_pilot(options.arms, options.out, options.steps, options.seed, progress=bar.update)
    except ValueError as problem:
        raise UnusableFileError(str(problem)) from problem
    print(outcome)
