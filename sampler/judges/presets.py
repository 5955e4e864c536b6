"""Prompts to begin with: the paper's judges, the experiments' roles, plain words (`sampler/data/prompts.toml`).

The paper prints no judge's prompt in full. What it does print of two of them stands here word for word, with the line
of `pref-mh.tex` that has it; the words around it are ours, and so are those of the other roles.

- Molecules, section "De novo molecular design" (L701): "prompted to choose which of two SMILES molecules is more
  promising for medicinal-chemistry follow-up"; appendix (L1481-1483): "The evaluation considers general
  medicinal-chemistry factors such as drug-likeness, synthetic accessibility, developability, and potentially
  problematic chemical motifs."
- Images, appendix "Image generation in continuous space" (L1341-1352): the properties "orange salamander on grey
  driftwood", "turquoise butterfly flying in the scene" and "red mushroom with white spots near the soil"; "each judge
  is instructed to focus only on its own criterion rather than on the remaining objects or general image aesthetics".

The stories' properties are those of L1099-1102, and what a judge of translations sees is that of L1613-1620.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Final

from sampler.judges.templates import PromptTemplate


@dataclass(frozen=True)
class Preset:
    """A prompt to begin with.

    Args:
        title: as the setup shows it.
        kinds: of the objects that it is for.
        rates: whether it rates one object, and does not compare two.
        question: one to begin with; empty where the prompt is for any.
        template: the words.
    """

    title: str
    kinds: tuple[str, ...]
    rates: bool
    question: str
    template: PromptTemplate


def _read() -> Iterator[tuple[str, Preset]]:
    """Yield the presets of the file by name. All but those that are completed end with how to reply."""
    text = resources.files("sampler").joinpath("data", "prompts.toml").read_text(encoding="utf-8")
    found = tomllib.loads(text)
    common = found["common"]
    for name, each in found["presets"].items():
        rates, is_completed = each.get("rates", False), each.get("completion", False)
        reply = common["one_number" if rates else "one_letter"]
        template = PromptTemplate(
            system="" if is_completed else f"{each['system']} {reply}",
            user=each.get("user", common["rated" if rates else "pair"]),
            completion=is_completed,
        )
        yield name, Preset(each["title"], tuple(each["kinds"]), rates, each.get("question", ""), template)


PRESETS: Final = dict(_read())
"""By the name under which a form has them. A campaign keeps the words, never the name."""


def presets_for(kind: str, *, rates: bool) -> dict[str, Preset]:
    """Return the presets for a kind of object, by name."""
    return {name: each for name, each in PRESETS.items() if kind in each.kinds and each.rates == rates}
