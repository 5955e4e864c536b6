"""Texts that a model outside this package writes: behind an endpoint, or loaded by the application.

The recipe names the model; whoever builds the plan brings it. Nobody with the record alone can draw its texts again, so
a replay takes them as they stand (`RecordedTexts`) and checks what follows from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    field_validator,
    model_serializer,
    model_validator,
)

from sampler.spaces.catalog import ContextColumn
from sampler.spaces.texts.language_model import CannotScoreError, LanguageModel, TellsItsDraws, texts_of
from sampler.spaces.texts.space import Beginning, Writing, WrittenTexts, check_told, read_code

MAX_TOKENS = 4_096
SOURCE: Final = ContextColumn(column="source", label="Source")
ESTIMATE: Final = ContextColumn(column="estimate", label="Quality estimate")
Prompt = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4_000)]


class ServedTextsRecipe(BaseModel):
    """The part of a recipe that says: texts, written by the model of this name.

    Chain c answers prompt number c modulo how many there are. All of it is part of p0, with the model itself, which
    must stay the same while the campaign runs.

    Args:
        model: an endpoint's name, or one of the site's own models.
        prompts: what it is asked for, each different.
        system: the message before every prompt; empty for none.
        limit: T, the most tokens of a text.
        temperature: of every token. Nothing else is sampled but plainly: no top-p, no top-k, no penalties.
        sources: what each prompt asks to be worked on, as the sentence to translate: judges see it above the texts, and
            scorers are told it. One for each prompt, or none at all.
        estimate: the scorer whose number stands with each text that is judged; nobody is asked before it is there.
            Empty for none.

    Neither is part of p0. No law depends on them but the judges'.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    objects: ClassVar[str] = "texts"
    """Which kind of object it makes."""
    kind: Literal["model-texts"] = "model-texts"
    model: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120)]
    prompts: tuple[Prompt, ...] = Field(min_length=1, max_length=1_000)
    system: Annotated[str, StringConstraints(strip_whitespace=True, max_length=4_000)] = ""
    limit: int = Field(default=128, ge=1, le=MAX_TOKENS)
    temperature: float = Field(default=1.0, ge=0.1, le=5)
    sources: tuple[Prompt, ...] = Field(default=(), max_length=1_000)
    estimate: Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.-]*)?$", max_length=40)] = ""

    @model_serializer(mode="wrap")
    def _without_what_is_not_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Recipes that show nothing with their texts are what they always were, byte for byte.
        fields: dict[str, Any] = handler(self)
        return {name: value for name, value in fields.items() if name not in ("sources", "estimate") or value}

    @property
    def context(self) -> tuple[ContextColumn, ...]:
        """What is shown with each text, in this order."""
        return (*((SOURCE,) if self.sources else ()), *((ESTIMATE,) if self.estimate else ()))

    def source_of(self, chain: int) -> str:
        """Return the source of what a chain writes; empty where there are none."""
        return self.sources[chain % len(self.prompts)] if self.sources else ""

    @model_validator(mode="after")
    def _has_a_source_for_each_prompt(self) -> ServedTextsRecipe:
        if self.sources and len(self.sources) != len(self.prompts):
            raise ValueError(f"sources must be {len(self.prompts)}, one for each prompt, not {len(self.sources)}")
        return self

    @field_validator("prompts")
    @classmethod
    def _are_distinct(cls, prompts: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(prompts)) < len(prompts):
            raise ValueError("prompts must not list one twice")
        return prompts

    def build(self, model: LanguageModel, *, is_told: bool = False) -> ServedTexts:
        """Return the space on the model that the recipe names.

        Args:
            is_told: whether the log-probabilities of the tokens are asked for and kept.

        Raises:
            CannotScoreError: they are wanted, and the model does not tell them.
        """
        return (ToldTexts if is_told else ServedTexts)(model, self.prompts)


