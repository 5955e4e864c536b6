"""python -m sampler tables."""

from __future__ import annotations

import argparse

from sampler.record.tables import markdown

ABOUT = "the files and columns of a campaign's record, as Markdown"
DETAILS = "Print each file of a record and each column of its tables: values, meaning, and whether a change is found."


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Say what the command takes: nothing."""


def run(options: argparse.Namespace) -> None:
    """Print it."""
    for line in markdown():
        print(line)
