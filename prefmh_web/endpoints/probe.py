"""The one-click test of an endpoint: what it can do, seen by trying it.

    vary                different seeds give different replies (else all votes would be copies of one)
    confine             a reply confined to two unlikely words is one of them
    log-probabilities   the first token comes with those of its rivals
    token ids           a chat becomes ids, ids go in and come out, at plain temperature sampling, and become a text
    images              a picture changes how many tokens the server reads, and what is in it does not

What was seen is kept with the endpoint; what this test did not see is null, whatever an earlier one saw. The dialect is
found out first, from what each kind of server has and the others have not.
"""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

import httpx
import numpy as np
from django.utils import timezone
from PIL import Image

from prefmh_web.endpoints import breaker, tokenising
from prefmh_web.endpoints.calls import Called, call
from prefmh_web.endpoints.client import Client
from prefmh_web.endpoints.dialects import Dialect, dialect_of_host
from prefmh_web.endpoints.errors import (
    AddressRefused,
    BadReply,
    Busy,
    CircuitOpen,
    EndpointError,
    KeyMissing,
    NeedsAttention,
    Refused,
    ServerError,
    Stopped,
    TimedOut,
    Unreachable,
)
from prefmh_web.endpoints.models import Endpoint, as_it_was
from sampler.judges import Exhibit, Picture, pairwise_messages

_ASK = [{"role": "user", "content": "Write one short sentence about the sea."}]
# No model answers with one of these on its own.
_UNLIKELY = ("QX7", "ZJ3")
_SEEDS = (104_729, 1_299_709, 15_485_863, 179_424_673)
_HOT = 1.5
# Tokens by which two prompts may differ that say the same.
_A_FEW = 8


@dataclass(frozen=True)
class Attempt:
    """What the server answered to the question whether it is of one kind."""

    path: str
    words: str


@dataclass(frozen=True)
class Finding:
    """What one check saw; `passed` is None where it could not be tried."""

    check: str
    passed: bool | None
    words: str


@dataclass(frozen=True)
class Report:
    """What the test of an endpoint saw, what it took, and why it ended early if it did."""

    dialect: str
    findings: tuple[Finding, ...]
    failure: EndpointError | None
    seconds: float
    tokens_in: int
    tokens_out: int
    attempts: tuple[Attempt, ...] = ()


def probe(endpoint: Endpoint) -> Report:
    """Try an endpoint, keep what was seen with it, and return it in words.

    A resting circuit is no obstacle: who presses the button has often just mended the server.
    """
    breaker.release(endpoint)
    attempts: list[Attempt] = []
    findings: list[Finding] = []
    told = _told(endpoint, attempts)
    found: Called[str] | Called[None] = told
    if told.failure is None:
        endpoint.dialect = told.results[0]
        found = call(endpoint, [lambda client: _try_all(client, findings)])
        if _thinks(endpoint, found.failure):
            endpoint.dialect = _THINKING[Dialect(endpoint.dialect)]
            attempts.append(Attempt("max_tokens", f"refused, so it is {Dialect(endpoint.dialect).label}"))
            found = call(endpoint, [lambda client: _try_all(client, findings)])
    if not isinstance(found.failure, Busy | CircuitOpen | Stopped):
        # An end before the end says that it is not known; a test that never began, or that we ended, says nothing.
        _keep(endpoint, findings if found.failure is None else [])
    answered = [request.seconds for request in found.requests if request.error is None]
    seconds = sum(answered) / len(answered) if answered else 0.0
    return Report(endpoint.dialect, tuple(findings), found.failure, seconds, *found.tokens, tuple(attempts))


def _keep(endpoint: Endpoint, findings: Sequence[Finding]) -> None:
    """Store what a test saw; nothing at all says that the endpoint is not tested."""
    passed = {finding.check: finding.passed for finding in findings}
    seen: dict[str, bool | str | datetime | None] = {field: passed.get(check) for check, (_, field) in _CHECKS.items()}
    seen["tested_at"] = timezone.now() if findings else None
    if findings:
        seen["dialect"] = endpoint.dialect
    for field, value in seen.items():
        setattr(endpoint, field, value)
    as_it_was(endpoint).update(**seen)


def _try_all(client: Client, findings: list[Finding]) -> None:
    """Run all checks, one after another: what is measured is a single request's latency."""
    # Nothing else matters if this fails; its error is the report.
    client.chat(_ASK, temperature=1.0, seed=_SEEDS[0], max_tokens=16)
    for name, (check, _) in _CHECKS.items():
        findings.append(_finding(client, name, check))


def _finding(client: Client, name: str, check: Callable[[Client], str | None]) -> Finding:
    try:
        why_not = check(client)
    except (NeedsAttention, ServerError, BadReply) as error:
        # It answered a plain question a moment ago: what it fails at now, it cannot do (llama.cpp: pictures, with 500).
        return Finding(name, False, error.reason)
    except Unreachable as error:
        return Finding(name, None, f"not known, for {error.reason}")
    return Finding(name, why_not is None, why_not or "yes")


