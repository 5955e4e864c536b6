"""Who answers a judge's question: people in the browser, one named person, or a model behind an endpoint.

The part of a config that says so. Whoever answers, a vote is a vote: the rule knows no difference.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    field_validator,
    model_serializer,
)

from sampler.judges.templates import PromptTemplate
from sampler.judges.vision import Vision

EndpointName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120)]
PanelistName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120)]

# Which object stands first. "random" draws it for every vote; "balanced" shows each first in half of the votes; the
# other two fix it, and a pair of judges of equal budgets, one of each, cancels any constant lean (`rules.order`).
Order = Literal["random", "balanced", "proposal-first", "proposal-second"]


class PeopleSource(BaseModel):
    """People who have joined the campaign."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["people"] = "people"


class PanelistSource(BaseModel):
    """One person of a panel, by their name, which nobody but the campaign's owner sees; see `panels.py`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["panelist"] = "panelist"
    name: PanelistName


class ModelSource(BaseModel):
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

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["model"] = "model"
    endpoint: EndpointName
    temperature: float = Field(default=1.0, le=5)
    votes: Literal["sampled", "log-probabilities"] = "sampled"
    first: bool = False
    law_unverified: bool = False
    reasons: bool = False
    vision: Vision | None = None
    prompt: PromptTemplate | None = None
    all_at_once: bool = False

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
