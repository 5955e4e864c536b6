"""One sample pair of a trial, asked of a model: each reply as a person may look at it, unreadable ones included.

A slot is one request: of a pair, which object stands first and which of the replies in this order it is; of a rating,
which object is rated. A reply is asked for once: what cannot be read is shown, and not asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import sampler
from prefmh_web.campaigns.model_judges.kinds import kind_of
from prefmh_web.endpoints.abilities import patiently
from prefmh_web.endpoints.calls import Job
from prefmh_web.endpoints.client import LABEL_TOKENS, Client
from prefmh_web.endpoints.errors import EndpointError
from prefmh_web.endpoints.judge_calls import compared, confines
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.outcomes import Heard
from prefmh_web.endpoints.servers import Question
from sampler import judges as model_judges

_LARGEST_SEED = 2**31


@dataclass(frozen=True)
class Reply:
    """What one request came to.

    Args:
        first: which of the two objects stood first, or was rated: 0 or 1.
        preference: the probability of a vote for what stood first, where the server told it.
        chosen: the object that the reply names.
        rating: of the object.
        problem: why it is no answer; empty if it is one.
        text, reasoning: as the model wrote them. The reasoning is never read as the answer.
    """

    first: int
    preference: float | None = None
    chosen: int | None = None
    rating: int | None = None
    problem: str = ""
    text: str = ""
    reasoning: str = ""
    seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def for_first_object(self) -> float | None:
        """How much it is for the first of the two objects, from 0 to 1; None where it is no answer."""
        for_first = self.preference
        if for_first is None and self.chosen is not None:
            for_first = float(self.chosen == self.first)
        if for_first is None:
            return None
        return for_first if self.first == 0 else 1.0 - for_first


@dataclass(frozen=True)
class Way:
    """How a judge of a config is tried."""

    config: sampler.ChainConfig
    place: int
    source: sampler.ModelSource
    prompt: model_judges.AnyPrompt

    @property
    def rates(self) -> bool:
        """Whether it rates one object at a time."""
        return self.config.rule.evidence == "ratings"

    @property
    def tells_p(self) -> bool:
        """Whether its server is asked for log-probabilities."""
        return self.source.votes == "log-probabilities" and not self.rates

    def slots(self, replies: int) -> list[str]:
        """Return the names of the slots of a pair: one an order where p is told."""
        return [f"{first}/{number}" for first in (0, 1) for number in range(1 if self.tells_p else replies)]


def ask(
    way: Way, endpoint: Endpoint, exhibits: Sequence[model_judges.Exhibit], slots: Sequence[str]
) -> tuple[dict[str, dict[str, Any]], EndpointError | None]:
    """Ask for some slots of a pair.

    Returns:
        The replies that came, as plain data by slot, and why others did not.
    """
    rng = np.random.default_rng()
    jobs = [_job(way, endpoint, exhibits, int(slot[0]), int(rng.random() * _LARGEST_SEED)) for slot in slots]
    called = patiently(endpoint, jobs)
    came = {
        slot: asdict(outcome)
        for slot, outcome in zip(slots, called.outcomes, strict=True)
        if not isinstance(outcome, EndpointError)
    }
    return came, called.failure


def read(stored: Mapping[str, Mapping[str, Any]]) -> list[Reply]:
    """Return stored replies, in the order of their slots."""
    return [Reply(**stored[slot]) for slot in sorted(stored)]


def _job(way: Way, endpoint: Endpoint, exhibits: Sequence[model_judges.Exhibit], first: int, seed: int) -> Job[Reply]:
    shown = [exhibits[first]] if way.rates else [exhibits[first], exhibits[1 - first]]
    messages = way.prompt.messages(*shown)
    choices = kind_of(way.config, way.place).choices(way.config.rule) if confines(endpoint) else ()
    pair = None if way.rates else compared(way.config.judges[way.place].question, shown[0], shown[1])
    question = Question(endpoint.model, messages, LABEL_TOKENS, way.source.temperature, seed, choices, compared=pair)
    if way.tells_p:
        question = Question(endpoint.model, messages, log_probabilities=True)

    async def hear(client: Client) -> Reply:
        heard = await client.heard(question)
        read_as, problem = {}, ""
        try:
            read_as = _read(way, heard, first, confined=confines(endpoint))
        except ValueError as error:
            # A label that cannot be read, or p that is not told.
            problem = client.without_key(str(error))
        return Reply(
            first,
            problem=problem,
            text=heard.text,
            reasoning=heard.reasoning,
            seconds=heard.seconds,
            tokens_in=heard.tokens_in,
            tokens_out=heard.tokens_out,
            **read_as,
        )

    return hear


def _read(way: Way, heard: Heard, first: int, *, confined: bool) -> dict[str, Any]:
    if way.tells_p:
        told = model_judges.label_preference(heard.tokens, way.source.temperature, confined=confined)
        return {"preference": told.first}
    if isinstance(way.config.rule, sampler.PointwiseConfig):
        return {"rating": model_judges.parse_rating(heard.text, way.config.rule.scale)}
    return {"chosen": first if model_judges.parse_label(heard.text) == "A" else 1 - first}
