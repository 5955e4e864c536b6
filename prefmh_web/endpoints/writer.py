"""The language models that write texts: behind an endpoint of a researcher's, or run by the site itself.

`ServedModel` is p0 over token sequences, written by a server: the `LanguageModel` of `sampler` over one endpoint.

Tokens go in and come out as ids. The prompt is turned into ids once, by the server, through its chat template; after
that nothing is tokenised again. One request a row, each with a seed from the row's own generator: rows of one request
share their random numbers on vLLM.

p0 is the server's distribution at the model's temperature. The server's weights, template and precision are part of it,
and nobody here can check that they stay the same while a campaign runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

import sampler
from prefmh_web.endpoints import replies
from prefmh_web.endpoints.calls import Job, Result, call, called
from prefmh_web.endpoints.client import Client
from prefmh_web.endpoints.errors import Unable
from prefmh_web.endpoints.local import local_model, model_names
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import Body, Dialect
from sampler.judges import checked_temperature

_LARGEST_SEED = 2**31


def writer_for(owner_id: int, space: sampler.ServedTextsConfig) -> sampler.LanguageModel:
    """Return the model that a config's space names.

    Args:
        owner_id: whose endpoint it is, unless the site runs the model itself.

    Raises:
        Unable: there is no model of that name, it cannot take and return token ids, or it cannot be run here.
    """
    asked = space.model_dump(include={"limit", "temperature", "system", "prompts"})
    if is_run_here(space):
        try:
            return local_model(space.model, **asked)
        except (ImportError, OSError, ValueError) as error:
            raise Unable(f"{space.model} cannot be run here: {error}") from error
    endpoint = Endpoint.objects.filter(owner=owner_id, name=space.model).first()
    if endpoint is None:
        raise Unable(f"there is no endpoint “{space.model}”")
    return ServedModel(endpoint, **asked)


def is_run_here(space: sampler.ServedTextsConfig) -> bool:
    """Return whether the model is one of the site's own, which the worker of the queue “gpu” runs."""
    return space.model in model_names()


