"""The space of texts that a language model writes: p0 is the model's law, given the chain's prompt.

A chain keeps its prompt from first to last. The record keeps the tokens beside the text, because the suffix kernel
cuts between tokens and no tokeniser gives back the tokens that a text was made of.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import ConfigDict, Field, field_validator

from sampler.declared import Declared, ui
from sampler.spaces.texts.language_model import LanguageModel, Tokens, texts_of
from sampler.spaces.texts.story_openings import STORY_SCENARIOS, story_openings

_DETAILS = "Scenarios and temperature"


@dataclass(frozen=True)
class Beginning:
    """The first tokens of a text and the prompt it answers; none for a fresh one."""

    prompt: str
    tokens: Tokens = ()


@dataclass(frozen=True)
class Writing:
    """A text, the tokens it was written in, and the prompt it answers."""

    prompt: str
    tokens: Tokens
    text: str

    def beginning(self, kept: int) -> Beginning:
        """Return its first tokens."""
        return Beginning(self.prompt, self.tokens[:kept])


class WrittenTexts:
    """Texts of one language model under the prompts chosen.

    Args:
        model: p0.
        prompts: those that chains answer, in this order; none for all that the model has.

    Raises:
        ValueError: there is no prompt, or the model does not know one of them.
    """

    def __init__(self, model: LanguageModel, prompts: Sequence[str] = ()) -> None:
        chosen = tuple(prompts) or model.prompts
        if not chosen:
            raise ValueError("prompts must name at least one, because this model has none of its own")
        if unknown := [prompt for prompt in chosen if model.prompts and prompt not in model.prompts]:
            raise ValueError(f"prompts must be among the model's own; it does not know {unknown}")
        self._model, self._prompts = model, chosen

    @property
    def model(self) -> LanguageModel:
        """What writes the texts."""
        return self._model

    @property
    def prompts(self) -> tuple[str, ...]:
        """The prompts that chains answer, in order."""
        return self._prompts

    def start(self, rng: np.random.Generator, chain: int) -> Writing:
        """Draw x^(0) ~ p0 under prompt number `chain` modulo the number of prompts."""
        return self.start_batch([rng], [chain])[0]

    def start_batch(self, rngs: Sequence[np.random.Generator], chains: Sequence[int]) -> list[Writing]:
        """Return what `start` gives for each row, by one call of the model."""
        return self.write(rngs, [Beginning(self._prompts[chain % len(self._prompts)]) for chain in chains])

    def refresh(self, rng: np.random.Generator, state: Writing) -> Writing:
        """Draw x' ~ p0 under the state's prompt."""
        return self.write([rng], [Beginning(state.prompt)])[0]

    def refresh_batch(self, rngs: Sequence[np.random.Generator], states: Sequence[Writing]) -> list[Writing]:
        """Return what `refresh` gives for each row, by one call of the model."""
        return self.write(rngs, [Beginning(state.prompt) for state in states]) if states else []

    def write(self, rngs: Sequence[np.random.Generator], beginnings: Sequence[Beginning]) -> list[Writing]:
        """Return whole texts that begin so, in one call of the model; see `LanguageModel`.

        Raises:
            ValueError: as `LanguageModel.continue_batch` does.
        """
        prompts = [beginning.prompt for beginning in beginnings]
        written = self._model.continue_batch(rngs, prompts, [beginning.tokens for beginning in beginnings])
        texts = texts_of(self._model, prompts, written)
        return [Writing(*row) for row in zip(prompts, written, texts, strict=True)]

    def encode(self, state: Writing) -> str:
        """Return the state as JSON: prompt, tokens and text."""
        return json.dumps(dataclasses.asdict(state), ensure_ascii=False, separators=(",", ":"))

    def decode(self, code: str) -> Writing:
        """Return the state that `encode` wrote.

        The text is worked out from the tokens again: tokens of another model, or of another version of the grammar,
        would otherwise pass for a state and move along a chain that is not theirs.

        Raises:
            ValueError: the code is no state of this space.
        """
        writing = read_code(code)
        if writing.prompt not in self._prompts:
            raise ValueError(f"prompt must be one of the {len(self._prompts)} of this space, not {writing.prompt!r}")
        if self._model.text(writing.prompt, writing.tokens) != writing.text:
            raise ValueError("text must be what the tokens say; they were written by another model or version")
        return writing

    def is_close(self, one: Writing, other: Writing) -> bool:
        """True when the two are the same tokens under the same prompt."""
        return one == other

    def content(self, state: Writing) -> str:
        """Return the text."""
        return state.text


class TextsConfig(Declared):
    """The part of a config that says: texts, written by a model that comes with the package.

    `scenarios` are numbers of the model's scenarios, each at most once; none for all of them. Chain c answers number
    c modulo how many there are. The temperature sharpens (below 1) or evens out (above 1) every choice, and is part
    of p0.
    """

    model_config = ConfigDict(
        title="Story openings from a grammar",
        json_schema_extra=ui(help="Short openings that this program writes and rewrites. Nothing to prepare."),
    )

    objects: ClassVar[str] = "texts"
    """Which kind of object it makes."""
    kind: Literal["texts"] = "texts"
    model: Literal["story-openings"] = Field(default="story-openings", json_schema_extra=ui(widget="none"))
    temperature: float = Field(
        default=1.0,
        ge=0.1,
        le=10,
        title="Temperature",
        description="Part of p0. Below 1, common phrases become more frequent; above 1, rare ones.",
        json_schema_extra=ui(fold=_DETAILS),
    )
    scenarios: tuple[int, ...] = Field(
        default=(),
        title="Scenarios",
        description="The chains use them in turn; each chain keeps its own. Choose none to use all fifty.",
        json_schema_extra=ui(fold=_DETAILS, choices="scenarios"),
    )

    @field_validator("scenarios")
    @classmethod
    def _are_distinct_numbers(cls, scenarios: tuple[int, ...]) -> tuple[int, ...]:
        if unknown := [number for number in scenarios if not 0 <= number < len(STORY_SCENARIOS)]:
            raise ValueError(f"scenarios are numbered 0 to {len(STORY_SCENARIOS) - 1}; there is no {unknown[0]}")
        if len(set(scenarios)) < len(scenarios):
            raise ValueError("scenarios must not name one twice")
        return scenarios

    @property
    def prompts(self) -> tuple[str, ...]:
        """What chains answer, in order: chain c number c modulo how many there are."""
        numbers = self.scenarios or range(len(STORY_SCENARIOS))
        return tuple(STORY_SCENARIOS[number].prompt for number in numbers)

    def build(self) -> WrittenTexts:
        """Return the space."""
        return WrittenTexts(story_openings(self.temperature), self.prompts)


def read_code(code: str) -> Writing:
    """Return what `WrittenTexts.encode` wrote, whatever the model.

    Raises:
        ValueError: it wrote no such text.
    """
    try:
        read: Any = json.loads(code)
    except json.JSONDecodeError as error:
        raise ValueError(f"a text's code must be JSON: {error}") from error
    if not isinstance(read, dict) or set(read) != {"prompt", "tokens", "text"}:
        raise ValueError("a text's code must be a JSON object of prompt, tokens and text")
    prompt, tokens, text = read["prompt"], read["tokens"], read["text"]
    if not isinstance(prompt, str) or not isinstance(text, str):
        raise ValueError("prompt and text must be strings")
    # In Python True is an int; in a record it is a mistake.
    if not isinstance(tokens, list) or not all(type(token) is int for token in tokens):
        raise ValueError("tokens must be a list of whole numbers")
    return Writing(prompt, tuple(tokens), text)
