"""What the commands share: whole numbers as arguments, and the error of a file that is of no use."""

from __future__ import annotations

import argparse


class UnusableFileError(Exception):
    """A file that can be read but does not hold what the command needs."""


class UnusableOptionsError(Exception):
    """Options that do not go together; the message names one and the mend."""


def seed(text: str) -> int:
    """Return a whole number of at least 0; `argparse` reports any other text."""
    return _whole_number(text, least=0)


def positive(text: str) -> int:
    """Return a whole number of at least 1; `argparse` reports any other text."""
    return _whole_number(text, least=1)


def several(text: str) -> int:
    """Return a whole number of at least 2; `argparse` reports any other text."""
    return _whole_number(text, least=2)


def _whole_number(text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}, not {text!r}")
    return number
