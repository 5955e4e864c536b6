"""Translation: sentences of two directions, whose translations are written again from a cut (L1576-1775)."""

from __future__ import annotations

from typing import Any

from prefmh_web.experiments.configs.part import Part


def config(part: Part) -> dict[str, Any]:
    """Return the config of one campaign: a chain translates each sentence.

    Judges see the sentence, and the quality estimate where a scorer is named for it; QUEST goes by the estimate itself.
    """
    space = {
        "kind": "model-texts",
        "model": part.endpoints["writer"],
        "prompts": [_request(part, source) for source in part.prompts],
        "limit": part.setting("limit"),
        "temperature": part.setting("temperature"),
        "sources": part.prompts,
    }
    if part.method.judges and "quality" in part.scorers:
        space["estimate"] = part.scorers["quality"]
    return part.frame(space=space, kernel={"kind": "suffix", "cut": part.setting("cut")})


def _request(part: Part, source: str) -> str:
    """Return what the writer is asked. Nothing is read in the sentence itself, whatever braces it has."""
    languages = dict(each.split(": ") for each in part.setting("languages"))
    written_in, wanted = (languages[code] for code in part.direction.split("-"))
    words = str(part.setting("user_message")).replace("{from}", written_in).replace("{to}", wanted)
    before, after = words.split("{source}")
    return before + source + after
