"""The space of texts that a language model writes: p0 is the model's distribution, given the chain's prompt.

A text is a sequence of tokens, 1 to `limit` of them, with the model's end-of-sequence token as the last one or else
exactly `limit` tokens long. So no whole sequence is the beginning of another one, which the suffix kernel relies on.
(A grammar needs no end-of-sequence token: its sequence ends where its derivation does, which comes to the same.)

p0(x) = prod_t p(x_t | prompt, x_1 .. x_{t-1}), temperature and any truncation included: the temperature belongs to the
model, is given when it is made, and must be the same for every call, or the chain targets something else than p0.

A chain keeps its prompt from first to last. The record keeps the tokens beside the text, because the suffix kernel
cuts between tokens and no tokeniser gives back the tokens that a text was made of.

Texts may come from the grammar of this package, or from a model outside it, behind an endpoint or loaded by the
application. That model the config names; whoever builds the plan brings it. Nobody with the record alone can draw its
texts again, so a replay takes them as they stand (`AbsentModel`) and checks what follows from them.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal, Protocol, cast

import numpy as np
from pydantic import (
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from sampler.chain import Tokens
from sampler.declared import EACH_ONCE, Declared, Sparse, ui
from sampler.spaces.catalog import ContextColumn
from sampler.spaces.story_grammar import STORY_SCENARIOS, story_openings


class LanguageModel(Protocol):
    """p0 over token sequences, given a prompt: what a grammar, a model on a GPU and a server have in common.

    A model for which what many sequences say costs less than one after another, such as a server, may have a method
    `texts(prompts, sequences)`, which returns what `text` gives for each row.
    """

    @property
    def limit(self) -> int:
        """T, the most tokens of one text; the same for every prompt."""
        ...

    @property
    def prompts(self) -> tuple[str, ...]:
        """The prompts it can be asked with; empty if it takes any."""
        ...

    def continue_batch(
        self, rngs: Sequence[np.random.Generator], prompts: Sequence[str], prefixes: Sequence[Tokens]
    ) -> list[Tokens]:
        """Return one whole sequence for each row, beginning with the row's prefix, the rest drawn from p0 given both.

        Each row draws from its own generator and from nothing else, so that a row comes out the same in any batch.

        Args:
            rngs, prompts, prefixes: of one length. A prefix has fewer tokens than its sequence; () is a fresh draw.

        Raises:
            ValueError: the lengths differ, a prompt is unknown, or a prefix is not the beginning of any text.
        """
        ...

    def text(self, prompt: str, tokens: Tokens) -> str:
        """Return what the tokens say.

        Raises:
            ValueError: they are no whole sequence of this model.
        """
        ...


_DETAILS = "Scenarios and temperature"


@dataclass(frozen=True)
class Beginning:
    """The first tokens of a text and the prompt it answers; none for a fresh one."""

    prompt: str
    tokens: Tokens = ()


@dataclass(frozen=True)
class Writing:
    """A text, the tokens it was written in, and the prompt it answers."""

    __pydantic_config__ = ConfigDict(extra="forbid")
    prompt: str
    tokens: Tokens
    text: str

    def beginning(self, kept: int) -> Beginning:
        """Return its first tokens."""
        return Beginning(self.prompt, self.tokens[:kept])


_CODE = TypeAdapter(Writing)


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
        self.model, self.prompts = model, chosen

    def start(self, rng: np.random.Generator, chain: int) -> Writing:
        """Draw x^(0) ~ p0 under prompt number `chain` modulo the number of prompts."""
        return self.start_batch([rng], [chain])[0]

    def start_batch(self, rngs: Sequence[np.random.Generator], chains: Sequence[int]) -> list[Writing]:
        """Return what `start` gives for each row, by one call of the model."""
        return self.write(rngs, [Beginning(self.prompts[chain % len(self.prompts)]) for chain in chains])

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
        written = self.model.continue_batch(rngs, prompts, [beginning.tokens for beginning in beginnings])
        many: Callable[..., list[str]] | None = getattr(self.model, "texts", None)
        texts = many(prompts, written) if many else list(map(self.model.text, prompts, written))
        return [Writing(*row) for row in zip(prompts, written, texts, strict=True)]

    def is_close(self, one: Writing, other: Writing) -> bool:
        """True when the two are the same tokens under the same prompt."""
        return one == other

    def content(self, state: Writing) -> str:
        """Return the text."""
        return state.text

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
        if writing.prompt not in self.prompts:
            raise ValueError(f"prompt must be one of the {len(self.prompts)} of this space, not {writing.prompt!r}")
        if self.model.text(writing.prompt, writing.tokens) != writing.text:
            raise ValueError("text must be what the tokens say; they were written by another model or version")
        return writing


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
    scenarios: Annotated[tuple[int, ...], EACH_ONCE] = Field(
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
        return _CODE.validate_json(code, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise ValueError(f"a text's code must be JSON of prompt, tokens and text: {where}: {first['msg']}") from error


MAX_TOKENS = 4_096
_SERVED_DETAILS = "System message, temperature, sources and estimates"
SOURCE: Final = ContextColumn(column="source", label="Source")
ESTIMATE: Final = ContextColumn(column="estimate", label="Quality estimate")
Prompt = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4_000)]


class ServedTextsConfig(Sparse):
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

    Neither is part of p0. No distribution depends on them but the judges'.
    """

    model_config = ConfigDict(
        title="Texts written by a language model",
        json_schema_extra=ui(help="A model of yours writes texts to your prompts, and writes their ends anew."),
    )
    unwritten: ClassVar[tuple[str, ...]] = ("sources", "estimate")

    objects: ClassVar[str] = "texts"
    """Which kind of object it makes."""
    kind: Literal["model-texts"] = "model-texts"
    model: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120)] = Field(
        title="Model",
        description="Only servers that take and return token ids are listed (vLLM, llama.cpp), because a text can "
        "change when it is tokenised again.",
        json_schema_extra=ui(choices="writers"),
    )
    prompts: Annotated[tuple[Prompt, ...], EACH_ONCE] = Field(
        min_length=1,
        max_length=1_000,
        title="Prompts",
        description="One per line. The chains use them in turn; each chain keeps its own.",
    )
    system: Annotated[str, StringConstraints(strip_whitespace=True, max_length=4_000)] = Field(
        default="", title="System message", json_schema_extra=ui(fold=_SERVED_DETAILS, widget="text")
    )
    limit: int = Field(default=128, ge=1, le=MAX_TOKENS, title="Most tokens of a text")
    temperature: float = Field(
        default=1.0,
        ge=0.1,
        le=5,
        title="Temperature",
        description="Part of p0.",
        json_schema_extra=ui(fold=_SERVED_DETAILS),
    )
    sources: tuple[Prompt, ...] = Field(
        default=(),
        max_length=1_000,
        title="Sources",
        description="What each prompt asks to be worked on, such as the sentence to translate: one per line, as many "
        "as prompts. Judges see it above the texts.",
        json_schema_extra=ui(fold=_SERVED_DETAILS),
    )
    estimate: Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.-]*)?$", max_length=40)] = Field(
        default="",
        title="Scorer whose number models see with each text",
        json_schema_extra=ui(fold=_SERVED_DETAILS, choices="scorer names"),
    )

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

    def build(self, model: LanguageModel | None) -> ServedTexts:
        """Return the space on the model that the config names; without it, its texts can be read alone."""
        there = cast(LanguageModel, AbsentModel(self.limit)) if model is None else model
        return ServedTexts(there, self.prompts)


class ServedTexts(WrittenTexts):
    """Texts of a model that takes a request to turn tokens into words: what was stored of them is not asked again."""

    def decode(self, code: str) -> Writing:
        """Return the state that `encode` wrote.

        Raises:
            ValueError: the code is no state of this space.
        """
        writing, limit = read_code(code), self.model.limit
        if writing.prompt not in self.prompts:
            raise ValueError(f"prompt must be one of the {len(self.prompts)} of this space, not {writing.prompt!r}")
        if not 1 <= len(writing.tokens) <= limit:
            raise ValueError(f"tokens must be 1 to {limit}, not {len(writing.tokens)}")
        return writing


@dataclass(frozen=True)
class AbsentModel:
    """What is known of a model that is not there: its texts can be read, and no new one can be written."""

    limit: int
    prompts: tuple[str, ...] = ()
