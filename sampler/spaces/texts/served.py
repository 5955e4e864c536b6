"""Texts that a model outside this package writes: behind an endpoint, or loaded by the application.

The config names the model; whoever builds the plan brings it. Nobody with the record alone can draw its texts again, so
a replay takes them as they stand (`RecordedTexts`) and checks what follows from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import (
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    field_validator,
    model_serializer,
    model_validator,
)

from sampler.declared import Declared, ui
from sampler.spaces.catalog import ContextColumn
from sampler.spaces.texts.language_model import LanguageModel
from sampler.spaces.texts.space import Writing, WrittenTexts, read_code

MAX_TOKENS = 4_096
_DETAILS = "System message, temperature, sources and estimates"
SOURCE: Final = ContextColumn(column="source", label="Source")
ESTIMATE: Final = ContextColumn(column="estimate", label="Quality estimate")
Prompt = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4_000)]


class ServedTextsConfig(Declared):
    """The part of a config that says: texts, written by the model of this name.

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

    model_config = ConfigDict(
        title="Texts written by a language model",
        json_schema_extra=ui(help="A model of yours writes texts to your prompts, and writes their ends anew."),
    )

    objects: ClassVar[str] = "texts"
    """Which kind of object it makes."""
    kind: Literal["model-texts"] = "model-texts"
    model: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120)] = Field(
        title="Model",
        description="Only servers that take and return token ids are listed (vLLM, llama.cpp), because a text can "
        "change when it is tokenised again.",
        json_schema_extra=ui(choices="writers"),
    )
    prompts: tuple[Prompt, ...] = Field(
        min_length=1,
        max_length=1_000,
        title="Prompts",
        description="One per line. The chains use them in turn; each chain keeps its own.",
    )
    system: Annotated[str, StringConstraints(strip_whitespace=True, max_length=4_000)] = Field(
        default="", title="System message", json_schema_extra=ui(fold=_DETAILS, widget="text")
    )
    limit: int = Field(default=128, ge=1, le=MAX_TOKENS, title="Most tokens of a text")
    temperature: float = Field(
        default=1.0, ge=0.1, le=5, title="Temperature", description="Part of p0.", json_schema_extra=ui(fold=_DETAILS)
    )
    sources: tuple[Prompt, ...] = Field(
        default=(),
        max_length=1_000,
        title="Sources",
        description="What each prompt asks to be worked on, such as the sentence to translate: one per line, as many "
        "as prompts. Judges see it above the texts.",
        json_schema_extra=ui(fold=_DETAILS),
    )
    estimate: Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.-]*)?$", max_length=40)] = Field(
        default="",
        title="Scorer whose number models see with each text",
        json_schema_extra=ui(fold=_DETAILS, choices="scorer names"),
    )

    @model_serializer(mode="wrap")
    def _without_what_is_not_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Configs that show nothing with their texts are what they always were, byte for byte.
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
    def _has_a_source_for_each_prompt(self) -> ServedTextsConfig:
        if self.sources and len(self.sources) != len(self.prompts):
            raise ValueError(f"sources must be {len(self.prompts)}, one for each prompt, not {len(self.sources)}")
        return self

    @field_validator("prompts")
    @classmethod
    def _are_distinct(cls, prompts: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(prompts)) < len(prompts):
            raise ValueError("prompts must not list one twice")
        return prompts

    def build(self, model: LanguageModel) -> ServedTexts:
        """Return the space on the model that the config names."""
        return ServedTexts(model, self.prompts)


class ServedTexts(WrittenTexts):
    """Texts of a model that takes a request to turn tokens into words: what was stored of them is not asked again."""

    def decode(self, code: str) -> Writing:
        """Return the state that `encode` wrote.

        Raises:
            ValueError: the code is no state of this space.
        """
        return _checked(read_code(code), self.prompts, self.model.limit)


@dataclass(frozen=True)
class AbsentModel:
    """What is known of a model that is not there: T, the most tokens of a text."""

    limit: int


class RecordedTexts:
    """The same texts where there is no model: they can be read, and no new one written.

    Args:
        config: of the space.
    """

    def __init__(self, config: ServedTextsConfig) -> None:
        self._config = config
        self.model = AbsentModel(config.limit)

    def decode(self, code: str) -> Writing:
        """Return the state of a code; see `ServedTexts.decode`."""
        return _checked(read_code(code), self._config.prompts, self._config.limit)

    def is_close(self, one: Writing, other: Writing) -> bool:
        """True when the two are the same tokens under the same prompt."""
        return one == other

    def content(self, state: Writing) -> str:
        """Return the text."""
        return state.text


def _checked(writing: Writing, prompts: tuple[str, ...], limit: int) -> Writing:
    if writing.prompt not in prompts:
        raise ValueError(f"prompt must be one of the {len(prompts)} of this space, not {writing.prompt!r}")
    if not 1 <= len(writing.tokens) <= limit:
        raise ValueError(f"tokens must be 1 to {limit}, not {len(writing.tokens)}")
    return writing
