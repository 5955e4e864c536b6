"""The one-click test of an endpoint: what it can do, seen by trying it.

    vary                different seeds give different replies (else all votes would be copies of one)
    confine             a reply confined to two unlikely words is one of them
    log-probabilities   the first token comes with those of its rivals
    token ids           ids go in and come out, at plain temperature sampling
    images              a picture changes how many tokens the server reads

What was seen is kept with the endpoint; until then it is null. The dialect is found out first.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from django.utils import timezone
from PIL import Image

from prefmh_web.endpoints import breaker
from prefmh_web.endpoints.calls import call
from prefmh_web.endpoints.client import Client
from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.errors import EndpointError, NeedsAttention, ServerError
from prefmh_web.endpoints.models import Endpoint
from sampler.model_judges import Exhibit, Picture, pairwise_messages

_ASK = [{"role": "user", "content": "Write one short sentence about the sea."}]
# No model answers with one of these on its own.
_UNLIKELY = ("QX7", "ZJ3")
_SEEDS = (104_729, 1_299_709, 15_485_863, 179_424_673)
_HOT = 1.5


@dataclass(frozen=True)
class Finding:
    """What one check saw."""

    check: str
    passed: bool
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


def probe(endpoint: Endpoint) -> Report:
    """Try an endpoint, keep what was seen with it, and return it in words.

    A resting circuit is no obstacle: who presses the button has often just mended the server.
    """
    breaker.release(endpoint)
    found = call(endpoint, [_dialect_of])
    if found.failure is None:
        endpoint.dialect = found.results[0]
        found = call(endpoint, [_findings])
    findings: tuple[Finding, ...] = found.results[0] if found.failure is None else ()
    if found.failure is None:
        for finding in findings:
            setattr(endpoint, _CHECKS[finding.check][1], finding.passed)
        endpoint.tested_at = timezone.now()
        endpoint.save(update_fields=("dialect", "tested_at", *(field for _, field in _CHECKS.values())))
    answered = [request.seconds for request in found.requests if request.error is None]
    seconds = sum(answered) / len(answered) if answered else 0.0
    return Report(endpoint.dialect, findings, found.failure, seconds, *found.tokens)


def _findings(client: Client) -> tuple[Finding, ...]:
    """Run all checks, one after another: what is measured is a single request's latency."""
    # Nothing else matters if this fails; its error is the report.
    client.chat(_ASK, temperature=1.0, seed=_SEEDS[0], max_tokens=16)
    return tuple(_finding(client, name, check) for name, (check, _) in _CHECKS.items())


def _finding(client: Client, name: str, check: Callable[[Client], str | None]) -> Finding:
    try:
        why_not = check(client)
    except (NeedsAttention, ServerError) as error:
        # It answered a plain question a moment ago: what it fails at now, it cannot do (llama.cpp: pictures, with 500).
        why_not = error.reason
    return Finding(name, why_not is None, why_not or "yes")


def _dialect_of(client: Client) -> str:
    """Tell servers apart by what only one of them has."""
    for path, field, dialect in (
        ("/props", "default_generation_settings", Dialect.LLAMA_CPP),
        ("/get_server_info", "model_path", Dialect.SGLANG),
        ("/version", "version", Dialect.VLLM),
    ):
        try:
            if field in client.get_beside(path):
                return dialect
        except NeedsAttention:
            continue
    return Dialect.OPENAI


def _varies(client: Client) -> str | None:
    replies = {client.chat(_ASK, temperature=_HOT, seed=seed, max_tokens=16) for seed in _SEEDS}
    if len(replies) > 1:
        return None
    return f"{len(_SEEDS)} seeds at temperature {_HOT} gave the same reply: its votes would be copies of each other"


def _confines(client: Client) -> str | None:
    if not Dialect(client.target.dialect).has_confinement:
        return "this kind of server has no field for it; replies are read strictly"
    replies = [client.chat(_ASK, temperature=1.0, seed=seed, choices=_UNLIKELY, max_tokens=16) for seed in _SEEDS[:2]]
    outside = [reply for reply in replies if reply not in _UNLIKELY]
    return f"a reply confined to {' or '.join(_UNLIKELY)} was {outside[0]!r}" if outside else None


def _has_log_probabilities(client: Client) -> str | None:
    return None if len(client.first_token(_ASK)) > 1 else "only one token came with its log-probability"


def _has_token_ids(client: Client) -> str | None:
    # A few small ids that every tokeniser has; what they say does not matter.
    client.complete([10, 20, 30], temperature=1.0, seed=_SEEDS[0], limit=4)
    return None


def _sees_images(client: Client) -> str | None:
    words = pairwise_messages("images", "Which is redder?", Exhibit("red"), Exhibit("blue"))
    pictures = pairwise_messages("images", "Which is redder?", *(Exhibit(picture=_square(c)) for c in ("red", "blue")))
    read = []
    for messages in (words, pictures):
        before = len(client.calls)
        client.chat(messages, temperature=1.0, seed=_SEEDS[0])
        read.append(client.calls[before].tokens_in)
    return None if read[1] > read[0] + 8 else "pictures did not change how much the server read: it ignores them"


@cache
def _square(colour: str) -> Picture:
    file = io.BytesIO()
    Image.new("RGB", (64, 64), colour).save(file, "PNG")
    return Picture("image/png", file.getvalue())


_CHECKS: dict[str, tuple[Callable[[Client], str | None], str]] = {
    "vary": (_varies, "can_vary"),
    "confine": (_confines, "can_confine"),
    "log-probabilities": (_has_log_probabilities, "can_log_probabilities"),
    "token ids": (_has_token_ids, "can_token_ids"),
    "images": (_sees_images, "can_images"),
}
