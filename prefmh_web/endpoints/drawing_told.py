"""Drawing tokens with their log-probabilities, and a look beforehand whether a server tells those of the draw."""

from __future__ import annotations

import math
from collections.abc import Sequence

import sampler
from prefmh_web.endpoints import tokenising
from prefmh_web.endpoints.client import Client
from prefmh_web.endpoints.dialects import Body
from prefmh_web.endpoints.errors import Unable
from prefmh_web.endpoints.told_draws import ToldDraw

_SEED = 104_729
# Of the look: some tokens of a reply whose first one is not certain, and two temperatures far from each other.
_ASK = [{"role": "user", "content": "Say any one word, whichever comes to your mind."}]
_FEW, _HOT, _COOL = 4, 2.0, 0.5
# Of one log-probability, told twice. Half precision changes hundredths of it; two temperatures, several tenths.
_CLOSE = 0.1


def draw(
    client: Client, prompt: Sequence[int], *, temperature: float, seed: int, limit: int, end: int | None
) -> tuple[sampler.Tokens, sampler.LogProbabilities]:
    """Return the tokens that follow a prompt, and the log-probability with which each was drawn.

    Those that the server leaves out are asked for one by one.

    Args:
        end: the end-of-sequence token; None where the server does not name it.

    Raises:
        EndpointError: as `Client.complete` does; `Unable` where the server does not tell one of them.
    """
    drawn = _told(client, prompt, temperature=temperature, seed=seed, limit=limit)
    told = []
    for place, number in enumerate(drawn.log_probabilities):
        if number is None:
            before, token = (*prompt, *drawn.tokens[:place]), drawn.tokens[place]
            number = _asked(client, before, token, temperature=temperature, end=end)
        told.append(number)
    return drawn.tokens, tuple(told)


def check(client: Client, *, temperature: float, end: int | None) -> None:
    """See that a server tells the log-probabilities of its draws, and that they are those of the temperature.

    Raises:
        EndpointError: it does not; the reason says what to do about it.
    """
    prompt = tokenising.prompt_ids(client, _ASK)
    if client.writer.leaves_out:
        _check_against_the_law(client, prompt, temperature, end)
        return
    other = _COOL if temperature > 1 else _HOT
    tops = [_most_probable(client, prompt, each) for each in (temperature, other)]
    if temperature != 1 and abs(tops[0] - tops[1]) < _CLOSE:
        raise Unable(
            f"at temperature {temperature:g} it tells the same log-probabilities as at {other:g}, so not those that "
            "tokens are drawn with; start vLLM with --logprobs-mode processed_logprobs, or set the temperature to 1"
        )
    draw(client, prompt, temperature=temperature, seed=_SEED, limit=_FEW, end=end)


def _check_against_the_law(client: Client, prompt: Sequence[int], temperature: float, end: int | None) -> None:
    drawn = _told(client, prompt, temperature=temperature, seed=_SEED, limit=_FEW)
    for place, number in enumerate(drawn.log_probabilities):
        before, token = (*prompt, *drawn.tokens[:place]), drawn.tokens[place]
        asked = _asked(client, before, token, temperature=temperature, end=end)
        if number is not None and abs(asked - number) > _CLOSE:
            raise Unable(f"it tells two log-probabilities of one token, {number:.4f} and {asked:.4f}")


def _most_probable(client: Client, prompt: Sequence[int], temperature: float) -> float:
    body = _body(client, prompt, temperature=temperature, seed=_SEED, limit=1)
    return client.completed(body, client.writer.most_probable)


def _asked(client: Client, prompt: Sequence[int], token: int, *, temperature: float, end: int | None) -> float:
    """Return the log-probability of a token after a prompt, whatever is drawn."""
    if end is None or not client.writer.leaves_out:
        raise Unable("the server left out the log-probability of a token that it drew")
    body = client.writer.asking_the_law(client.target.model, prompt, end)
    law = client.completed(body, lambda reply: client.writer.law(reply, temperature))
    if not math.isfinite(law.get(token, -math.inf)):
        raise Unable("the server tells no log-probability of a token that it drew")
    return law[token]


def _told(client: Client, prompt: Sequence[int], *, temperature: float, seed: int, limit: int) -> ToldDraw:
    server = client.writer

    def read(reply: Body) -> ToldDraw:
        drawn = server.continuation(reply, prompt, limit=limit, temperature=temperature)
        return ToldDraw(drawn.tokens, tuple(server.told(reply, drawn.tokens)))

    return client.completed(_body(client, prompt, temperature=temperature, seed=seed, limit=limit), read)


def _body(client: Client, prompt: Sequence[int], *, temperature: float, seed: int, limit: int) -> Body:
    server = client.writer
    return (
        server.completion(client.target.model, prompt, limit=limit, temperature=temperature, seed=seed) | server.telling
    )
