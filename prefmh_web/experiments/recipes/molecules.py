"""Molecules: fragments added and deleted, from `CC` on (L1461-1574)."""

from __future__ import annotations

from typing import Any

from prefmh_web.experiments.recipes.part import Part


def recipe(part: Part) -> dict[str, Any]:
    """Return the recipe of one campaign.

    Raises:
        ValueError: the method's proposals are learned, which is no campaign (`lockstep_part`).
    """
    given = part.method.parameters
    if given.get("proposal") == "learned":
        raise ValueError(f"{part.method.name} learns its proposals while it runs, and has no recipe")
    kernel = {"kind": "fragments", "convention": given["convention"]}
    return part.frame(space={"kind": "molecules"}, kernel=kernel)
