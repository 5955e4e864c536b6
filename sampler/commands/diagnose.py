"""python -m sampler diagnose."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from sampler.commands.arguments import positive, seed
from sampler.diagnostics.answers import CLUSTERS

ABOUT = "a report on an exported campaign: convergence, lean to one side, scores, agreement"
DETAILS = (
    "Print which share of the proposals is accepted, R-hat and effective sample sizes of the objects' properties, each "
    "source's lean to one side, and for each question Bradley-Terry scores fitted together with the lean, a test for "
    "cyclic preferences, and kappas of shared and repeated questions."
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    command.add_argument("export", type=Path, metavar="EXPORT.zip", help="the ZIP downloaded from a campaign's page")
    command.add_argument(
        "--column",
        metavar="NAME",
        help="one property to follow, such as words or qed, or a column of numbers in properties.csv, states.csv or "
        "samples.csv (default: all of them)",
    )
    command.add_argument(
        "--cluster",
        choices=CLUSTERS,
        metavar="|".join(CLUSTERS),
        help="votes that may depend on each other, and share one bootstrap weight (default: prompt where the objects "
        "answer several prompts, else chain)",
    )
    command.add_argument(
        "--all-samples",
        action="store_true",
        help="follow also the samples of the burn-in and of the warm-up with its settling",
    )
    command.add_argument(
        "--json", type=Path, metavar="FILE", help="write what results.csv and the verdict say to a file"
    )
    command.add_argument("--seed", type=seed, default=0, metavar="S", help="of the bootstraps (default: %(default)s)")
    command.add_argument(
        "--resamples",
        type=positive,
        default=1_000,
        metavar="N",
        help="bootstrap resamples behind the intervals (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> None:
    """Run it, and print what it has found or written."""
    from sampler.diagnostics.found import answer
    from sampler.diagnostics.report import diagnose
    from sampler.record.record import read_record

    record = read_record(options.export)
    rng = np.random.default_rng(options.seed)
    asked = options.column, options.resamples, options.cluster, options.all_samples
    for line in diagnose(record, rng, *asked):
        print(line)
    if options.json is not None:
        options.json.write_text(
            json.dumps(answer(record).told(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
