"""One request to a model server: sent, bounded in time, size and memory, and read, or turned into one kind of error.

A client knows no database. It never tries again: when to, is decided by whoever knows what else waits
(`TryLater.retry_after`). Every request leaves a `Call` in `calls`.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import ssl
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

import aiohttp
from yarl import URL

from prefmh_web.endpoints import replies
from prefmh_web.endpoints.addresses import CheckedConnector, checked_base_url, key_header, without_key
from prefmh_web.endpoints.errors import (
    AddressRefused,
    BadReply,
    EndpointError,
    KeyMissing,
    RateLimited,
    Refused,
    Stopped,
    TimedOut,
    Unable,
    Unreachable,
)
from prefmh_web.endpoints.loop import held
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.replies import Identity
from prefmh_web.endpoints.servers import Body, ChatRequest, Dialect, Server

# Room for a label with its quotation marks and full stop; prose need not be read to its end.
LABEL_TOKENS = 8
LONGEST_REPLY = 8 * 2**20
# Of a header line, and of what is handed on at a time.
_LONGEST_LINE, _PIECE = 16 * 2**10, 64 * 2**10
_LONGEST_EXCERPT = 200
# Enough for an excerpt, however much of it is white space.
_LOOKED_AT = 20_000
# OpenSSL's words for an answer that is no TLS.
_PLAIN = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE")
# What begins whatever a TLS server sends, an alert or a part of the handshake, as aiohttp writes it.
_TLS_BYTES = (r"\x15\x03", r"\x16\x03")
_TO_CLOSE_S = 1.0
_sessions: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = weakref.WeakKeyDictionary()

Answer = TypeVar("Answer")
MinuteLimit = Callable[[int], Awaitable[Callable[[int], None]]]
"""Returns once a request of about so many tokens may be sent; what it returns takes their true number."""


@dataclass(frozen=True)
class Call:
    """What one request came to: the kind of error or None, its time, and its tokens."""

    error: type[EndpointError] | None
    seconds: float
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass(frozen=True)
class Reply:
    """What a reply says.

    Args:
        text: of the answer; None where there is none.
        reasoning: what the model thought, where the server says it. It is no part of the answer.
        tokens: the most probable first tokens with their log-probabilities at temperature 1, where they were asked for.
        identity: which model it says that it is from.
    """

    text: str | None
    reasoning: str
    tokens: tuple[tuple[str, float], ...]
    identity: Identity
    seconds: float
    tokens_in: int
    tokens_out: int


class Watch:
    """Sees all requests of a block of code, and can stop them: a test of an endpoint makes its requests far down."""

    def __init__(self) -> None:
        self.requests, self.is_stopped = 0, False


_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


def watched() -> AbstractContextManager[Watch]:
    """Watch the requests that are made in the block: how many have ended, and whether more may begin."""
    return held(_watch, Watch())


class Client:
    """Requests to one endpoint, on an event loop.

    Args:
        endpoint: need not be stored.
        minute_limit: what each request waits for, where the endpoint has limits a minute.
        admitted: whose replies to questions count; anybody's if None.

    Raises:
        AddressRefused: the base URL may not be called.
    """

    def __init__(
        self, endpoint: Endpoint, minute_limit: MinuteLimit | None = None, admitted: replies.Admitted | None = None
    ) -> None:
        self.endpoint, self._minute_limit, self._admitted = endpoint, minute_limit, admitted
        self.calls: list[Call] = []
        # Replies that were neither label nor rating.
        self.unparsable = 0
        self._watch = _watch.get()
        self._api = checked_base_url(endpoint.base_url)
        # llama.cpp's own paths, and vLLM's tokeniser, lie beside /v1 and not below it.
        self._root = self._api.removesuffix("/v1")

    @property
    def server(self) -> Server:
        """How its server is asked, as that is known now."""
        return Dialect(self.endpoint.dialect).server

    async def ask(self, question: ChatRequest) -> Reply:
        """Return the reply to a question; constrained to its choices where the server can; they are checked anyway.

        Raises:
            EndpointError: there is none, or not the log-probabilities that were asked for; or it does not count.
        """
        if self._admitted is not None:
            self._admitted.check()
        server, began = self.server, time.monotonic()
        if question.log_probabilities and not server.has_log_probabilities:
            raise Unable("this kind of server returns no log-probabilities")

        def read(body: Body) -> Reply:
            text, chat = server.text(body, question), server.as_chat(body)
            return Reply(
                None if text is None else self.without_key(replies.storable(text)),
                self.without_key(replies.reasoning(chat)),
                tuple(server.first_token(body, question)) if question.log_probabilities else (),
                self._identity(body),
                time.monotonic() - began,
                *replies.tokens_used(chat),
            )

        path, tokens = server.path(question.model), server.estimate(question)
        reply = await self.send(path, server.body(question), read, is_at_root=server.is_at_root, tokens=tokens)
        if self._admitted is not None:
            self._admitted.check(reply.identity)
        return reply

    async def complete(
        self, prompt: Sequence[int], *, temperature: float, seed: int, limit: int
    ) -> replies.Continuation:
        """Return the tokens that follow a prompt of token ids: at most `limit`.

        Raises:
            EndpointError: there are none; `Unable` where the server takes or returns no token ids, samples
                otherwise than it was told to, or has no room for `limit` tokens.
        """
        if (writing := self.server.writing) is None:
            raise Unable("a server of this kind neither takes nor returns token ids, so it cannot write proposals")
        body = writing.body(self.endpoint.model, prompt, limit) | self.server.sampling(temperature, seed)

        def read(reply: Body) -> replies.Continuation:
            return writing.read(reply, prompt, limit, temperature)

        return await self.send(writing.path, body, read, is_at_root=writing.is_at_root, tokens=len(prompt) + limit)

    async def get(self, path: str, *, is_at_root: bool = False) -> Body:
        """Return the JSON at a path below the base URL, or beside its /v1; raises as `send` does."""
        return await self.send(path, None, lambda reply: reply, is_at_root=is_at_root)

    def without_key(self, text: str) -> str:
        """Return a text that came from the server with the key, should it repeat it, struck out."""
        return without_key(text, self.endpoint.api_key_variable)

    def _identity(self, reply: Body) -> Identity:
        found = self.server.identity(reply)
        return Identity(self.without_key(found.model), self.without_key(found.system_fingerprint))

    async def send(
        self,
        path: str,
        body: Body | None,
        read: Callable[[Body], Answer],
        *,
        is_at_root: bool = False,
        tokens: int = 0,
    ) -> Answer:
        """Post JSON to a path below the base URL, or beside its /v1; return what `read` makes of the JSON it answers.

        Args:
            body: None to get what is there.
            tokens: about how many it may read and write.

        Raises:
            EndpointError: there was no answer, or `read` could not take it.
        """
        if self._watch is not None and self._watch.is_stopped:
            raise Stopped("it was stopped")
        settle = None if self._minute_limit is None else await self._minute_limit(tokens)
        began, used, failure = time.monotonic(), (0, 0), None
        headers: Mapping[str, str] = {}
        try:
            headers, reply = await self._exchange((self._root if is_at_root else self._api) + path, body)
            # What a reply that cannot be read has cost counts, too.
            used = replies.tokens_used(self.server.as_chat(reply))
            answer = read(reply)
        except EndpointError as error:
            # A reader's words may quote what the server sent.
            error.reason = self.without_key(error.reason)
            error.args = (error.reason,)
            if isinstance(error, RateLimited) and not error.asked_to_wait:
                # Of an error that came in the body of a 200.
                error.wait(replies.wait(headers, {}))
            failure = error
        # Otherwise nothing was sent.
        if not isinstance(failure, KeyMissing | AddressRefused):
            kind = None if failure is None else type(failure)
            self.calls.append(Call(kind, time.monotonic() - began, *used))
            if self._watch is not None:
                self._watch.requests += 1
        if failure is not None:
            raise failure
        if settle is not None and any(used):
            settle(sum(used))
        return answer

    async def _exchange(self, url: str, body: Body | None) -> tuple[Mapping[str, str], Body]:
        server, host, variable = self.server, URL(url).host or "", self.endpoint.api_key_variable
        key = key_header(variable, host, server.key_header, server.key_prefix)
        status, headers, content = await exchange(url, body, key, float(self.endpoint.timeout_s))
        try:
            reply = replies.parsed(content)
        except ValueError:
            reply = None
        if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            raise Refused("the server answered with a redirect, which is not followed; give its final address")
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            raise replies.failure(status, headers, reply, self._excerpt(content))
        if isinstance(reply, dict):
            return headers, reply
        if error := replies.error_in(reply):
            return headers, {"error": error}
        raise BadReply(f"the reply is not a JSON object: {self._excerpt(content)}")

    def _excerpt(self, content: bytes) -> str:
        # Struck out before it is cut, or half a key could stay.
        text = self.without_key(content.decode("utf-8", "replace"))[:_LOOKED_AT]
        words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return repr(words if len(words) <= _LONGEST_EXCERPT else words[:_LONGEST_EXCERPT] + "…")


HttpAnswer = tuple[int, Mapping[str, str], bytes]
"""Status, headers by their names in small letters, content; of an error, that is empty where it could not be read."""


def exact_request(endpoint: Endpoint, question: ChatRequest) -> tuple[str, str]:
    """Return a question as it would go over the wire, for people to look at: its path, and its body as text.

    Nothing is sent, and no key is read.
    """
    server = Dialect(endpoint.dialect).server
    return server.path(endpoint.model), _written(server.body(question))


def _written(body: Mapping[str, Any]) -> str:
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


async def exchange(
    url: str, body: Mapping[str, Any] | None, headers: Mapping[str, str], timeout_s: float
) -> HttpAnswer:
    """Send a request and return what comes back, whatever its status.

    Args:
        timeout_s: from the look-up of the name to the last byte.

    Raises:
        EndpointError: no whole answer came.
    """
    # As it is: a few bytes can unpack to gigabytes. What comes packed all the same is unpacked piece by piece.
    sent = {"User-Agent": "prefmh", "Accept-Encoding": "identity", **headers}
    if body is not None:
        sent["Content-Type"] = "application/json"
    method, content = ("GET", None) if body is None else ("POST", _written(body).encode())
    has_begun = False
    try:
        async with asyncio.timeout(timeout_s):
            request = _session().request(method, url, data=content, headers=sent, allow_redirects=False)
            async with request as response:
                has_begun = True
                return await _read(response)
    except TimeoutError:
        words = "the reply did not end in time, within" if has_begun else "no reply within"
        raise TimedOut(f"{words} {timeout_s:g} s") from None
    except (aiohttp.ClientError, OSError) as error:
        raise _in_words(error, url, has_begun=has_begun) from None


def _session() -> aiohttp.ClientSession:
    """Return the session of this event loop, which keeps connections and nothing else."""
    loop = asyncio.get_running_loop()
    if (found := _sessions.get(loop)) is None:
        found = _sessions[loop] = aiohttp.ClientSession(
            connector=CheckedConnector(),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            timeout=aiohttp.ClientTimeout(total=None),
            max_line_size=_LONGEST_LINE,
            max_field_size=_LONGEST_LINE,
        )
        atexit.register(_close, loop, found)
    return found


def _close(loop: asyncio.AbstractEventLoop, session: aiohttp.ClientSession) -> None:
    if loop.is_running():
        asyncio.run_coroutine_threadsafe(session.close(), loop).result(_TO_CLOSE_S)


async def _read(response: aiohttp.ClientResponse) -> HttpAnswer:
    """Return an answer of a bounded length.

    Raises:
        BadReply: it is too long, or is not packed as it says.
    """
    content, headers = bytearray(), {name.lower(): value for name, value in response.headers.items()}
    wrong = ""
    try:
        async for piece in response.content.iter_chunked(_PIECE):
            content += piece
            if len(content) > LONGEST_REPLY:
                wrong = f"the reply is longer than {LONGEST_REPLY // 2**20} MiB"
                break
    except aiohttp.ClientPayloadError as error:
        if not isinstance(error.__cause__, aiohttp.http_exceptions.ContentEncodingError):
            raise
        wrong = "the reply is not compressed as it says"
    if not wrong:
        return response.status, headers, bytes(content)
    response.close()
    if response.status < HTTPStatus.BAD_REQUEST:
        raise BadReply(wrong)
    return response.status, headers, b""


def _in_words(error: Exception, url: str, *, has_begun: bool) -> EndpointError:
    """Return what went wrong with a connection, so that it can be fixed."""
    if isinstance(error, aiohttp.ClientConnectorError | ssl.SSLError):
        cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
        why = (getattr(cause, "strerror", None) or str(cause) or "no connection").lower()
        if isinstance(cause, ssl.SSLError):
            why = _of_tls(cause)
        return Unreachable(f"the server cannot be reached: {why}")
    if isinstance(error, aiohttp.ClientResponseError):
        return _of_rules(error.message)
    if not has_begun and not url.startswith("https:"):
        # What many servers do when they are spoken to in plain HTTP on the port of https://.
        return Unreachable("the connection was cut before any reply; should the address begin with https://?")
    return Unreachable("the connection was cut")


def _of_tls(cause: ssl.SSLError) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate does not pass: {cause.verify_message}"
    if cause.reason in _PLAIN:
        return "it does not speak TLS on that port; begin the address with http://, or give the port of https://"
    return f"the TLS handshake failed: {(cause.reason or 'unknown').lower().replace('_', ' ')}"


def _of_rules(message: str) -> EndpointError:
    if any(each in message for each in _TLS_BYTES):
        return BadReply("the server speaks TLS on that port: begin the address with https://")
    if "Expected HTTP/" in message or "status line" in message:
        return BadReply("the server does not speak HTTP on that port")
    return BadReply("the reply breaks the rules of HTTP, or its header is too long")
