"""Examining an endpoint before a campaign relies on it: can its votes have the law that they should have?

    1. the test that its page offers (`probe.py`): dialect and abilities
    2. how large its context is, where it says so
    3. whether it samples as it is told: nothing that changes probabilities but the temperature
    4. what its replies say they are from

A server truncates by default: llama.cpp by min-p, others as the model's own configuration says. All of that is switched
off with every request (`dialects`), which only helps where the server is of a kind that is known to have these
fields. So sampled votes and ratings need a known kind, and replies that do not speak against it.

An endpoint that only writes texts needs less. What was seen is stored with the endpoint.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import httpx

from prefmh_web.endpoints.calls import Called, Result, call
from prefmh_web.endpoints.client import Client
from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.errors import BadReply, Busy, EndpointError, NeedsAttention, ServerError, Unable
from prefmh_web.endpoints.identity import Identity
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.probe import probe
from sampler.judges import truncation_in

Found = TypeVar("Found")

_ASK = [{"role": "user", "content": "Say any one word, whichever comes to your mind."}]
# The highest temperature that every server takes; the higher, the fewer requests show a truncation.
_HOT = 2.0
_REPLIES = 64
# Another campaign may have all of the endpoint's requests under way; each attempt waits two seconds for one.
_MOST_ATTEMPTS = 60
_DOCUMENTED: dict[tuple[str, str], str] = {
    (
        "api.openai.com",
        Dialect.OPENAI,
    ): "OpenAI documents temperature, top_p and penalties as all that shapes its sampling; the request "
    "switches the last two off"
}
_UNKNOWN = (
    "nobody can say whether a server of this kind truncates: it has no fields to switch that off. Serve the model with "
    "vLLM, llama.cpp, SGLang, Ollama or TGI, let votes be drawn from log-probabilities, or accept at the question that "
    "the sampling cannot be verified"
)
_THINKS = (
    "its model thinks before it answers, and nobody can say what law its answers then have. Empty “Thinking tokens at "
    "most”, or accept at the question that the sampling cannot be verified"
)


@dataclass(frozen=True)
class Examination:
    """What was seen of an endpoint, or why that is not known.

    Args:
        failure: None if the server answered as it should.
        identities: what its replies said they are from.
    """

    failure: EndpointError | None
    identities: tuple[Identity, ...] = ()


def examine(endpoint: Endpoint) -> Examination:
    """Examine an endpoint, and store with it what was seen. Takes some eighty short requests and no transaction."""
    report = _unless_busy(lambda: probe(endpoint), lambda report: report.failure)
    if report.failure is not None:
        return Examination(report.failure)
    looked = patiently(endpoint, [_look])
    if looked.failure is not None:
        return Examination(looked.failure)
    seen = looked.results[0]
    if endpoint.thinking_tokens is not None:
        # The first token is that of a thought, and says nothing of a label's law.
        seen = replace(seen, listed=())
    hot = patiently(endpoint, [_reply_job(_HOT, seed) for seed in range(_REPLIES)]) if seen.listed else Called(())
    asked = hot
    if not hot.outcomes or isinstance(hot.failure, NeedsAttention):
        # Nothing can be seen of its sampling; some servers take no temperature above 1.
        asked = patiently(endpoint, [_reply_job(1.0, seed) for seed in range(2)])
    if asked.failure is not None:
        return Examination(asked.failure)
    is_plain, why = _law(endpoint, seen, [reply for reply, _ in hot.results] if asked is hot else [])
    endpoint.samples_plainly, endpoint.sampling_words = is_plain, why[:300]
    endpoint.context_tokens, endpoint.law_is_untold = seen.context, why in (_UNKNOWN, _THINKS)
    endpoint.save(update_fields=("samples_plainly", "sampling_words", "context_tokens", "law_is_untold"))
    return Examination(None, tuple(sorted({identity for _, identity in asked.results})))


def examine_writer(endpoint: Endpoint) -> Examination:
    """Look whether an endpoint that writes texts is there, and how large its context is.

    That it takes and returns token ids, and samples as it is told, each text shows again (`replies.py`).
    """
    if endpoint.can_token_ids is False:
        return Examination(
            Unable("its last test saw that it does not take and return token ids; if it does now, test it")
        )
    if endpoint.can_token_ids is None and not Dialect(endpoint.dialect).has_token_ids:
        report = _unless_busy(lambda: probe(endpoint), lambda report: report.failure)
        if report.failure is not None:
            return Examination(report.failure)
    looked = patiently(endpoint, [_context_of])
    if looked.failure is not None:
        return Examination(looked.failure)
    endpoint.context_tokens = looked.results[0]
    endpoint.save(update_fields=("context_tokens",))
    return Examination(None)


@dataclass(frozen=True)
class _Seen:
    context: int | None
    listed: Sequence[tuple[str, float]]
    refusal: str


def _look(client: Client) -> _Seen:
    """Ask for the context's size, the likeliest tokens, and, of llama.cpp, which settings it uses."""
    context, listed, refusal = _context_of(client), [], ""
    try:
        listed = client.first_token(_ASK)
    except (NeedsAttention, BadReply, ServerError):
        # It answered a plain question a moment ago: it has no log-probabilities.
        listed = []
    if client.target.dialect == Dialect.LLAMA_CPP:
        try:
            client.complete([10, 20, 30], temperature=_HOT, seed=1, limit=1)
        except Unable as error:
            refusal = error.reason
        except (NeedsAttention, BadReply, ServerError):
            # Behind a proxy its own paths may be out of reach; its chat is not.
            refusal = ""
    return _Seen(context, listed, refusal)


