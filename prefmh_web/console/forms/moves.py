"""How objects are proposed where a researcher does not say it kernel by kernel: the usual move of each space, in walks
whose length a warm-up finds or that is fixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

import sampler
from sampler.declared import Declared, ui

_FRESH_IN_LISTS, _FRESH_TEXTS = 0.3, 0.1
_KERNEL: TypeAdapter[sampler.KernelConfig] = TypeAdapter(sampler.KernelConfig)
_SPACE: TypeAdapter[Any] = TypeAdapter(sampler.SpaceConfig)
_MIDDLE = sampler.DEFAULT_GRID[len(sampler.DEFAULT_GRID) // 2]


class UsualMoves(Declared):
    """The usual move of the space, and how many of them lie between two pairs."""

    model_config = ConfigDict(title="As usual for these objects")

    kind: Literal["usual"] = "usual"
    distance: Literal["warm-up", "fixed"] = Field(
        default="warm-up",
        title="How far apart should two compared objects be?",
        description=f"In the first steps, a warm-up tries pairs that are 1 to {sampler.DEFAULT_GRID[-1]} moves apart; "
        "then the campaign keeps the distance at which votes move the chains furthest, which saves most of the votes. "
        "The result stays exact. At its end, chains wait for each other once.",
        json_schema_extra=ui(labels={"warm-up": "A warm-up finds it", "fixed": "A fixed number of moves"}),
    )
    length: int = Field(
        default=_MIDDLE,
        ge=1,
        le=sampler.LONGEST_WALK,
        title="Moves between two pairs",
        description="With a warm-up, this number is used only if the campaign is too short for one, if people of a "
        "panel or a rule without votes decide, or if you end it early. Images are always one move apart.",
    )


def usual_kernel(moves: UsualMoves, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the kernel of the usual moves in a configuration.

    Args:
        config: all of it but the kernel, as plain data; what is wrong in it is told elsewhere.
    """
    space, rule = config["space"], config.get("rule", {}).get("kind", "n-vote")
    try:
        _SPACE.validate_python(space)
    except ValidationError:
        return {"kind": "independent"}
    move = {"kind": "independent"} if rule == "base" else _move_in(space)
    if move["kind"] == "independent" or "crank-nicolson" in str(move):
        return move
    if moves.distance == "warm-up" and rule == "n-vote" and (warm_up := _warm_up(space, config)):
        return {"kind": "walk", "kernel": move, "length": _law(moves.length), "warm_up": warm_up}
    if moves.length == 1:
        return move
    return {"kind": "walk", "kernel": move, "length": _law(moves.length), "warm_up": None}


def usual_of(config: sampler.ChainConfig) -> UsualMoves | None:
    """Return the usual moves that come to the kernel of a configuration; None where none do."""
    described, length = config.model_dump(mode="json"), 1
    if isinstance(config.kernel, sampler.WalkConfig):
        length = max(each.length for each in config.kernel.length)
    fixed = UsualMoves(distance="fixed", length=length)
    candidates = (UsualMoves(), UsualMoves(length=length), fixed)
    return next(
        (each for each in candidates if _KERNEL.validate_python(usual_kernel(each, described)) == config.kernel), None
    )


def _law(length: int) -> list[dict[str, Any]]:
    return [{"weight": 1.0, "length": length}]


def _move_in(space: Mapping[str, Any]) -> dict[str, Any]:
    match space["kind"]:
        case "molecules":
            return {"kind": "fragments"}
        case "images" | "model-images":
            return sampler.PAPER_MIXTURE
        case "texts" | "model-texts":
            return _mixed(_FRESH_TEXTS, "suffix")
    return _mixed(_FRESH_IN_LISTS, "neighbours") if space.get("neighbours") else {"kind": "independent"}


def _mixed(fresh: float, other: str) -> dict[str, Any]:
    parts = [(fresh, "independent"), (1 - fresh, other)]
    return {"kind": "mixture", "parts": [{"weight": weight, "kernel": {"kind": kind}} for weight, kind in parts]}


def _warm_up(space: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a warm-up; None where nothing is measured of the objects, a panel judges, or there are too few steps."""
    kind = sampler.OBJECT_KINDS[sampler.objects_of(space)]
    names = list(kind.main_properties) if sampler.property_names(space) else []
    has_panel = any(judge.get("source", {}).get("kind") == "panelist" for judge in config.get("judges", ()))
    chains, steps = config.get("chains"), config.get("steps")
    if not names or has_panel or not (isinstance(chains, int) and isinstance(steps, int)) or min(chains, steps) < 1:
        return None
    fitting = sampler.warm_up_steps(chains, steps)
    burn_in = min(sampler.DEFAULT_WARM_UP_BURN_IN, steps // 10)
    return {"steps": fitting, "burn_in": burn_in, "properties": names} if fitting else None
