"""One request: sent, bounded in time and size, and read, whatever the reply holds, or turned into one kind of error.

A client knows no database, so requests may run on threads. It never waits and never tries again: when to, is decided
by whoever knows what else waits (`TryLater.retry_after`). Every request leaves a `Call` in `calls`.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self, TypeVar

import httpx

from prefmh_web.endpoints import dialects, replies, unpacking
from prefmh_web.endpoints.addresses import CheckedTransport, checked_base_url
from prefmh_web.endpoints.connections import Allowance, within
from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.errors import (
    BadReply,
    EndpointError,
    RateLimited,
    Refused,
    ServerError,
    TimedOut,
    Unable,
)
from prefmh_web.endpoints.identity import Identity, identity_of
from prefmh_web.endpoints.keys import KeyFromEnvironment, without_key

LONGEST_REPLY = 8 * 2**20
# Header and chunk sizes come on top of what a reply says.
_MOST_ON_THE_WIRE = 2 * LONGEST_REPLY
LONGEST_RETRY_AFTER_S = 3600.0
# Room for a label with its quotation marks and full stop; prose need not be read to its end.
LABEL_TOKENS = 8
_LONGEST_EXCERPT = 200
# Enough for an excerpt, however much of it is white space.
_LOOKED_AT = 20_000

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Target:
    """Where requests go, and how."""

    base_url: str
    model: str
    dialect: str = Dialect.OPENAI
    api_key_variable: str = ""
    timeout_s: float = 60.0


@dataclass(frozen=True)
class Call:
    """What one request came to: the kind of error or None, its time, and its tokens."""

    error: str | None
    seconds: float
    tokens_in: int = 0
    tokens_out: int = 0


class Client:
    """Requests to one target; may be used by several threads. Close it, or use it in a `with`.

    Raises:
        AddressRefused: the base URL may not be called.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        # Appended to by threads: a list's append is one step.
        self.calls: list[Call] = []
        self.unparsable_replies: list[str] = []
        self._api = checked_base_url(target.base_url)
        # llama.cpp's own paths, and vLLM's tokeniser, lie beside /v1 and not below it.
        self._root = self._api.removesuffix("/v1")
        self._http = httpx.Client(
            transport=CheckedTransport(),
            auth=KeyFromEnvironment(target.api_key_variable),
            # For one wait; an `Allowance` bounds all waits of a request together.
            timeout=target.timeout_s,
            follow_redirects=False,
            trust_env=False,
            # As it is: a few bytes can unpack to gigabytes.
            headers={"User-Agent": "prefmh", "Accept-Encoding": "identity"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._http.close()

    def chat(
        self,
        messages: list[dict[str, Any]],
        *,
        temperature: float,
        seed: int,
        choices: Sequence[str] = (),
        max_tokens: int = LABEL_TOKENS,
    ) -> str | None:
        """Return a reply; confined to `choices` where the server can, which the caller checks all the same.

        Raises:
            EndpointError: there is none.
        """
        return self.signed_chat(messages, temperature=temperature, seed=seed, choices=choices, max_tokens=max_tokens)[0]

    def signed_chat(
        self,
        messages: list[dict[str, Any]],
        *,
        temperature: float,
        seed: int,
        choices: Sequence[str] = (),
        max_tokens: int = LABEL_TOKENS,
    ) -> tuple[str | None, Identity]:
        """Do as `chat` does, and return as well what the reply says it is from."""
        fields = dialects.sampling(self.target.dialect, temperature, seed)
        if choices:
            fields |= dialects.confined(self.target.dialect, choices)
        body = self._chat_body(messages, max_tokens, fields)
        return self.post("/chat/completions", body, lambda reply: (replies.chat_text(reply), self._signature(reply)))

    def first_token(self, messages: list[dict[str, Any]]) -> list[tuple[str, float]]:
        """Return the most probable first tokens of a reply with their log-probabilities at temperature 1.

        Asked at temperature 1 and without confinement, where log-probabilities taken before and after the
        temperature and the confinement are the same.

        Raises:
            EndpointError: there are none.
        """
        return self.signed_first_token(messages)[0]

    def signed_first_token(self, messages: list[dict[str, Any]]) -> tuple[list[tuple[str, float]], Identity]:
        """Do as `first_token` does, and return as well what the reply says it is from."""
        fields = dialects.sampling(self.target.dialect, 1.0, 0) | dialects.log_probabilities()
        body = self._chat_body(messages, 1, fields)
        return self.post("/chat/completions", body, lambda reply: (replies.first_token(reply), self._signature(reply)))

    def complete(self, prompt: Sequence[int], *, temperature: float, seed: int, limit: int) -> replies.Continuation:
        """Return the tokens that follow a prompt of token ids: at most `limit`.

        Raises:
            EndpointError: there are none; `Unable` where the server takes or returns no token ids, samples
                otherwise than it was told to, or has no room for `limit` tokens.
        """
        dialect = Dialect(self.target.dialect)
        if not dialect.has_token_ids:
            raise Unable(
                f"a server of the kind {dialect.label} neither takes nor returns token ids; a text tokenised again "
                "comes back changed, so it cannot write proposals"
            )
        fields = dialects.sampling(dialect, temperature, seed)
        body = dialects.completion(dialect, self.target.model, prompt, limit=limit, fields=fields)
        if dialect == Dialect.LLAMA_CPP:
            return self.post_beside(
                "/completion", body, lambda reply: replies.llama_cpp_continuation(reply, prompt, limit, temperature)
            )
        return self.post("/completions", body, lambda reply: replies.completions_continuation(reply, prompt, limit))

    def post(self, path: str, body: dict[str, Any], read: Callable[[dict[str, Any]], Answer]) -> Answer:
        """Send JSON to a path below the base URL, and return what `read` makes of the JSON it answers.

        Raises:
            EndpointError: there was no answer, or `read` could not take it.
        """
        return self._send("POST", self._api + path, read, body)

    def post_beside(self, path: str, body: dict[str, Any], read: Callable[[dict[str, Any]], Answer]) -> Answer:
        """Do the same with a path beside /v1."""
        return self._send("POST", self._root + path, read, body)

    def get(self, path: str) -> dict[str, Any]:
        """Return the JSON at a path below the base URL.

        Raises:
            EndpointError: there is none.
        """
        return self._send("GET", self._api + path, lambda reply: reply, None)

    def get_beside(self, path: str) -> dict[str, Any]:
        """Return the JSON at a path beside /v1.

        Raises:
            EndpointError: there is none.
        """
        return self._send("GET", self._root + path, lambda reply: reply, None)

    def without_key(self, text: str) -> str:
        """Return a text that came from the server with the key, should it repeat it, struck out."""
        return without_key(text, self.target.api_key_variable)

    def _signature(self, reply: dict[str, Any]) -> Identity:
        found = identity_of(reply)
        return Identity(self.without_key(found.model), self.without_key(found.system_fingerprint))

    def _chat_body(self, messages: list[dict[str, Any]], max_tokens: int, fields: dict[str, Any]) -> dict[str, Any]:
        return dialects.chat(self.target.dialect, self.target.model, messages, max_tokens=max_tokens, fields=fields)

    def _send(
        self, method: str, url: str, read: Callable[[dict[str, Any]], Answer], body: dict[str, Any] | None
    ) -> Answer:
        began = time.monotonic()
        try:
            reply = self._exchange(method, url, body)
            answer = read(reply)
        except EndpointError as error:
            self.calls.append(Call(error.kind, time.monotonic() - began))
            # A reader's words may quote what the server sent.
            error.reason = self.without_key(error.reason)
            error.args = (error.reason,)
            raise
        self.calls.append(Call(None, time.monotonic() - began, *replies.tokens_used(reply)))
        return answer

    def _exchange(self, method: str, url: str, body: dict[str, Any] | None) -> dict[str, Any]:
        allowance = Allowance(self.target.timeout_s, _MOST_ON_THE_WIRE, is_tls=url.startswith("https:"))
        with within(allowance), self._http.stream(method, url, json=body) as response:
            content = _read(response)
        if not response.is_success:
            raise self._error_of(response, content)
        content = _unpacked(response, content)
        try:
            reply = replies.parsed(content)
        except ValueError:
            raise BadReply(f"the reply is not JSON: {self._excerpt(content)}") from None
        if not isinstance(reply, dict):
            raise BadReply("the reply is not a JSON object")
        return reply

    def _error_of(self, response: httpx.Response, content: bytes) -> EndpointError:
        try:
            words = self._excerpt(_unpacked(response, content))
        except BadReply:
            words = "what it says is compressed, and cannot be read"
        reason = f"the server answered {response.status_code}: {words}"
        wait = _retry_after(response.headers.get("retry-after"))
        later = {} if wait is None else {"retry_after": wait}
        if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
            return RateLimited(reason, **later)
        if response.status_code in (httpx.codes.REQUEST_TIMEOUT, httpx.codes.TOO_EARLY):
            return TimedOut(reason, **later)
        if response.is_server_error:
            return ServerError(reason, **later)
        if 300 <= response.status_code < 400:
            return Refused("the server answered with a redirect, which is not followed; give its final address")
        return Refused(reason)

    def _excerpt(self, content: bytes) -> str:
        # Struck out before it is cut, or half a key could stay.
        text = self.without_key(content.decode("utf-8", "replace"))[:_LOOKED_AT]
        words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return repr(words if len(words) <= _LONGEST_EXCERPT else words[:_LONGEST_EXCERPT] + "…")


def _read(response: httpx.Response) -> bytes:
    """Return a body as it came over the wire, so long as it is not too long."""
    content = bytearray()
    for piece in response.iter_raw():
        content += piece
        if len(content) > LONGEST_REPLY:
            raise _too_long()
    return bytes(content)


def _unpacked(response: httpx.Response, content: bytes) -> bytes:
    try:
        return unpacking.unpacked(content, response.headers.get("content-encoding", ""), LONGEST_REPLY)
    except OverflowError:
        raise _too_long() from None
    except ValueError as error:
        raise BadReply(str(error)) from None


def _too_long() -> BadReply:
    return BadReply(f"the reply is longer than {LONGEST_REPLY // 2**20} MiB")


def _retry_after(header: str | None) -> float | None:
    """Return the seconds of a Retry-After header, which holds a number or a date; None where it is neither."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            # The one form that servers may send (RFC 9110, 5.6.7).
            date = datetime.strptime(header.strip(), "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)
        except ValueError:
            return None
        seconds = (date - datetime.now(UTC)).total_seconds()
    if math.isnan(seconds):
        return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER_S)
