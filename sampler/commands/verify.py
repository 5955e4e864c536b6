"""python -m sampler verify."""

from __future__ import annotations

import argparse
from pathlib import Path

from sampler.record.verify import verify

ABOUT = "what a campaign's record proves, what it only claims, and where it differs"
DETAILS = (
    "Check a record against its hashes and against itself: every draw from the seed, every verdict from the votes. "
    "Exit status: 0 if it is accepted, 1 if it differs, 2 if it cannot be read."
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    command.add_argument("record", type=Path, metavar="RECORD.zip", help="the ZIP downloaded from a campaign's page")


def run(options: argparse.Namespace) -> int:
    """Print what was found; return 0 if the record is accepted, else 1."""
    found = verify(options.record)
    for line in found.lines():
        print(line)
    return 1 if found.differs else 0
