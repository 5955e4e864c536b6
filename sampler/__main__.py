"""The command line: python -m sampler COMMAND. One subcommand a file's worth of work; heavy imports wait for theirs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from sampler.diagnostics.answers import CLUSTERS
from sampler.diagnostics.extras import MissingExtra, analysis_library
from sampler.record.replay import RecordError


class _UnusableFileError(Exception):
    """A file that can be read but does not hold what the command needs."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; return 0, or 2 with a message on stderr when it cannot be done."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, `head` say, has seen enough. Nothing may be flushed into the broken pipe on the way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (MissingExtra, OSError, RecordError, _UnusableFileError) as problem:
        print(f"{parser.prog} {options.command}: error: {problem}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sampler",
        description="Exact Metropolis-Hastings from binary votes: experiments and diagnostics.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_synthetic(commands)
    _add_diagnose(commands)
    _add_vocabulary(commands)
    _add_pilot(commands)
    _add_mars(commands)
    return parser


# To add a command: one `_add_…` that says what it takes, one `_…` that runs it.


def _add_synthetic(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    about = "the paper's synthetic experiment: seven chains, TV to the known target, two figures"
    details = (
        "Run Oracle MH, Pref-MH and the invalid plug-in rule with N = 1, 2, 4 votes for 150,000 steps on the paper's "
        "241 states. Writes tv.csv, distributions.csv, and both figures as PNG and PDF."
    )
    command = commands.add_parser("synthetic", help=about, description=details)
    command.add_argument(
        "--out", type=Path, default=Path("synthetic"), metavar="DIR", help="output folder (default: %(default)s)"
    )
    command.add_argument(
        "--seed", type=_seed, default=0, metavar="S", help="random seed, 0 or more (default: %(default)s)"
    )
    command.set_defaults(run=_synthetic)


def _synthetic(options: argparse.Namespace) -> None:
    from sampler.experiments import synthetic
    from sampler.experiments.synthetic_figures import write_figures

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


def _add_diagnose(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    about = "a report on an exported campaign: convergence, lean to one side, scores, agreement"
    details = (
        "Print acceptance rate, R-hat and effective sample sizes of the objects' properties, each source's lean to one "
        "side, and for each question Bradley-Terry scores fitted together with the lean, a test against cycles, and "
        "kappas of shared and repeated questions."
    )
    command = commands.add_parser("diagnose", help=about, description=details)
    command.add_argument("export", type=Path, metavar="EXPORT.zip", help="the ZIP downloaded from a campaign's page")
    command.add_argument(
        "--column",
        metavar="NAME",
        help="one property to follow, such as words or qed, or a column of numbers in properties.csv, states.csv or "
        "samples.csv (default: all of them)",
    )
    command.add_argument(
        "--properties",
        type=Path,
        metavar="FILE.csv",
        help="properties.csv from the campaign's page; pictures can only be measured there",
    )
    command.add_argument(
        "--cluster",
        choices=CLUSTERS,
        metavar="|".join(CLUSTERS),
        help="votes that may depend on each other, and share one bootstrap weight (default: prompt where the objects "
        "answer several prompts, else chain)",
    )
    command.add_argument("--seed", type=_seed, default=0, metavar="S", help="of the bootstraps (default: %(default)s)")
    command.add_argument(
        "--resamples",
        type=_positive,
        default=1_000,
        metavar="N",
        help="bootstrap resamples behind the intervals (default: %(default)s)",
    )
    command.set_defaults(run=_diagnose)


def _diagnose(options: argparse.Namespace) -> None:
    from sampler.diagnostics.report import diagnose
    from sampler.record.reader import read_properties, read_record

    record = read_record(options.export)
    if options.properties is not None:
        record = replace(record, properties=read_properties(options.properties))
    rng = np.random.default_rng(options.seed)
    for line in diagnose(record, rng, options.column, options.resamples, options.cluster):
        print(line)


def _add_vocabulary(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    about = "fragments for molecule chains, cut from your own molecules"
    details = (
        "Cut molecules at acyclic single bonds to ring or functional atoms and list the arms of at most 10 heavy "
        "atoms, most frequent first. Reads the first field of every line. Without files: the SMILES in RDKit's wheel, "
        "which the package's own list was cut from."
    )
    command = commands.add_parser("vocabulary", help=about, description=details)
    command.add_argument("molecules", type=Path, nargs="*", metavar="MOLECULES.smi", help=".smi, .csv or .tsv files")
    command.add_argument(
        "--most", type=_positive, default=1_000, metavar="N", help="how many arms to keep (default: %(default)s)"
    )
    command.add_argument(
        "--out", type=Path, default=Path("arms.tsv"), metavar="FILE", help="output file (default: %(default)s)"
    )
    command.set_defaults(run=_vocabulary)


def _vocabulary(options: argparse.Namespace) -> None:
    from sampler.spaces.molecules.vocabulary import write_vocabulary

    try:
        print(write_vocabulary(options.molecules, options.out, options.most))
    except ValueError as problem:
        raise _UnusableFileError(str(problem)) from problem


def _add_pilot(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    about = "log-weights of molecule sizes, so that a chain without judges has drug-like sizes"
    details = (
        "Learn how many molecules there are of each size by stochastic approximation (Wang-Landau), then set the "
        "log-weights of p0 so that sizes follow a truncated normal distribution. The package's own were made so."
    )
    command = commands.add_parser("pilot", help=about, description=details)
    command.add_argument("--arms", type=Path, metavar="FILE", help="vocabulary (default: the package's own)")
    command.add_argument("--steps", type=_positive, default=1_200_000, metavar="N", help="(default: %(default)s)")
    command.add_argument("--seed", type=_seed, default=0, metavar="S", help="(default: %(default)s)")
    command.add_argument(
        "--out", type=Path, default=Path("size_weights.tsv"), metavar="FILE", help="output file (default: %(default)s)"
    )
    command.set_defaults(run=_pilot)


def _pilot(options: argparse.Namespace) -> None:
    from sampler.experiments.size_pilot import steps_in_all, write_pilot

    tqdm = analysis_library("tqdm").tqdm
    try:
        with tqdm(total=steps_in_all(options.steps), unit=" steps", unit_scale=True) as bar:
            outcome = write_pilot(options.arms, options.out, options.steps, options.seed, progress=bar.update)
    except ValueError as problem:
        raise _UnusableFileError(str(problem)) from problem
    print(outcome)


def _add_mars(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    about = "molecule chains driven by drug-likeness and ease of synthesis, as in MARS"
    details = (
        "Run chains from CC that accept with min(1, r0 (s(x')/s(x))^30), where s is the mean of min(QED, 0.7) and "
        "min((10 - SA)/9, 0.7). Prints QED, SA, diversity and more of the final molecules, and writes them as CSV."
    )
    command = commands.add_parser("mars", help=about, description=details)
    command.add_argument("--chains", type=_several, default=200, metavar="N", help="(default: %(default)s)")
    command.add_argument("--steps", type=_positive, default=1_000, metavar="N", help="(default: %(default)s)")
    command.add_argument("--seed", type=_seed, default=0, metavar="S", help="(default: %(default)s)")
    command.add_argument(
        "--processes",
        type=_positive,
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
    command.set_defaults(run=_mars)


def _mars(options: argparse.Namespace) -> None:
    from sampler.experiments import mars
    from sampler.spaces.molecules.vocabulary import parents

    tqdm = analysis_library("tqdm").tqdm
    # Nobody wants to hear only after minutes that the file cannot be written.
    with options.out.open("a", encoding="utf-8"):
        pass
    run = mars.MarsRun(options.seed, options.steps, options.convention)
    with tqdm(total=options.chains, unit=" chains") as bar:
        ended = mars.run_chains(run, options.chains, options.processes, progress=bar.update)
        seconds = bar.format_dict["elapsed"]
    mars.write_molecules(ended, options.out)
    print(f"{options.chains} chains of {options.steps:,} steps in {seconds:.0f} s")
    for line in mars.summary(run, ended, reference=parents() if options.novelty else None):
        print(line)
    print(options.out)


def _seed(text: str) -> int:
    return _whole_number(text, least=0)


def _positive(text: str) -> int:
    return _whole_number(text, least=1)


def _several(text: str) -> int:
    return _whole_number(text, least=2)


def _whole_number(text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}, not {text!r}")
    return number


if __name__ == "__main__":
    sys.exit(main())
