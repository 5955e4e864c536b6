"""Exports whose states are known, written without a campaign: as much of one as a comparison of records reads."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from sampler import schema

_JUDGE = {"question": "Which is darker?", "budget": 2, "source": {"kind": "people"}}


def write_texts(
    path: Path,
    content: Callable[[int, int], str],
    prompts: Sequence[str],
    steps: int = 8,
    burn_in: int = 0,
) -> Path:
    """Write the record of a campaign of served texts, a chain for each prompt.

    Args:
        content: what stands in a chain after a step.
    """
    space = {"kind": "model-texts", "model": "A model", "prompts": list(prompts), "limit": 12}
    places = [(chain, step) for chain in range(len(prompts)) for step in range(steps + 1)]
    codes = [
        json.dumps({"prompt": prompts[chain], "tokens": [1], "text": content(chain, step)}) for chain, step in places
    ]
    recipe = {**_recipe(space, len(prompts), steps), **({"burn_in": burn_in} if burn_in else {})}
    return _write(path, recipe, places, [content(*place) for place in places], codes, burn_in)


def write_list(path: Path, objects: str, content: Callable[[int, int], str], chains: int, steps: int = 4) -> Path:
    """Write the record of a campaign that picks from a list; without a step it has only been started."""
    places = [(chain, step) for chain in range(chains) for step in range(steps + 1)]
    recipe = _recipe({"kind": "catalog", "objects": objects}, chains, max(1, steps))
    return _write(path, recipe, places, [content(*place) for place in places], [""] * len(places), 0)


def write_images(path: Path, picture: Callable[[int], bytes], chains: int, steps: int = 2) -> Path:
    """Write the record of a campaign on a list of pictures, with a picture in it for each object.

    Args:
        picture: the PNG of the object with this number.
    """
    write_list(path, "images", lambda chain, step: f"{chain}-{step}.png", chains, steps)
    with zipfile.ZipFile(path, "a") as archive:
        for number in range(chains * (steps + 1)):
            archive.writestr(f"pictures/{number}.png", picture(number))
    return path


def _recipe(space, chains: int, steps: int) -> dict:
    plan = {"judges": [_JUDGE], "chains": chains, "steps": steps, "seed": 1}
    return {"version": 1, "space": space, "kernel": {"kind": "independent"}, **plan}


def _write(path: Path, recipe: dict, places, contents, codes, burn_in: int) -> Path:
    samples, states = [], []
    for number, ((chain, step), content, code) in enumerate(zip(places, contents, codes, strict=True)):
        states.append(schema.STATES.row(state=number, weight=None, neighbours=(), content=content, code=code))
        phase = {"phase": "burn-in" if step <= burn_in else "sampling"} if burn_in else {}
        table = schema.SAMPLES_WITH_PHASES if burn_in else schema.SAMPLES
        samples.append(table.row(chain=chain, step=step, state=number, content=content, **phase))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(schema.RECIPE, json.dumps(recipe))
        for table in schema.TABLES:
            header = schema.SAMPLES_WITH_PHASES if burn_in and table is schema.SAMPLES else table
            rows = {"samples": samples, "states": states}.get(table.name, [])
            text = io.StringIO(newline="")
            csv.writer(text).writerows([header.header, *rows])
            archive.writestr(table.file, text.getvalue())
    return path
