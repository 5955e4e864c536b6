"""OpenRouter, which passes a request on to one of several providers of a model.

https://openrouter.ai/docs/parameters and https://openrouter.ai/docs/features/provider-routing (as of 2026-11-23): a
field that a provider does not know is left out without a word, so nobody can say how it samples. With `sort` there is
no balancing between providers, and without fallbacks a request goes to the first of them or to none; which one it
was, the reply says, and here it is a part of the identity. `reasoning.effort` "none" switches thinking off, and
thoughts would come in a field of their own. An error can come with status 200:
https://openrouter.ai/docs/api-reference/errors (as of 2026-11-23).
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from prefmh_web.endpoints import waits
from prefmh_web.endpoints.dialects.server import Body, Server
from prefmh_web.endpoints.errors import RateLimited, ServerError
from prefmh_web.endpoints.identity import Identity, identity_of


class OpenRouter(Server):
    """OpenRouter's own API."""

    hosts = ("openrouter.ai",)
    plain: ClassVar[Body] = {"top_k": 0, "min_p": 0.0, "top_a": 0.0, "repetition_penalty": 1.0}
    not_thinking: ClassVar[Body] = {
        "provider": {"sort": "price", "allow_fallbacks": False},
        "reasoning": {"effort": "none"},
    }

    can_think = True
    # Of Anthropic's models, which it passes the budget on to.
    least_thinking = 1_024

    trials: ClassVar[Mapping[str, Body]] = {
        **Server.trials,
        "top_k": {"top_k": 1},
        "min_p": {"min_p": 1.0},
    }

    def thinking(self, most: int) -> Body:
        """Return the budget, for one provider without others in its place."""
        return self.not_thinking | {"reasoning": {"max_tokens": most}}

    def text(self, reply: Body) -> str | None:
        """Return the text of the one answer.

        Raises:
            RateLimited, ServerError: a provider failed after the reply had begun.
        """
        _raise_error_in(reply)
        return super().text(reply)

    def first_token(self, reply: Body) -> list[tuple[str, float]]:
        """Return the most probable first tokens, or raise as `text` does."""
        _raise_error_in(reply)
        return super().first_token(reply)

    def identity(self, reply: Body) -> Identity:
        """Return which model a reply is from, and behind which provider."""
        found = identity_of(reply)
        provider = identity_of({"model": reply.get("provider")}).model
        named = " ".join(filter(None, (provider, found.system_fingerprint)))
        return identity_of({"model": found.model, "system_fingerprint": named})

    def wait(self, headers: Mapping[str, str], reply: Any) -> float | None:
        """Return what its headers ask for, or those that it repeats of a provider."""
        metadata = _error_of(reply).get("metadata")
        repeated = metadata.get("headers") if isinstance(metadata, dict) else None
        named = (
            {str(name).lower(): str(value) for name, value in repeated.items()} if isinstance(repeated, dict) else {}
        )
        return waits.first_said(waits.retry_after(headers), waits.reset_at(headers), waits.reset_at(named))

    def is_filtered(self, status: int, reply: Any) -> bool:
        """Say whether a reply is the 403 of moderation, which gives its reasons."""
        metadata = _error_of(reply).get("metadata")
        return status == 403 and isinstance(metadata, dict) and "reasons" in metadata


def _raise_error_in(reply: Body) -> None:
    choices = reply.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    error = _error_of(reply) or _error_of(first)
    if error:
        reason = f"the provider failed with {error.get('code')!r:.20}: {error.get('message')!r:.200}"
        raise RateLimited(reason) if error.get("code") == 429 else ServerError(reason)


def _error_of(reply: Any) -> dict[str, Any]:
    error = reply.get("error") if isinstance(reply, dict) else None
    return error if isinstance(error, dict) else {}
