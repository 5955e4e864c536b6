"""Who answers a judge's question: people in the browser, one named person, or a model behind an endpoint.

The part of a config that says so. Whoever answers, a vote is a vote: the rule knows no difference.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    field_validator,
    model_serializer,
)

from sampler.declared import Declared, ui
from sampler.judges.templates import PromptTemplate
from sampler.judges.vision import Vision

_ANSWERS, _PICTURES, _PROMPT = "How the model answers", "Pictures and molecules", "Prompt"
_WAYS = {
    "sampled": "One reply per vote",
    "log-probabilities": "Drawn from log-probabilities: one request for each order",
}
EndpointName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120)]
PanelistName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120)]

# Which object stands first. "random" draws it for every vote; "balanced" shows each first in half of the votes; the
# other two fix it, and a pair of judges of equal budgets, one of each, cancels any constant lean (`rules.order`).
Order = Literal["random", "balanced", "proposal-first", "proposal-second"]


class PeopleSource(Declared):
    """People who have joined the campaign."""

    model_config = ConfigDict(title="People")

    kind: Literal["people"] = "people"


class PanelistSource(Declared):
    """One person of a panel, by their name, which nobody but the campaign's owner sees; see `panels.py`."""

    model_config = ConfigDict(title="One person of a panel")

    kind: Literal["panelist"] = "panelist"
    # A number stands in its place wherever others see it: see `panels.unnamed`.
    name: PanelistName = Field(title="Name")


class ModelSource(Declared):
    """A model, by the name of its endpoint.

    Args:
        temperature: of the replies, above 0: at 0 a judge's votes are copies of each other.
        votes: "sampled", one reply a vote, or "log-probabilities", drawn from the probability the model gives.
        first: whether people are asked about a pair only once this judge's votes are in.
        law_unverified: whether votes are accepted although nobody can tell that nothing but the temperature changes the
            law they are sampled from, as with most hosted models.
        reasons: whether what it thinks before a sampled vote is kept beside the vote. It is no part of the answer.
        vision: how pictures are shown to it; as they are if None.
        prompt: the researcher's own words; without it, those of this program.
        all_at_once: whether all N votes on a pair are asked for at once. Otherwise no more are under way than can be
            needed. The verdict is the same: votes that come after it are kept and do not count.
    """

    model_config = ConfigDict(title="A model")

    kind: Literal["model"] = "model"
    endpoint: EndpointName = Field(title="Which model?", json_schema_extra=ui(choices="endpoints"))
    temperature: float = Field(
        default=1.0,
        le=5,
        title="Temperature",
        description="Must be above 0: at 0 all votes of the model on a pair would be the same.",
        json_schema_extra=ui(fold=_ANSWERS),
    )
    votes: Literal["sampled", "log-probabilities"] = Field(
        default="sampled", title="How the model votes", json_schema_extra=ui(fold=_ANSWERS, labels=_WAYS)
    )
    first: bool = Field(
        default=False,
        title="Ask before people",
        description="People see only the pairs that the model does not decide.",
        json_schema_extra=ui(fold=_ANSWERS),
    )
    law_unverified: bool = Field(
        default=False,
        title="Accept a model whose sampling cannot be verified",
        description="Needed for one reply per vote from most hosted models and all that reason: they may truncate. The "
        "campaign's page and record then say “distribution of the sampler not verified”.",
        json_schema_extra=ui(fold=_ANSWERS),
    )
    reasons: bool = Field(
        default=False,
        title="Keep the model’s reasons",
        description="What a model thinks before it replies, where its server says it: the first 2,000 characters "
        "beside each vote, on the campaign’s page and in reasons.csv. There are none with log-probabilities.",
        json_schema_extra=ui(fold=_ANSWERS),
    )
    vision: Vision | None = Field(default=None, title=_PICTURES, json_schema_extra=ui(fold=_PICTURES))
    prompt: PromptTemplate | None = Field(
        default=None,
        title=_PROMPT,
        description="Leave the fields empty to ask in this program’s words.",
        json_schema_extra=ui(fold=_PROMPT, widget="prompt"),
    )
    all_at_once: bool = Field(
        default=False,
        title="Ask for all votes at once",
        description="As fast as possible: a step takes about the time of one request, and votes that come after the "
        "outcome is settled are wasted. Otherwise only as many are asked for as can be needed, in several rounds. "
        "The outcome is the same.",
        json_schema_extra=ui(fold=_ANSWERS),
    )

    @model_serializer(mode="wrap")
    def _without_what_is_not_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        optional = ("law_unverified", "reasons", "vision", "prompt", "all_at_once")
        return {name: value for name, value in fields.items() if value or name not in optional}

    @field_validator("temperature")
    @classmethod
    def _above_zero(cls, temperature: float) -> float:
        if not temperature > 0:
            raise ValueError("must be above 0: at 0 a judge's votes are copies of each other")
        return temperature


Source = Annotated[PeopleSource | PanelistSource | ModelSource, Field(discriminator="kind")]
