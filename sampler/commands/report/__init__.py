"""python -m sampler report: the table and the figures of an experiment.

writing        all of it, from a folder
run_files      what a run has left there
metrics        what the table holds, a file for each experiment
estimates, strengths      means and Bradley-Terry scores with their intervals
table, figures            how they are written; radar, dots and trajectories draw
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sampler.commands.arguments import UnusableFileError

ABOUT = "tables and figures of an experiment, from its folder alone"
DETAILS = (
    "Write table.csv, table.md, table.tex and figures/ of a run of `manage.py experiment` again, from settings.json, "
    "records/, evaluation/ and images/ in its folder. The paper's numbers stand beside the run's. What was not "
    "measured stays empty."
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    command.add_argument("folder", type=Path, metavar="DIR", help="the folder that `manage.py experiment` wrote to")


def run(options: argparse.Namespace) -> None:
    """Run it, and print what it has written."""
    from sampler.commands.report.writing import write_report
    from sampler.experiments.outputs import OutputError

    try:
        written = write_report(options.folder)
    except OutputError as problem:
        raise UnusableFileError(str(problem)) from problem
    for path in written:
        print(path)
