"""The commands of `python -m sampler`, a file for each; heavy imports wait until their command runs.

To add one: a file with `ABOUT`, `DETAILS`, `add_arguments` and `run`, and its line in `COMMANDS`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from sampler.commands import diagnose, mars, pilot, report, synthetic, tables, verify, vocabulary
from sampler.commands.arguments import UnusableFileError, UnusableOptionsError
from sampler.diagnostics.extras import MissingExtra
from sampler.record.differences import RecordError

COMMANDS = {
    "synthetic": synthetic,
    "diagnose": diagnose,
    "vocabulary": vocabulary,
    "pilot": pilot,
    "mars": mars,
    "report": report,
    "verify": verify,
    "tables": tables,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0, 2 with a message on stderr when it cannot be done, or what the command returns."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        # Most commands return nothing.
        status: int | None = COMMANDS[options.command].run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, `head` say, has seen enough. Nothing may be flushed into the broken pipe on the way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (MissingExtra, OSError, RecordError, UnusableFileError, UnusableOptionsError) as problem:
        print(f"{parser.prog} {options.command}: error: {problem}", file=sys.stderr)
        return 2
    return status or 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sampler",
        description="Exact Metropolis-Hastings from binary votes: experiments and diagnostics.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        command.add_arguments(commands.add_parser(name, help=command.ABOUT, description=command.DETAILS))
    return parser
