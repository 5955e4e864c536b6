"""python -m sampler synthetic."""

from __future__ import annotations

import argparse
from pathlib import Path

from sampler.commands.arguments import seed
from sampler.diagnostics.extras import analysis_library

ABOUT = "the paper's synthetic experiment: seven chains, TV to the known target, two figures"
DETAILS = (
    "Run Oracle MH, Pref-MH and the invalid plug-in rule with N = 1, 2, 4 votes for 150,000 steps on the paper's "
    "241 states. Writes tv.csv, distributions.csv, and both figures as PNG and PDF."
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    command.add_argument(
        "--out", type=Path, default=Path("synthetic"), metavar="DIR", help="output folder (default: %(default)s)"
    )
    command.add_argument(
        "--seed", type=seed, default=0, metavar="S", help="random seed, 0 or more (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> None:
    """Run it, and print what it has found or written."""
    from sampler.commands.synthetic_figures import write_figures
    from sampler.experiments import synthetic

    # Both needed and both checked before any work is done.
    analysis_library("matplotlib")
    tqdm = analysis_library("tqdm").tqdm
    options.out.mkdir(parents=True, exist_ok=True)
    with tqdm(total=len(synthetic.METHODS) * synthetic.STEPS, unit=" steps", unit_scale=True) as bar:
        curves = synthetic.run(options.seed, progress=bar.update)
    for curve in curves:
        print(f"{curve.method.label:16} TV after {curve.times[-1]:,} steps: {curve.tv[-1]:.4f}")
    for path in (*synthetic.write_tables(curves, options.out), *write_figures(curves, options.out)):
        print(path)