class ServedTexts(WrittenTexts):
    """Texts of a model that takes a request to turn tokens into words: what was stored of them is not asked again."""

    def decode(self, code: str) -> Writing:
        """Return the state that `encode` wrote.

        Raises:
            ValueError: the code is no state of this space.
        """
        return _checked(read_code(code), self.prompts, self.model.limit, is_told=False)


class ToldTexts(ServedTexts):
    """The same texts, each with the log-probabilities that its tokens were drawn with.

    p(x_t | x_1 .. x_{t-1}) does not depend on what follows x_t. So what a beginning keeps is still true of it whatever
    is written after it, and nothing has to be asked about a text that is there.

    Args:
        model, prompts: see `WrittenTexts`.

    Raises:
        CannotScoreError: the model does not tell them.
    """

    has_log_probabilities = True

    def __init__(self, model: LanguageModel, prompts: Sequence[str] = ()) -> None:
        super().__init__(model, prompts)
        if not isinstance(model, TellsItsDraws):
            raise CannotScoreError(
                "the rule needs the log-probability of each token that is drawn, and what writes these texts does not "
                "tell it. Take a writer behind a llama.cpp or vLLM endpoint, or 'released': false, which needs none"
            )
        self._teller: TellsItsDraws = model

    def write(self, rngs: Sequence[np.random.Generator], beginnings: Sequence[Beginning]) -> list[Writing]:
        """Return whole texts that begin so, with the log-probabilities of all their tokens.

        Raises:
            ValueError: as `LanguageModel.continue_batch` does, or those of a beginning are not there.
        """
        if any(len(beginning.log_probabilities or ()) != len(beginning.tokens) for beginning in beginnings):
            raise ValueError("a beginning must have a log-probability for each of its tokens")
        prompts = [beginning.prompt for beginning in beginnings]
        drawn = self._teller.continue_told(rngs, prompts, [beginning.tokens for beginning in beginnings])
        texts = texts_of(self.model, prompts, [tokens for tokens, _ in drawn])
        return [
            Writing(beginning.prompt, tokens, text, (*(beginning.log_probabilities or ()), *told))
            for beginning, (tokens, told), text in zip(beginnings, drawn, texts, strict=True)
        ]

    def decode(self, code: str) -> Writing:
        """Return the state that `encode` wrote.

        Raises:
            ValueError: the code is no state of this space, or its tokens have no log-probabilities.
        """
        return _checked(read_code(code), self.prompts, self.model.limit, is_told=True)


@dataclass(frozen=True)
class AbsentModel:
    """What is known of a model that is not there: T, the most tokens of a text."""

    limit: int


class RecordedTexts:
    """The same texts where there is no model: they can be read, and no new one written.

    Args:
        recipe: of the space.
        is_told: whether each has the log-probabilities of its tokens.
    """

    def __init__(self, recipe: ServedTextsRecipe, *, is_told: bool = False) -> None:
        self._recipe = recipe
        self.has_log_probabilities = is_told
        self.model = AbsentModel(recipe.limit)

    def decode(self, code: str) -> Writing:
        """Return the state of a code; see `ServedTexts.decode`."""
        told = self.has_log_probabilities
        return _checked(read_code(code), self._recipe.prompts, self._recipe.limit, is_told=told)

    def is_close(self, one: Writing, other: Writing) -> bool:
        """True when the two are the same tokens under the same prompt."""
        return one == other

    def content(self, state: Writing) -> str:
        """Return the text."""
        return state.text


def _checked(writing: Writing, prompts: tuple[str, ...], limit: int, *, is_told: bool) -> Writing:
    if writing.prompt not in prompts:
        raise ValueError(f"prompt must be one of the {len(prompts)} of this space, not {writing.prompt!r}")
    if not 1 <= len(writing.tokens) <= limit:
        raise ValueError(f"tokens must be 1 to {limit}, not {len(writing.tokens)}")
    check_told(writing, is_told=is_told)
    return writing
