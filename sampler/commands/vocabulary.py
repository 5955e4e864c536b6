"""python -m sampler vocabulary."""

from __future__ import annotations

import argparse
from pathlib import Path

from sampler.commands.arguments import UnusableFileError, positive

ABOUT = "fragments for molecule chains, cut from your own molecules"
DETAILS = (
    "Cut molecules at acyclic single bonds to ring or functional atoms and list the arms of at most 10 heavy "
    "atoms, most frequent first. Reads the first field of every line. Without files: the SMILES in RDKit's wheel, "
    "which the package's own list was cut from."
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    command.add_argument("molecules", type=Path, nargs="*", metavar="MOLECULES.smi", help=".smi, .csv or .tsv files")
    command.add_argument(
        "--most", type=positive, default=1_000, metavar="N", help="how many arms to keep (default: %(default)s)"
    )
    command.add_argument(
        "--out", type=Path, default=Path("arms.tsv"), metavar="FILE", help="output file (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> None:
    """Run it, and print what it has found or written."""
    from sampler.spaces.molecules.vocabulary import write_vocabulary

    try:
        print(write_vocabulary(options.molecules, options.out, options.most))
    except ValueError as problem:
        raise UnusableFileError(str(problem)) from problem
