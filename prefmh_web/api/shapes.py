"""What the site tells programs of a campaign, for the API and for its client (`prefmh_web/client.py`).

Nothing of Django is needed to read it.
"""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field


class Figures(BaseModel):
    """What a campaign has brought, as the page Results says it."""

    samples: int = Field(description="States after the decided steps of the sampling phase")
    accepted: int = Field(description="Of the proposals that differed")
    differed: int = Field(description="Decided steps of all phases whose proposal differed from the current object")
    votes: int = Field(description="Those that counted, of all phases")
    late: int = Field(description="Votes that came too late to count")
    people: int = Field(description="Who gave a vote that counted")


class CampaignOut(BaseModel):
    """A campaign as it stands."""

    number: int = Field(description="As the address of its page has it")
    name: str
    owner: str
    status: Literal["draft", "running", "paused", "finished", "deleting"]
    objects: str = Field(description="What is compared: texts, markdown, molecules, images or audio")
    chains: int = Field(description="That are open; of a draft, those that a start opens")
    steps: int = Field(description="Of each chain")
    steps_decided: int = Field(description="Of all chains together")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    trouble: str = Field(description="Why a start failed, or why the campaign was paused; empty where neither is so")
    starting: str = Field(description="What a start that is under way is doing; empty otherwise")
