"""The part of a setup that says how people come, how much each gives, and what they get at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, StringConstraints, ValidationError

import sampler
from prefmh_web.participants.models import Outcome, Pay
from prefmh_web.participants.protocol import Protocol
from prefmh_web.recruiters import ANYBODY, RECRUITERS

Language = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}(-[a-zA-Z0-9]{2,8})?$")]
# Written as a number: what is in the database has two places.
Money = Annotated[Decimal, Field(ge=0, decimal_places=2), PlainSerializer(float, return_type=float)]
_Code = Annotated[str, StringConstraints(strip_whitespace=True, max_length=100)]
_Consent = Annotated[str, StringConstraints(strip_whitespace=True, max_length=20_000)]
_Minutes = Annotated[int, Field(ge=5, le=10_000)]
_Count = Annotated[int, Field(ge=1, le=1_000_000)]


class Part(BaseModel):
    """A part of a setup: what it does not know is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class EarlierCampaign(Part):
    """A campaign of the same owner on the same site, whose people may not take part.

    Args:
        number: the one in its address.
        name: so that no other campaign of that number, on another site, is taken for it.
    """

    number: int = Field(ge=1, le=2**62)
    name: str = Field(max_length=120)


class People(Part):
    """How people come to a campaign, and what it asks of them beside votes. No person is named here.

    Args:
        recruiter: which platform sends them.
        parameter: the name of the parameter with the person's id, for links of the researcher's own.
        checks_ids: an id that does not look like the recruiter's is not let in.
        votes_each: after so many votes somebody's part is complete.
        places: so many people can take part.
        budget: so many answers can be given.
        place_pay: what the platform pays a person in full; only shown.
        currency: of `place_pay`.
        most_minutes: how long the platform gives somebody.
        most_active_minutes: after so many minutes before pairs somebody's part is complete.
        absent_minutes: who is away for so long loses their place.
        most_a_minute: more votes within a minute are a flag.
        way_back: the address to return to.
        codes: by how a part ended, the completion code.
        pay: by how a part ended, what is paid where that is not the usual.
        refused: people of these campaigns may not take part.
        consent: what people agree to first, in Markdown.
        protocol: what is asked of each person beside votes.
    """

    recruiter: str = Field(default=ANYBODY.name, json_schema_extra={"enum": list(RECRUITERS)})
    parameter: str = Field(default="", max_length=64)
    checks_ids: bool = True
    votes_each: _Count | None = None
    places: _Count | None = None
    budget: int | None = Field(default=None, ge=1, le=1_000_000_000)
    place_pay: Annotated[Money, Field(le=99_999)] | None = None
    currency: str = Field(default="", max_length=8)
    most_minutes: _Minutes | None = None
    most_active_minutes: int | None = Field(default=None, ge=1, le=10_000)
    absent_minutes: _Minutes | None = None
    most_a_minute: int | None = Field(default=None, ge=1, le=1000)
    way_back: str = Field(default="", max_length=500)
    codes: Mapping[Outcome, _Code] = {}
    pay: Mapping[Outcome, Pay] = {}
    refused: tuple[EarlierCampaign, ...] = Field(default=(), max_length=1000)
    consent: _Consent = ""
    protocol: Protocol = Protocol()


def problems_of(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the place and the reason of what a file could not say of how people come: the form must not, either.

    Args:
        fields: of a `Recruitment`.
    """
    same = {name: fields[name] for name in fields if name in People.model_fields}
    # An outcome whose code or pay is empty has none of its own.
    chosen = {name: {key: each for key, each in fields[name].items() if each} for name in ("codes", "pay")}
    described = same | chosen
    try:
        People.model_validate(described)
    except ValidationError as error:
        yield from ((problem.path, problem.message) for problem in sampler.problems_in(error, described))
