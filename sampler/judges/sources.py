"""Who answers a judge's question: people in the browser, one named person, or a model behind an endpoint.

The part of a recipe that says so. Whoever answers, a vote is a vote: the rule knows no difference.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

EndpointName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120)]

# Which object stands first. "random" draws it for every vote; "balanced" shows each first in half of the votes; the
# other two fix it, and a pair of judges of equal budgets, one of each, cancels any constant lean (`rules.order`).
Order = Literal["random", "balanced", "proposal-first", "proposal-second"]


class PeopleSource(BaseModel):
    """People who have joined the campaign."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["people"] = "people"


class SeatSource(BaseModel):
    """One named person of a panel, by the number of their seat, from 1; see `panels.py`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["seat"] = "seat"
    seat: int = Field(ge=1)


class ModelSource(BaseModel):
    """A model, by the name of its endpoint.

    Args:
        temperature: of the replies, above 0: at 0 a judge's votes are copies of each other.
        votes: "sampled", one reply a vote, or "log-probabilities", drawn from the probability the model gives.
        first: whether people are asked about a pair only once this judge's votes are in.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["model"] = "model"
    endpoint: EndpointName
    temperature: float = Field(default=1.0, le=5)
    votes: Literal["sampled", "log-probabilities"] = "sampled"
    first: bool = False

    @field_validator("temperature")
    @classmethod
    def _above_zero(cls, temperature: float) -> float:
        if not temperature > 0:
            raise ValueError("must be above 0: at 0 a judge's votes are copies of each other")
        return temperature


Source = Annotated[PeopleSource | SeatSource | ModelSource, Field(discriminator="kind")]
