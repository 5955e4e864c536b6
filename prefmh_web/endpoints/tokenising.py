"""Texts to token ids and back, by the server: what a model that writes needs besides its continuations."""

from __future__ import annotations

import sampler
from prefmh_web.endpoints import replies
from prefmh_web.endpoints.client import Client
from prefmh_web.endpoints.servers import Body, Dialect


async def prompt_ids(client: Client, messages: list[dict[str, str]]) -> sampler.Tokens:
    """Return a chat as token ids, its template applied, ready for the model's answer.

    Raises:
        EndpointError: the server does not do it.
    """
    if client.target.dialect == Dialect.LLAMA_CPP:
        templated = await client.post_beside("/apply-template", {"messages": messages}, replies.prompt_of)
        # As its chat completions do: the beginning of the sequence is added here, for the template leaves it out.
        body: Body = {"content": templated, "add_special": True, "parse_special": True}
    else:
        body = {"model": client.target.model, "messages": messages, "add_generation_prompt": True}
    return await client.post_beside("/tokenize", body, replies.token_ids_of)


async def text(client: Client, tokens: sampler.Tokens) -> str:
    """Return what some tokens say, as it can be stored.

    Raises:
        EndpointError: the server does not say.
    """
    if client.target.dialect == Dialect.LLAMA_CPP:
        name, body = "content", Body(tokens=list(tokens))
    else:
        name, body = "prompt", Body(model=client.target.model, tokens=list(tokens))
    return await client.post_beside("/detokenize", body, lambda reply: replies.text_of(reply, name, len(tokens)))


async def end_of_sequence(client: Client) -> sampler.Tokens:
    """Return the end-of-sequence token where the server names it; nothing where it does not.

    Raises:
        EndpointError: the server does not answer.
    """
    if client.target.dialect != Dialect.LLAMA_CPP:
        return ()
    name = (await client.get_beside("/props")).get("eos_token")
    if not name or not replies.is_sendable(name):
        return ()
    body = {"content": name, "add_special": False, "parse_special": True}
    return await client.post_beside("/tokenize", body, replies.token_ids_of)