def _law(endpoint: Endpoint, seen: _Seen, replies: Sequence[str | None]) -> tuple[bool, str]:
    """Return whether the server samples plainly, and why."""
    if seen.refusal:
        return False, seen.refusal
    if truncation := truncation_in(seen.listed, replies, _HOT):
        return False, f"the server truncates: at temperature {_HOT:g} {truncation}"
    if endpoint.thinking_tokens is not None:
        return False, _THINKS
    documented = _DOCUMENTED.get((httpx.URL(endpoint.base_url).host, endpoint.dialect))
    because = documented or Dialect(endpoint.dialect).server.why_plain
    return (True, because) if because else (False, _UNKNOWN)


def _reply_job(temperature: float, number: int) -> Callable[[Client], tuple[str | None, Identity]]:
    # Far apart: servers use neighbouring seeds for other things.
    seed = 7_919 * number + 104_729
    return lambda client: client.signed_chat(_ASK, temperature=temperature, seed=seed, max_tokens=1)


def _context_of(client: Client) -> int | None:
    """Return how many tokens a prompt and its reply may have together; None where the server does not say."""
    readers: tuple[tuple[Callable[[], dict[str, Any]], Callable[[dict[str, Any]], Any]], ...] = (
        (lambda: client.get_beside("/props"), lambda found: found["default_generation_settings"]["n_ctx"]),
        (lambda: client.get("/models"), lambda found: _model_in(found, client.target.model)["max_model_len"]),
        (lambda: client.get_beside("/get_server_info"), lambda found: found["context_length"]),
    )
    for ask, read in readers:
        try:
            size = read(ask())
        except (NeedsAttention, BadReply, ServerError, KeyError, TypeError, IndexError):
            continue
        # What no server has, and no column holds, is as good as not said.
        if type(size) is int and 0 < size < 2**31:
            return size
    return None


def _model_in(found: dict[str, Any], name: str) -> dict[str, Any]:
    models = found["data"]
    return next((model for model in models if model["id"] == name), models[0])


def patiently(endpoint: Endpoint, jobs: Sequence[Callable[[Client], Result]]) -> Called[Result]:
    """Run jobs against an endpoint as `call` does, but wait longer for its requests under way."""
    return _unless_busy(lambda: call(endpoint, jobs), lambda called: called.failure)


def _unless_busy(attempt: Callable[[], Found], failure_of: Callable[[Found], EndpointError | None]) -> Found:
    """Return what an attempt came to, once the endpoint had room for it, or after the last."""
    for _ in range(_MOST_ATTEMPTS - 1):
        found = attempt()
        if not isinstance(failure_of(found), Busy):
            return found
    return attempt()
