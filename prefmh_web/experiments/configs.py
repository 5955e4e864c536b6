"""One campaign of a run, and its config, which each experiment makes in a way of its own (`CONFIGS`).

Of images, the writer is a model that the site runs itself (`LOCAL_IMAGE_MODELS`), not a server. `PATTERNS` is the
decoder that comes with prefmh: it needs no GPU and shows no objects, so it is for trying an installation, not for the
paper's table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import sampler
from prefmh_web.endpoints.local.models import image_model_names, latent_dimension
from sampler import judges


@dataclass(frozen=True)
class Part:
    """One campaign of a run.

    Args:
        options: of the run.
        method: whose row of the table it is.
        direction: the name of its inputs; empty where there is one set only.
        seed: of its chains.
        endpoints: names of endpoints, by role.
        inputs: the prompts of its direction that there are, in order; see `prompts`.
        scorers: names of scorers, by role.
        vocabulary: the arms of molecules, as the config of their space has them.
    """

    options: sampler.ExperimentOptions
    method: sampler.ExperimentMethod
    direction: str
    seed: int
    endpoints: Mapping[str, str]
    inputs: Sequence[str] = ()
    scorers: Mapping[str, str] = field(default_factory=dict)
    vocabulary: Literal["default"] | tuple[str, ...] = "default"

    @property
    def name(self) -> str:
        """As the record's file has it, without its ending."""
        return sampler.outputs.record_name(self.method.name, self.direction, self.seed).removesuffix(".zip")

    @property
    def prompts(self) -> list[str]:
        """The prompts that the run has, in order: chain c answers number c modulo their count."""
        return list(self.inputs[: self.options.direction(self.direction).inputs])

    @property
    def chains(self) -> int:
        """How many chains it has."""
        return self.options.chains_of(self.options.direction(self.direction))

    def setting(self, name: str) -> Any:
        """Return the value of one of the experiment's settings; at the laptop's scale its own, where it has one.

        Raises:
            KeyError: there is none.
        """
        values = {each.name: each.value for each in self.options.of_experiment.settings}
        return values.get(f"{name}_{self.options.scale}", values[name])

    def frame(self, **fields: Any) -> dict[str, Any]:
        """Return a config of these fields, with judges, rule, chains, steps and seed."""
        return {
            "version": 1,
            "judges": [self._judge(asked) for asked in self.method.judges],
            "rule": self._rule(),
            "chains": self.chains,
            "steps": self.options.steps_of(self.method),
            "seed": self.seed,
            **fields,
        }

    def _rule(self) -> dict[str, Any]:
        given: Mapping[str, Any] = self.method.parameters
        kind = self.method.rule
        if kind == "quest":
            return {"kind": kind, "scorer": self.scorers["quality"], "beta": given["beta"]}
        if kind != "pointwise":
            return {"kind": kind} if kind != "score" else {"kind": kind, "form": given["score"], "beta": given["beta"]}
        lowest, highest = given["scale"]
        beta = {"beta": given["beta"]} if given["form"] == "power" else {}
        return {"kind": kind, "form": given["form"], "lowest": lowest, "highest": highest, **beta}

    def _judge(self, asked: sampler.Asked) -> dict[str, Any]:
        source = {
            "kind": "model",
            "endpoint": self.endpoints[asked.role],
            "temperature": self.setting("judge_temperature"),
            "prompt": judges.PRESETS[asked.preset].template.model_dump(mode="json"),
        }
        if self.method.rule == "n-vote":
            source["votes"] = self.options.votes
        return {"question": asked.question, "votes": self.method.asks, "order": self._order(asked), "source": source}

    def _order(self, asked: sampler.Asked) -> str:
        order = str(self.method.parameters.get("order", "random"))
        if order != "two-judge":
            return order
        # Two judges of one question, told apart by whose object stands first.
        return "proposal-first" if asked.name.endswith("proposal-first") else "proposal-second"


PATTERNS = "patterns"


def _images(part: Part) -> dict[str, Any]:
    """Return the config of one campaign.

    Raises:
        OptionError: this site has no such image model.
        ValueError: its folder holds no pipeline.
    """
    kernel = {"kind": "independent"} if part.method.draws_only else sampler.PAPER_MIXTURE
    return part.frame(space=_image_space(part), kernel=kernel)


def described_image_model(name: str) -> str:
    """Return what settings.json says of an image model.

    Raises:
        OptionError, ValueError: as `config`.
    """
    if name == PATTERNS:
        return f"{name}: prefmh's own decoder, which stands in for a diffusion model"
    dimension = _latent_dimension(name)
    return f"{name}: this site's own" + (f", latents of {dimension} numbers" if dimension else "")


def _image_space(part: Part) -> dict[str, Any]:
    name = part.endpoints["writer"]
    if name == PATTERNS:
        return {"kind": "images"}
    stated = math.prod(part.setting("latent"))
    # Small pipelines have small latents; at the paper's size another model than the paper's is refused at the start.
    dimension = _latent_dimension(name) if part.options.scale == "laptop" else None
    return {
        "kind": "model-images",
        "model": name,
        "prompt": part.setting("image_prompt"),
        "steps": part.setting("inference_steps"),
        "dimension": dimension or stated,
    }


def _latent_dimension(name: str) -> int | None:
    """Return how many numbers a latent of a site's image model has; None where this process does not see its folder."""
    if name not in image_model_names():
        known = ", ".join((PATTERNS, *image_model_names()))
        raise sampler.OptionError(
            "--endpoint writer",
            f"must name an image model of this site ({known}), not {name!r}; LOCAL_IMAGE_MODELS declares others",
        )
    return latent_dimension(name)


def _molecules(part: Part) -> dict[str, Any]:
    """Return the config of one campaign.

    Raises:
        ValueError: the method's proposals are learned, which is no campaign (see `run.py`).
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


def _stories(part: Part) -> dict[str, Any]:
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


def _translation(part: Part) -> dict[str, Any]:
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


CONFIGS: Mapping[str, Callable[[Part], dict[str, Any]]] = {
    "stories": _stories,
    "images": _images,
    "molecules": _molecules,
    "translation": _translation,
}
"""By the experiment's name, what makes the config of one of its campaigns."""
