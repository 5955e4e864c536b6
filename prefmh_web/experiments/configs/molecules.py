"""Molecules: fragments added and deleted, from `CC` on (L1461-1574)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sampler
from prefmh_web.experiments.configs.part import Part


def config(part: Part) -> dict[str, Any]:
    """Return the config of one campaign.

    Raises:
        ValueError: the method's proposals are learned, which is no campaign (`lockstep_part`).
    """
    given = part.method.parameters
    if given.get("proposal") == "learned":
        raise ValueError(f"{part.method.name} learns its proposals while it runs, and has no config")
    kernel = {"kind": "fragments", "convention": given["convention"]}
    return part.frame(space={"kind": "molecules", "vocabulary": part.vocabulary}, kernel=kernel)


def vocabulary_in(path: Path) -> tuple[str, ...]:
    """Return the arms of a file: a line for each, SMILES with one dummy `*`; one that stands twice is drawn twice as
    often.

    Raises:
        OSError: it cannot be read.
        OptionError: it is no such file.
    """
    try:
        arms = tuple(arm for arm, _ in sampler.parse_arms(path.read_text(encoding="utf-8-sig")))
        sampler.Vocabulary((arm, 1.0) for arm in arms)
    except ValueError as error:
        raise sampler.OptionError(
            "--data", f"must be a file of fragments, one a line as SMILES with one “*”, and {path.name} is not: {error}"
        ) from error
    return arms
