"""A run, its campaigns, and their configs, which each experiment makes in a way of its own.

Of images, the writer is a model that the site runs itself (`LOCAL_IMAGE_MODELS`), not a server; of texts it can be one
(`LOCAL_MODELS`), named `local:NAME`. `PATTERNS` and `GRAMMAR` come with prefmh and need no model: they are for trying
an installation, not for the paper's table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from django.contrib.auth.models import User

import sampler
from prefmh_web.endpoints.local import image_model_names, latent_dimension, model_names
from prefmh_web.scorers import Scorer
from sampler import judges, outputs


@dataclass(frozen=True)
class Run:
    """One run of an experiment.

    Args:
        options: what it consists of.
        owner: of its campaigns and endpoints.
        out: its folder.
        settings: the hash of its settings.json.
        endpoints: names, by role.
        inputs: prompts, by direction, and what is known of them.
        scorers: by role.
        vocabulary: the fragments of molecules, as the config of their space has them.
        max_requests: of all its stages together; None for no limit.
    """

    options: sampler.ExperimentOptions
    owner: User
    out: Path
    settings: str
    endpoints: Mapping[str, str]
    inputs: Mapping[str, Sequence[sampler.ExperimentInput]]
    scorers: Mapping[str, Scorer] = field(default_factory=dict)
    vocabulary: Literal["default"] | tuple[str, ...] = "default"
    max_requests: int | None = None

    @cached_property
    def parts(self) -> list[Part]:
        """Its campaigns: by direction, seed and method."""
        options = self.options
        return [
            Part(self, method, direction.name, seed)
            for direction in options.directions
            for seed in options.seeds
            for method in options.chosen
        ]

    @property
    def writer_is_asked(self) -> bool:
        """Whether a text takes requests: pictures, and texts of the site's own model, are made without any."""
        return self.options.of_experiment.is_written and is_asked(self.endpoints["writer"])

    def input_of(self, key: sampler.StateKey) -> sampler.ExperimentInput | None:
        """Return the prompt that a chain answers; None where chains have none."""
        given = self.inputs.get(key.direction, ())
        return given[key.chain % self.options.direction(key.direction).inputs] if given else None


@dataclass(frozen=True)
class Part:
    """One campaign of a run.

    Args:
        run: the whole.
        method: whose row of the table it is.
        direction: the name of its inputs; empty where there is one set only.
        seed: of its chains.
    """

    run: Run
    method: sampler.ExperimentMethod
    direction: str
    seed: int

    @property
    def options(self) -> sampler.ExperimentOptions:
        """The run's."""
        return self.run.options

    @property
    def record(self) -> Path:
        """Where its record stands."""
        return self.run.out / outputs.RECORDS / outputs.record_name(self.method.name, self.direction, self.seed)

    @property
    def name(self) -> str:
        """As the record's file has it, without its ending."""
        return self.record.stem

    @property
    def prompts(self) -> list[str]:
        """The prompts that the run has, in order: chain c answers number c modulo their count."""
        given = self.run.inputs[self.direction][: self.options.direction(self.direction).inputs]
        return [each.prompt for each in given]

    @property
    def chains(self) -> int:
        """How many chains it has."""
        return self.options.chains_of(self.options.direction(self.direction))

    @property
    def steps(self) -> int:
        """How many steps each chain takes."""
        return self.options.steps_of(self.method)

    def setting(self, name: str) -> Any:
        """Return the value of one of the experiment's settings; at the laptop's scale its own, where it has one.

        Raises:
            KeyError: there is none.
        """
        values = {each.name: each.value for each in self.options.of_experiment.settings}
        return values.get(f"{name}_{self.options.scale}", values[name])


PATTERNS, GRAMMAR, LOCAL = "patterns", "story-grammar", "local:"


def is_asked(writer: str) -> bool:
    """Say whether a writer of texts is an endpoint."""
    return writer != GRAMMAR and not writer.startswith(LOCAL)


def described_writer(name: str, objects: str) -> str | None:
    """Return what settings.json says of a writer that is no endpoint; None where it must be one.

    Raises:
        OptionError, ValueError: as `config`.
    """
    if objects == "images":
        return _described_image_model(name)
    if name == GRAMMAR:
        return f"{name}: prefmh's own, which heeds no prompt"
    if not name.startswith(LOCAL):
        return None
    _require_one_of([LOCAL + each for each in model_names()], name, "a language model", "LOCAL_MODELS")
    return f"{name.removeprefix(LOCAL)}: this site's own"


def _require_one_of(known: Sequence[str], name: str, kind: str, setting: str) -> None:
    if name not in known:
        listed = ", ".join(known) or "none"
        told = f"must name {kind} of this site ({listed}), not {name!r}; {setting} declares others"
        raise sampler.OptionError("--endpoint writer", told)