class ServedModel:
    """A language model behind an endpoint that takes and returns token ids.

    Args:
        endpoint: where; its dialect must have token ids.
        limit: T, the most tokens of one text.
        temperature: part of p0.
        system: the system message that stands before every prompt; none if empty.
        prompts: those it may be asked with; any if empty.

    Raises:
        ValueError: the limit is not positive, or the temperature is too low.
        Unable: the server takes or returns no token ids.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        limit: int,
        temperature: float = 1.0,
        system: str = "",
        prompts: Sequence[str] = (),
    ) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit}")
        if Dialect(endpoint.dialect).server.writing is None or endpoint.can_token_ids is False:
            raise Unable(
                f"{endpoint.name} does not take and return token ids; a text tokenised again comes back changed, "
                "so it cannot write proposals"
            )
        self._endpoint, self.limit = endpoint, limit
        self._temperature, self._system = checked_temperature(temperature), system
        self.prompts = tuple(prompts)
        self._ids: dict[str, sampler.Tokens] = {}
        self._end: sampler.Tokens | None = None

    def continue_batch(
        self, rngs: Sequence[np.random.Generator], prompts: Sequence[str], prefixes: Sequence[sampler.Tokens]
    ) -> list[sampler.Tokens]:
        """Return one whole sequence for each row, beginning with the row's prefix, the rest drawn from p0 given both.

        Raises:
            ValueError: the lengths differ, a prompt is unknown, or a prefix leaves no room for another token.
            EndpointError: a row could not be drawn; none is returned then.
        """
        if not len(rngs) == len(prompts) == len(prefixes):
            raise ValueError(
                f"{len(rngs)} generators, {len(prompts)} prompts and {len(prefixes)} prefixes do not match"
            )
        if unknown := [prompt for prompt in prompts if self.prompts and prompt not in self.prompts]:
            raise ValueError(f"prompts must be among the model's own; it does not know {unknown}")
        if any(len(prefix) >= self.limit for prefix in prefixes):
            raise ValueError(f"a prefix must have fewer than {self.limit} tokens")
        # A campaign's plan lives long; where the server is, and how it fares, changes.
        self._endpoint.refresh_from_db()
        self._read_prompts(sorted(set(prompts) - set(self._ids)))
        rows = zip(rngs, prompts, prefixes, strict=True)
        return list(self._all([self._row(rng, self._ids[prompt], tuple(prefix)) for rng, prompt, prefix in rows]))

    def text(self, prompt: str, tokens: sampler.Tokens) -> str:
        """Return what the tokens say, in the server's words; raises as `texts` does."""
        return self.texts([prompt], [tokens])[0]

    def texts(self, prompts: Sequence[str], sequences: Sequence[sampler.Tokens]) -> list[str]:
        """Return what each row says, in the server's words; end-of-sequence tokens say nothing.

        As many requests at a time as the endpoint may have.

        Raises:
            ValueError: the lengths differ, a row has no token, or more than `limit`.
            EndpointError: the server does not say; none is returned then.
        """
        if len(prompts) != len(sequences):
            raise ValueError(f"{len(prompts)} prompts and {len(sequences)} sequences do not match")
        whole = [self._without_end(tokens) for tokens in sequences]
        # The empty text needs no request.
        said = iter(self._all([partial(words_of, tokens=tokens) for tokens in whole if tokens]))
        return [next(said) if tokens else "" for tokens in whole]

    def longest_prompt(self) -> tuple[int, int]:
        """Return which of its prompts has the most tokens, and how many; the system message and template included.

        Raises:
            EndpointError: the server does not say.
        """
        self._endpoint.refresh_from_db()
        self._read_prompts(sorted(set(self.prompts) - set(self._ids)))
        lengths = [len(self._ids[prompt]) for prompt in self.prompts]
        longest = max(range(len(lengths)), key=lengths.__getitem__)
        return longest, lengths[longest]

    def _without_end(self, tokens: sampler.Tokens) -> sampler.Tokens:
        if not 1 <= len(tokens) <= self.limit:
            raise ValueError(f"tokens must be 1 to {self.limit}, not {len(tokens)}")
        has_ended = len(tokens) < self.limit or tokens[-1] == self._end_of_sequence()
        return tokens[:-1] if has_ended else tokens

    def _end_of_sequence(self) -> int | None:
        """Return the end-of-sequence token where the server names it, which tells whether a longest text ended."""
        if self._end is None:
            self._end = self._all([end_of_sequence])[0]
        return self._end[0] if len(self._end) == 1 else None

    def _row(self, rng: np.random.Generator, prompt: sampler.Tokens, prefix: sampler.Tokens) -> Job[sampler.Tokens]:
        seed, left = int(rng.random() * _LARGEST_SEED), self.limit - len(prefix)

        async def draw(client: Client) -> sampler.Tokens:
            drawn = await client.complete((*prompt, *prefix), temperature=self._temperature, seed=seed, limit=left)
            return (*prefix, *drawn.tokens)

        return draw

    def _read_prompts(self, prompts: Sequence[str]) -> None:
        found = self._all([partial(prompt_ids, messages=self._chat(prompt)) for prompt in prompts])
        self._ids |= dict(zip(prompts, found, strict=True))

    def _chat(self, prompt: str) -> list[dict[str, str]]:
        system = [{"role": "system", "content": self._system}] if self._system else []
        return [*system, {"role": "user", "content": prompt}]

    def _all(self, jobs: Sequence[Job[Result]]) -> tuple[Result, ...]:
        found = called(call(self._endpoint, jobs))
        if found.failure:
            raise found.failure
        return found.results


async def prompt_ids(client: Client, messages: list[dict[str, str]]) -> sampler.Tokens:
    """Return a chat as token ids, its template applied, ready for the model's answer.

    Raises:
        EndpointError: the server does not do it.
    """
    if client.endpoint.dialect == Dialect.LLAMA_CPP:
        templated = await client.send("/apply-template", {"messages": messages}, replies.prompt_of, is_at_root=True)
        # As its chat completions do: the beginning of the sequence is added here, for the template leaves it out.
        body: Body = {"content": templated, "add_special": True, "parse_special": True}
    else:
        body = {"model": client.endpoint.model, "messages": messages, "add_generation_prompt": True}
    return await client.send("/tokenize", body, replies.token_ids_of, is_at_root=True)


async def words_of(client: Client, tokens: sampler.Tokens) -> str:
    """Return what some tokens say, as it can be stored.

    Raises:
        EndpointError: the server does not say.
    """
    if client.endpoint.dialect == Dialect.LLAMA_CPP:
        name, body = "content", Body(tokens=list(tokens))
    else:
        name, body = "prompt", Body(model=client.endpoint.model, tokens=list(tokens))

    def read(reply: Body) -> str:
        return replies.text_of(reply, name, len(tokens))

    return await client.send("/detokenize", body, read, is_at_root=True)


async def end_of_sequence(client: Client) -> sampler.Tokens:
    """Return the end-of-sequence token where the server names it; nothing where it does not.

    Raises:
        EndpointError: the server does not answer.
    """
    if client.endpoint.dialect != Dialect.LLAMA_CPP:
        return ()
    name = (await client.get("/props", is_at_root=True)).get("eos_token")
    if not name or not replies.is_sendable(name):
        return ()
    body = {"content": name, "add_special": False, "parse_special": True}
    return await client.send("/tokenize", body, replies.token_ids_of, is_at_root=True)
