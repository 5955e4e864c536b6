"""Stories: the opening of each scenario, written again from a cut or afresh (L1073-1314)."""

from __future__ import annotations

from typing import Any

from prefmh_web.experiments.configs.part import Part


def config(part: Part) -> dict[str, Any]:
    """Return the config of one campaign: a chain answers each scenario."""
    space = {
        "kind": "model-texts",
        "model": part.endpoints["writer"],
        "prompts": part.prompts,
        "system": part.setting("system_prompt"),
        "limit": part.setting("limit"),
        "temperature": part.setting("temperature"),
    }
    fresh = part.setting("fresh")
    mixture = {
        "kind": "mixture",
        "parts": [
            {"weight": fresh, "kernel": {"kind": "independent"}},
            {"weight": 1 - fresh, "kernel": {"kind": "suffix", "cut": part.setting("cut")}},
        ],
    }
    return part.frame(space=space, kernel={"kind": "independent"} if part.method.draws_only else mixture)