def _described_image_model(name: str) -> str:
    if name == PATTERNS:
        return f"{name}: prefmh's own decoder, which stands in for a diffusion model"
    dimension = _latent_dimension(name)
    return f"{name}: this site's own" + (f", latents of {dimension} numbers" if dimension else "")


def _images(part: Part) -> dict[str, Any]:
    name = part.run.endpoints["writer"]
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
    _require_one_of((PATTERNS, *image_model_names()), name, "an image model", "LOCAL_IMAGE_MODELS")
    return latent_dimension(name)


def vocabulary_in(path: Path | None) -> Literal["default"] | tuple[str, ...]:
    """Return the fragments of a file: a line for each, SMILES with one dummy `*`; one that stands twice is drawn twice
    as often. Without a file, our own.

    Raises:
        OSError: it cannot be read.
        OptionError: it is no such file.
    """
    if path is None:
        return "default"
    try:
        fragments = tuple(fragment for fragment, _ in sampler.parse_fragments(path.read_text(encoding="utf-8-sig")))
        sampler.Vocabulary((fragment, 1.0) for fragment in fragments)
    except ValueError as error:
        raise sampler.OptionError(
            "--data", f"must be a file of fragments, one a line as SMILES with one “*”, and {path.name} is not: {error}"
        ) from error
    return fragments


def _stories(part: Part) -> dict[str, Any]:
    """Return the space in which a chain answers each scenario."""
    return _written(part, prompts=part.prompts, system=part.setting("system_prompt"))


def _translation(part: Part) -> dict[str, Any]:
    """Return the space in which a chain translates each sentence.

    Judges see the sentence, and the quality estimate where a scorer is named for it; QUEST goes by the estimate itself.
    """
    prompts = [_request(part, source) for source in part.prompts]
    shown = (
        {"estimate": part.run.scorers["quality"].name} if part.method.judges and "quality" in part.run.scorers else {}
    )
    return _written(part, prompts=prompts, sources=part.prompts, **shown)


def _written(part: Part, **fields: Any) -> dict[str, Any]:
    writer, temperature = part.run.endpoints["writer"], part.setting("temperature")
    if writer == GRAMMAR:
        scenarios = range(min(len(part.prompts), len(sampler.STORY_SCENARIOS)))
        return {"kind": "texts", "temperature": temperature, "scenarios": list(scenarios)}
    model = writer.removeprefix(LOCAL)
    return {"kind": "model-texts", "model": model, "limit": part.setting("limit"), "temperature": temperature, **fields}


def _request(part: Part, source: str) -> str:
    """Return what the writer is asked. Nothing is read in the sentence itself, whatever braces it has."""
    languages = dict(each.split(": ") for each in part.setting("languages"))
    written_in, wanted = (languages[code] for code in part.direction.split("-"))
    words = str(part.setting("user_message")).replace("{from}", written_in).replace("{to}", wanted)
    before, after = words.split("{source}")
    return before + source + after


_SPACES: Mapping[str, Callable[[Part], dict[str, Any]]] = {
    "stories": _stories,
    "images": _images,
    "molecules": lambda part: {"kind": "molecules", "vocabulary": part.run.vocabulary},
    "translation": _translation,
}


def config_of(part: Part) -> dict[str, Any]:
    """Return a part's config, checked. Chains that learn their proposals together have none.

    Raises:
        OptionError: this site has no such image model.
        ValueError: it cannot be run; `sampler.ConfigError` is one.
    """
    method = part.method
    scorer = {"scorer": part.run.scorers["quality"].name} if method.kind == "quest" else {}
    config = {
        "version": 1,
        "space": _SPACES[part.options.experiment](part),
        "kernel": dict(method.kernel),
        "judges": [_judge(part, asked) for asked in method.judges],
        "rule": {**method.rule, **scorer},
        "chains": part.chains,
        "steps": part.steps,
        "seed": part.seed,
    }
    return sampler.parse_config(config).model_dump(mode="json")


def _judge(part: Part, asked: sampler.EvaluationQuestion) -> dict[str, Any]:
    template = judges.PRESETS[asked.preset].template
    if part.run.endpoints.get("writer") == GRAMMAR:
        # It writes without a source, so that none can be shown.
        template = template.model_copy(update={"user": template.user.replace("{{context}}\n\n", "")})
    source = {
        "kind": "model",
        "endpoint": part.run.endpoints[asked.role],
        "temperature": part.setting("judge_temperature"),
        "prompt": template.model_dump(mode="json"),
    }
    if part.method.kind == "n-vote":
        source["votes"] = part.options.votes
    return {"question": asked.question, "votes": part.method.max_votes, "order": asked.order, "source": source}