def _told(endpoint: Endpoint, attempts: list[Attempt]) -> Called[str]:
    """Return which kind of server an endpoint is, as its owner or its host's name says, or as it answers."""
    if endpoint.dialect_is_declared:
        return Called((endpoint.dialect,))
    host = httpx.URL(endpoint.base_url).host
    if dialect := dialect_of_host(host):
        attempts.append(Attempt(host, f"it is {dialect.label}"))
        return Called((dialect.value,))
    return call(endpoint, [lambda client: _dialect_of(client, attempts)])


def _thinks(endpoint: Endpoint, failure: EndpointError | None) -> bool:
    """Say whether a server of OpenAI's kind names, in its refusal, the field that models have that think first."""
    is_known = not endpoint.dialect_is_declared and endpoint.dialect in _THINKING
    return is_known and isinstance(failure, Refused) and "max_completion_tokens" in failure.reason


def _dialect_of(client: Client, attempts: list[Attempt]) -> str:
    """Tell servers apart by what only one of them has; what another answers there, it may answer in any way."""
    for path, field, dialect in _MARKS:
        try:
            is_there = field in client.get_beside(path)
        except (AddressRefused, KeyMissing, Stopped, TimedOut):
            # The next question would end in the same way, the last one after as long a wait.
            raise
        except EndpointError as error:
            attempts.append(Attempt(path, error.reason))
            continue
        if is_there:
            attempts.append(Attempt(path, f"it is {Dialect(dialect).label}"))
            return dialect
        attempts.append(Attempt(path, f"the reply holds no {field}"))
    return Dialect.OPENAI


def _varies(client: Client) -> str | None:
    hot = min(_HOT, Dialect(client.target.dialect).server.hottest)
    replies = {client.chat(_ASK, temperature=hot, seed=seed, max_tokens=16) for seed in _SEEDS}
    if len(replies) > 1:
        return None
    return f"{len(_SEEDS)} seeds at temperature {hot:g} gave the same reply: its votes would be copies of each other"


def _confines(client: Client) -> str | None:
    if not Dialect(client.target.dialect).has_confinement:
        return "this kind of server has no field for it; replies are read strictly"
    replies = [client.chat(_ASK, temperature=1.0, seed=seed, choices=_UNLIKELY, max_tokens=16) for seed in _SEEDS[:2]]
    outside = [reply for reply in replies if reply not in _UNLIKELY]
    return f"a reply confined to {' or '.join(_UNLIKELY)} was {outside[0]!r}" if outside else None


def _has_log_probabilities(client: Client) -> str | None:
    return None if len(client.first_token(_ASK)) > 1 else "only one token came with its log-probability"


def _has_token_ids(client: Client) -> str | None:
    if not Dialect(client.target.dialect).has_token_ids:
        return "this kind of server does not take and return token ids"
    # All that a model does which writes texts.
    prompt = tokenising.prompt_ids(client, _ASK)
    drawn = client.complete(prompt, temperature=1.0, seed=_SEEDS[0], limit=4)
    tokenising.text(client, drawn.tokens)
    return None


def _sees_images(client: Client) -> str | None:
    shown = (Exhibit("red"), Exhibit("blue")), (_square(0), _square(1)), (_square(0, 255), _square(1, 255))
    words, plain, varied = (_tokens_read(client, *pair) for pair in shown)
    if plain <= words + _A_FEW:
        return "pictures did not change how much the server read: it ignores them"
    # Of the same size, but one file is many times as long as the other.
    if varied > plain + _A_FEW:
        return "the server read the pictures' files as if they were words"
    return None


def _tokens_read(client: Client, first: Exhibit, second: Exhibit) -> int:
    before = len(client.calls)
    client.chat(pairwise_messages("images", "Which is redder?", first, second), temperature=1.0, seed=_SEEDS[0])
    return client.calls[before].tokens_in


@cache
def _square(seed: int, most: int = 0) -> Exhibit:
    """Return a picture of one colour, or of `most` + 1 levels at random."""
    levels = np.random.default_rng(seed).integers(0, most + 1, (64, 64, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(levels).save(file, "PNG")
    return Exhibit(picture=Picture("image/png", file.getvalue()))


# What only one kind of server answers: where, and a field of it.
_MARKS = (
    ("/props", "default_generation_settings", Dialect.LLAMA_CPP),
    ("/get_server_info", "model_path", Dialect.SGLANG),
    ("/version", "version", Dialect.VLLM),
    ("/api/version", "version", Dialect.OLLAMA),
    ("/info", "max_total_tokens", Dialect.TGI),
)
# What a server of OpenAI's kind is taken for when its model thinks before it answers.
_THINKING = {Dialect.OPENAI: Dialect.OPENAI_REASONING, Dialect.AZURE: Dialect.AZURE_REASONING}
_CHECKS: dict[str, tuple[Callable[[Client], str | None], str]] = {
    "vary": (_varies, "can_vary"),
    "confine": (_confines, "can_confine"),
    "log-probabilities": (_has_log_probabilities, "can_log_probabilities"),
    "token ids": (_has_token_ids, "can_token_ids"),
    "images": (_sees_images, "can_images"),
}
