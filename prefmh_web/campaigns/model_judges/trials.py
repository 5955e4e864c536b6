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
from prefmh_web.campaigns.model_judges.frozen_judges import model_source, question_of, tells_p
from prefmh_web.endpoints.calls import Job, call, called
from prefmh_web.endpoints.client import Client
from prefmh_web.endpoints.errors import EndpointError
from prefmh_web.endpoints.judge_calls import compared, confines
from prefmh_web.endpoints.models import Endpoint
from sampler import judges as model_judges

_LARGEST_SEED = 2**31
_LONGEST_TEXT = 2_000


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


def slots_of(config: sampler.ChainConfig, place: int, replies: int) -> list[str]:
    """Return the names of the slots of a pair: one an order where p is told."""
    many = 1 if tells_p(model_source(config, place), config.rule) else replies
    return [f"{first}/{number}" for first in (0, 1) for number in range(many)]


def ask(
    config: sampler.ChainConfig,
    place: int,
    endpoint: Endpoint,
    prompt: model_judges.AnyPrompt,
    exhibits: Sequence[model_judges.Exhibit],
    slots: Sequence[str],
) -> tuple[dict[str, dict[str, Any]], EndpointError | None]:
    """Ask a judge of a config for some slots of a pair.

    Returns:
        The replies that came, as plain data by slot, and why others did not.
    """
    rng = np.random.default_rng()

    def job(first: int) -> Job[Reply]:
        shown, pair = [exhibits[first]], None
        if config.rule.evidence != "ratings":
            shown.append(exhibits[1 - first])
            pair = compared(config.judges[place].question, *shown)
        source, seed = model_source(config, place), int(rng.random() * _LARGEST_SEED)
        question = question_of(source, config.rule, endpoint, prompt.messages(*shown), seed=seed, compared=pair)

        async def hear(client: Client) -> Reply:
            heard = vars(await client.ask(question)).copy()
            del heard["identity"]
            heard["text"] = (heard["text"] or "")[:_LONGEST_TEXT]
            tokens, read_as, problem = heard.pop("tokens"), {}, ""
            try:
                read_as = _read(config.rule, source, heard["text"], tokens, first, confined=confines(endpoint))
            except ValueError as error:
                # A label that cannot be read, or p that is not told.
                problem = client.without_key(str(error))
            return Reply(first, problem=problem, **heard, **read_as)

        return hear

    found = called(call(endpoint, [job(int(slot[0])) for slot in slots]))
    came = {
        slot: asdict(outcome)
        for slot, outcome in zip(slots, found.outcomes, strict=True)
        if not isinstance(outcome, EndpointError)
    }
    return came, found.failure


def read(stored: Mapping[str, Mapping[str, Any]]) -> list[Reply]:
    """Return stored replies, in the order of their slots."""
    return [Reply(**stored[slot]) for slot in sorted(stored)]


def _read(
    rule: sampler.RuleConfig,
    source: sampler.ModelSource,
    text: str,
    tokens: Sequence[tuple[str, float]],
    first: int,
    *,
    confined: bool,
) -> dict[str, Any]:
    if tells_p(source, rule):
        return {"preference": model_judges.label_preference(tokens, source.temperature, confined=confined).first}
    if isinstance(rule, sampler.PointwiseConfig):
        return {"rating": model_judges.parse_rating(text, rule.scale)}
    return {"chosen": first if model_judges.parse_label(text) == "A" else 1 - first}
