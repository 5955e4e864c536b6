"""python -m sampler verify."""

from __future__ import annotations

import argparse
from pathlib import Path

from sampler.commands.arguments import UnusableOptionsError
from sampler.record.manifest import KeyFileError
from sampler.record.verify import keys_of, verify

ABOUT = "what a campaign's record proves, what it only claims, and where it differs"
DETAILS = (
    "Check a record against its signature and against itself: every draw from the seed, every verdict from the votes. "
    "Exit status: 0 if it is accepted, 1 if it differs or is not signed by the key, 2 if it cannot be read."
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    command.add_argument("record", type=Path, metavar="RECORD.zip", help="the ZIP downloaded from a campaign's page")
    command.add_argument(
        "--key",
        metavar="FILE|FINGERPRINT",
        help="which key must have signed it: the site's prefmh-keys.json, public keys as PEM, or a fingerprint "
        "(default: any key, or none)",
    )


def run(options: argparse.Namespace) -> int:
    """Print what was found; return 0 if the record is accepted, else 1."""
    try:
        keys = None if options.key is None else keys_of(options.key)
    except KeyFileError as error:
        raise UnusableOptionsError(str(error)) from error
    found = verify(options.record, keys)
    for line in found.lines():
        print(line)
    return 1 if found.differs else 0
