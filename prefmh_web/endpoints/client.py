"""One request: sent, bounded in time and size, and read, whatever the reply holds, or turned into one kind of error.

A client knows no database, so requests may run on threads. It never waits and never tries again: when to, is decided
by whoever knows what else waits (`TryLater.retry_after`). Every request leaves a `Call` in `calls`.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import httpx

from prefmh_web.endpoints import replies, unpacking
from prefmh_web.endpoints.addresses import CheckedTransport, checked_base_url
from prefmh_web.endpoints.connections import Allowance, within
from prefmh_web.endpoints.dialects import Dialect, Path, Question, Server, WithTokenIds
from prefmh_web.endpoints.errors import (
    BadReply,
    EndpointError,
    RateLimited,
    Refused,
    ServerError,
    TimedOut,
    Unable,
    Unparsable,
)
from prefmh_web.endpoints.identity import Identity
from prefmh_web.endpoints.keys import KeyFromEnvironment, without_key
from prefmh_web.endpoints.outcomes import Call, Heard, Trial
from prefmh_web.endpoints.permits import Permits
from prefmh_web.endpoints.token_estimates import estimated
from prefmh_web.endpoints.watched import watching

LONGEST_REPLY = 8 * 2**20
# Header and chunk sizes come on top of what a reply says.
_MOST_ON_THE_WIRE = 2 * LONGEST_REPLY
# Room for a label with its quotation marks and full stop; prose need not be read to its end.
LABEL_TOKENS = 8
# Of a reply that a person looks at.
LONGEST_HEARD = 2_000
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
    # How many tokens the model may think before an answer; None where it is not to think.
    thinking: int | None = None


class Client:
    """Requests to one target; may be used by several threads. Close it, or use it in a `with`.

    Args:
        permits: what each request asks for one, where the endpoint has limits a minute.

    Raises:
        AddressRefused: the base URL may not be called.
    """

    def __init__(self, target: Target, permits: Permits | None = None) -> None:
        self.target, self._permits = target, permits
        # Appended to by threads: a list's append is one step.
        self.calls: list[Call] = []
        self.unparsable_replies: list[str] = []
        self._watch = watching()
        self._server = Dialect(target.dialect).server
        self._api = checked_base_url(target.base_url)
        # llama.cpp's own paths, and vLLM's tokeniser, lie beside /v1 and not below it.
        self._root = self._api.removesuffix("/v1")
        self._http = httpx.Client(
            transport=CheckedTransport(),
            auth=KeyFromEnvironment(target.api_key_variable, self._server.key_header, self._server.key_prefix),
            # For one wait; an `Allowance` bounds all waits of a request together.
            timeout=target.timeout_s,
            follow_redirects=False,
            trust_env=False,
            # As it is: a few bytes can unpack to gigabytes.
            headers={"User-Agent": "prefmh", "Accept-Encoding": "identity", **self._server.headers},
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
        thinking = self.target.thinking
        question = Question(self.target.model, messages, max_tokens, temperature, seed, choices, thinking=thinking)
        server = self._server.taking(messages)
        return self._ask(server, question, server.text)

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
        server = self._server.taking(messages)
        if not server.has_log_probabilities:
            raise Unable("this kind of server returns no log-probabilities")
        return self._ask(server, Question(self.target.model, messages, log_probabilities=True), server.first_token)

    def heard(self, question: Question) -> Heard:
        """Return all that a person may want to see of one reply: to a question for one answer, or for first tokens.

        Raises:
            EndpointError: there is none.
        """
        server = self._server.taking(question.messages)
        if question.log_probabilities and not server.has_log_probabilities:
            raise Unable("this kind of server returns no log-probabilities")

        began = time.monotonic()

        def read(reply: dict[str, Any]) -> Heard:
            text = replies.storable(server.text(reply) or "")[:LONGEST_HEARD]
            tokens = server.first_token(reply) if question.log_probabilities else []
            said, thought = self.without_key(text), self.without_key(server.reasoning(reply))
            return Heard(said, thought, tuple(tokens), time.monotonic() - began, *server.tokens_used(reply))

        return self._ask(server, question, read)[0]

    def reasoned(self, question: Question) -> tuple[tuple[str | None, str], Identity]:
        """Return the reply to a question beside what the model thought, as `heard` says, and what it is from."""
        server = self._server.taking(question.messages)
        return self._ask(
            server, question, lambda reply: (server.text(reply), self.without_key(server.reasoning(reply)))
        )

    def tried(self, question: Question, changes: Mapping[str, Any]) -> Trial:
        """Return the reply to a question with some fields of its body changed, to see what they do.

        Raises:
            EndpointError: there is none.
        """
        server = self._server
        return self._post_to(
            server.path(self.target.model),
            server.changed(question, changes),
            lambda reply: Trial(server.text(reply), *server.tokens_used(reply)),
        )

    @property
    def writer(self) -> WithTokenIds:
        """How the server is spoken to that goes on from token ids.

        Raises:
            Unable: it takes or returns none.
        """
        server, kind = self._server, Dialect(self.target.dialect).label
        if not isinstance(server, WithTokenIds):
            raise Unable(
                f"a server of the kind {kind} neither takes nor returns token ids; a text tokenised again "
                "comes back changed, so it cannot write proposals"
            )
        return server

    def complete(self, prompt: Sequence[int], *, temperature: float, seed: int, limit: int) -> replies.Continuation:
        """Return the tokens that follow a prompt of token ids: at most `limit`.

        Raises:
            EndpointError: there are none; `Unable` where the server takes or returns no token ids, samples
                otherwise than it was told to, or has no room for `limit` tokens.
        """
        server = self.writer
        body = server.completion(self.target.model, prompt, limit=limit, temperature=temperature, seed=seed)
        return self._post_to(
            server.completion_path(),
            body,
            lambda reply: server.continuation(reply, prompt, limit=limit, temperature=temperature),
        )

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
        found = self._server.identity(reply)
        return Identity(self.without_key(found.model), self.without_key(found.system_fingerprint))

    def _ask(
        self, server: Server, question: Question, read: Callable[[dict[str, Any]], Answer]
    ) -> tuple[Answer, Identity]:
        path, body = server.path(self.target.model), server.body(question)
        is_for_label = question.max_tokens <= LABEL_TOKENS
        return self._post_to(path, body, lambda reply: (read(reply), self._signature(reply)), is_for_label=is_for_label)

    def _post_to(
        self,
        path: Path,
        body: dict[str, Any],
        read: Callable[[dict[str, Any]], Answer],
        *,
        is_for_label: bool = False,
    ) -> Answer:
        base = self._root if path.is_beside else self._api
        return self._send("POST", base + path.text, read, body, is_for_label=is_for_label)

    def _send(
        self,
        method: str,
        url: str,
        read: Callable[[dict[str, Any]], Answer],
        body: dict[str, Any] | None,
        *,
        is_for_label: bool = False,
    ) -> Answer:
        if self._watch is not None:
            self._watch.admit()
        permit = None if self._permits is None else self._permits.ask(estimated(body))
        began = time.monotonic()
        try:
            reply = self._exchange(method, url, body)
            answer = read(reply)
        except EndpointError as error:
            self._note(Call(error.kind, time.monotonic() - began, is_for_label=is_for_label))
            # A reader's words may quote what the server sent.
            error.reason = self.without_key(error.reason)
            error.args = (error.reason,)
            raise
        seconds, tokens = time.monotonic() - began, self._server.tokens_used(reply)
        self._note(Call(None, seconds, *tokens, is_for_label=is_for_label))
        if self._permits is not None and permit is not None and any(tokens):
            self._permits.correct(permit, sum(tokens))
        return answer

    def _note(self, call: Call) -> None:
        self.calls.append(call)
        if self._watch is not None:
            self._watch.note()

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
            content = _unpacked(response, content)
            words = self._excerpt(content)
        except BadReply:
            content, words = b"", "what it says is compressed, and cannot be read"
        reason = f"the server answered {response.status_code}: {words}"
        reply = _parsed_or_none(content)
        if self._server.is_filtered(response.status_code, reply):
            return Unparsable(f"a content filter of the server refused the prompt: {words}")
        wait = self._server.wait(response.headers, reply)
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


def _parsed_or_none(content: bytes) -> Any:
    try:
        return replies.parsed(content)
    except ValueError:
        return None
