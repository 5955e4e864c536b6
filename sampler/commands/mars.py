"""python -m sampler mars."""

from __future__ import annotations

import argparse
from pathlib import Path

from sampler.commands.arguments import positive, seed, several
from sampler.diagnostics.extras import analysis_library

ABOUT = "molecule chains driven by drug-likeness and ease of synthesis, as in MARS"
DETAILS = (
    "Run chains from CC that accept with min(1, r0 (s(x')/s(x))^30), where s is the mean of min(QED, 0.7) and "
    "min((10 - SA)/9, 0.7). Prints QED, SA, diversity and more of the final molecules, and writes them as CSV."
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    command.add_argument("--chains", type=several, default=200, metavar="N", help="(default: %(default)s)")
    command.add_argument("--steps", type=positive, default=1_000, metavar="N", help="(default: %(default)s)")
    command.add_argument("--seed", type=seed, default=0, metavar="S", help="(default: %(default)s)")
    command.add_argument(
        "--processes",
        type=positive,
        default=2,
        metavar="N",
        help="number of processes; it does not change the results (default: %(default)s)",
    )
    command.add_argument(
        "--convention",
        choices=("exact", "paper"),
        default="exact",
        help="how r0 is computed; paper: r0 = 1, as published, not exact (default: %(default)s)",
    )
    command.add_argument(
        "--out", type=Path, default=Path("mars.csv"), metavar="FILE", help="output file (default: %(default)s)"
    )
    command.add_argument(
        "--novelty",
        action="store_true",
        help="compare with the molecules that the fragments come from; takes half a minute",
    )


def run(options: argparse.Namespace) -> None:
    """Run it, and print what it has found or written."""
    from sampler.experiments import mars
    from sampler.spaces.molecules.vocabulary import parents

    tqdm = analysis_library("tqdm").tqdm
    # Nobody wants to hear only after minutes that the file cannot be written.
    with options.out.open("a", encoding="utf-8"):
        pass
    plan = mars.MarsRun(options.seed, options.steps, options.convention)
    with tqdm(total=options.chains, unit=" chains") as bar:
        ended = mars.run_chains(plan, options.chains, options.processes, progress=bar.update)
        seconds = bar.format_dict["elapsed"]
    mars.write_molecules(ended, options.out)
    print(f"{options.chains} chains of {options.steps:,} steps in {seconds:.0f} s")
    for line in mars.summary(plan, ended, reference=parents() if options.novelty else None):
        print(line)
    print(options.out)
