"""The log-probabilities that servers tell of the tokens that they draw.

They are of the law that a token was drawn from, at its temperature: a model's own logits divided by it. A server that
tells those of temperature 1 is found out before a campaign starts (`drawing_told.py`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from prefmh_web.endpoints import replies
from prefmh_web.endpoints.errors import BadReply, Unable
from prefmh_web.endpoints.replies import Count, Shape

_NOT_TOLD = "the server tells no log-probabilities of the tokens that it draws"
_BAD = "the log-probabilities of the drawn tokens are not in the form of the protocol"
# Sums and logarithms in single precision.
_ROUNDING = 1e-3


@dataclass(frozen=True)
class ToldDraw:
    """New tokens, and what was told of each; None where nothing was."""

    tokens: tuple[int, ...]
    log_probabilities: tuple[float | None, ...]


class _Probability(Shape):
    id: Count
    prob: Annotated[float, Field(ge=0, le=1 + _ROUNDING)]


class _LlamaCppTold(Shape):
    generation_settings: dict[replies.Text, Any]
    completion_probabilities: list[_Probability] | None = None


class _Rival(Shape):
    id: Count
    logprob: Annotated[float, Field(le=_ROUNDING)]


class _Rivals(Shape):
    top_logprobs: list[_Rival]


class _LlamaCppLaw(Shape):
    completion_probabilities: Annotated[list[_Rivals], Field(min_length=1, max_length=1)]


class _Logs(Shape):
    token_logprobs: list[float | None] | None = None
    top_logprobs: list[dict[replies.Text, float] | None] | None = None


class _Choice(Shape):
    logprobs: _Logs | None = None


class _Completion(Shape):
    choices: Annotated[list[_Choice], Field(min_length=1, max_length=1)]


def llama_cpp(reply: dict[str, Any], tokens: Sequence[int]) -> list[float | None]:
    """Return what llama.cpp says of some tokens: it leaves out those after which the text ends within a character.

    Which ones it leaves out is told by the ids that it names. Where several of one id could be meant, none is taken.
    """
    read = replies.read_as(_LlamaCppTold, reply, _BAD)
    if read.generation_settings.get("post_sampling_probs") is not True:
        raise Unable("the server tells no log-probabilities at the temperature of the draw; a newer llama.cpp does")
    # Of a text that ends within its first character it tells nothing.
    found = read.completion_probabilities or []
    ids = [entry.id for entry in found]
    first, last = _places(tokens, ids), [len(tokens) - 1 - place for place in _places(tokens[::-1], ids[::-1])][::-1]
    told: list[float | None] = [None] * len(tokens)
    for entry, one, other in zip(found, first, last, strict=True):
        if one == other and entry.prob > 0:
            told[one] = min(0.0, math.log(entry.prob))
    return told


def _places(tokens: Sequence[int], ids: Sequence[int]) -> list[int]:
    """Return the first places at which some ids stand among tokens, in their order."""
    places, place = [], -1
    for each in ids:
        try:
            place = tokens.index(each, place + 1)
        except ValueError:
            raise BadReply("the server tells log-probabilities of other tokens than it drew") from None
        places.append(place)
    return places


def llama_cpp_law(reply: dict[str, Any], temperature: float) -> Mapping[int, float]:
    """Return the log-probability of each token at a temperature, from those at temperature 1."""
    found = replies.read_as(_LlamaCppLaw, reply, _BAD).completion_probabilities[0].top_logprobs
    if abs(math.fsum(math.exp(rival.logprob) for rival in found) - 1) > _ROUNDING:
        raise Unable("the server tells log-probabilities of some tokens only")
    scaled = {rival.id: rival.logprob / temperature for rival in found}
    total = math.log(math.fsum(map(math.exp, scaled.values())))
    return {token: min(0.0, logit - total) for token, logit in scaled.items()}


def completions(reply: dict[str, Any], tokens: Sequence[int]) -> list[float | None]:
    """Return what a completions server says of some tokens."""
    logs = replies.read_as(_Completion, reply, _BAD).choices[0].logprobs
    if logs is None or logs.token_logprobs is None:
        raise Unable(_NOT_TOLD)
    if len(logs.token_logprobs) != len(tokens):
        raise BadReply(f"the server tells {len(logs.token_logprobs)} log-probabilities of {len(tokens)} tokens")
    if any(number is not None and not -math.inf < number < _ROUNDING for number in logs.token_logprobs):
        raise BadReply(_BAD)
    return [None if number is None else min(0.0, number) for number in logs.token_logprobs]


def completions_top(reply: dict[str, Any]) -> float:
    """Return the log-probability of the most probable first token."""
    logs = replies.read_as(_Completion, reply, _BAD).choices[0].logprobs
    if logs is None or not logs.top_logprobs or not logs.top_logprobs[0]:
        raise Unable(_NOT_TOLD)
    return max(logs.top_logprobs[0].values())
