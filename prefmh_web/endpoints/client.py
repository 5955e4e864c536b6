"""One request: sent, bounded in time and size, and read, whatever the reply holds, or turned into one kind of error.

A client knows no database. It never tries again: when to, is decided by whoever knows what else waits
(`TryLater.retry_after`). Every request leaves a `Call` in `calls`.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol, TypeVar

from yarl import URL

from prefmh_web.endpoints import replies, wire
from prefmh_web.endpoints.addresses import checked_base_url
from prefmh_web.endpoints.errors import (
    BadReply,
    EndpointError,
    Refused,
    Unable,
)
from prefmh_web.endpoints.identity import Identity
from prefmh_web.endpoints.keys import key_header, without_key
from prefmh_web.endpoints.outcomes import Call, Heard, Trial
from prefmh_web.endpoints.servers import Compared, Dialect, Path, Question, Server, Writing
from prefmh_web.endpoints.token_estimates import estimated
from prefmh_web.endpoints.watched import watching

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


class Permits(Protocol):
    """What each request asks for a permit, where an endpoint has limits a minute."""

    async def permit(self, tokens: int) -> Callable[[int], None]:
        """Return once a request of about so many tokens may be sent; what is returned takes their true number.

        Raises:
            Busy: it may not be sent soon.
        """
        ...


class Client:
    """Requests to one target, on an event loop.

    Args:
        permits: what each request asks for one, where the endpoint has limits a minute.

    Raises:
        AddressRefused: the base URL may not be called.
    """

    def __init__(self, target: Target, permits: Permits | None = None) -> None:
        self.target, self._permits = target, permits
        self.calls: list[Call] = []
        self.unparsable_replies: list[str] = []
        self._watch = watching()
        self._server = Dialect(target.dialect).server
        self._api = checked_base_url(target.base_url)
        # llama.cpp's own paths, and vLLM's tokeniser, lie beside /v1 and not below it.
        self._root = self._api.removesuffix("/v1")

    async def chat(
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
        reply, _ = await self.signed_chat(
            messages, temperature=temperature, seed=seed, choices=choices, max_tokens=max_tokens
        )
        return reply

    async def signed_chat(
        self,
        messages: list[dict[str, Any]],
        *,
        temperature: float,
        seed: int,
        choices: Sequence[str] = (),
        max_tokens: int = LABEL_TOKENS,
        compared: Compared | None = None,
    ) -> tuple[str | None, Identity]:
        """Do as `chat` does, and return as well what the reply says it is from.

        Args:
            compared: the pair that the messages show, for a program.
        """
        target = self.target
        question = Question(
            target.model, messages, max_tokens, temperature, seed, choices, thinking=target.thinking, compared=compared
        )
        server = self._server.taking(messages)
        return await self._ask(server, question, lambda reply: server.text(reply, question))

    async def first_token(self, messages: list[dict[str, Any]]) -> list[tuple[str, float]]:
        """Return the most probable first tokens of a reply with their log-probabilities at temperature 1.

        Asked at temperature 1 and without confinement, where log-probabilities taken before and after the
        temperature and the confinement are the same.

        Raises:
            EndpointError: there are none.
        """
        return (await self.signed_first_token(messages))[0]

    async def signed_first_token(
        self, messages: list[dict[str, Any]], *, seed: int = 0
    ) -> tuple[list[tuple[str, float]], Identity]:
        """Do as `first_token` does, and return as well what the reply says it is from."""
        server = self._server.taking(messages)
        if not server.has_log_probabilities:
            raise Unable("this kind of server returns no log-probabilities")
        question = Question(self.target.model, messages, seed=seed, log_probabilities=True)
        return await self._ask(server, question, lambda reply: server.first_token(reply, question))

    async def heard(self, question: Question) -> Heard:
        """Return all that a person may want to see of one reply: to a question for one answer, or for first tokens.

        Raises:
            EndpointError: there is none.
        """
        server = self._server.taking(question.messages)
        if question.log_probabilities and not server.has_log_probabilities:
            raise Unable("this kind of server returns no log-probabilities")

        began = time.monotonic()

        def read(reply: dict[str, Any]) -> Heard:
            text = replies.storable(server.text(reply, question) or "")[:LONGEST_HEARD]
            tokens = server.first_token(reply, question) if question.log_probabilities else []
            said, thought = self.without_key(text), self.without_key(server.reasoning(reply))
            return Heard(said, thought, tuple(tokens), time.monotonic() - began, *server.tokens_used(reply))

        return (await self._ask(server, question, read))[0]

    async def reasoned(self, question: Question) -> tuple[tuple[str | None, str], Identity]:
        """Return the reply to a question beside what the model thought, as `heard` says, and what it is from."""
        server = self._server.taking(question.messages)
        return await self._ask(
            server, question, lambda reply: (server.text(reply, question), self.without_key(server.reasoning(reply)))
        )

    async def tried(self, question: Question, changes: Mapping[str, Any]) -> Trial:
        """Return the reply to a question with some fields of its body changed, to see what they do.

        Raises:
            EndpointError: there is none.
        """
        server = self._server
        return await self._post_to(
            server.path(self.target.model),
            server.changed(question, changes),
            lambda reply: Trial(server.text(reply, question), *server.tokens_used(reply)),
        )

    @property
    def writing(self) -> Writing:
        """How the server goes on from token ids.

        Raises:
            Unable: it takes or returns none.
        """
        kind = Dialect(self.target.dialect)
        if kind.server.writing is None:
            raise Unable(
                f"a server of the kind {kind.label} neither takes nor returns token ids; a text tokenised again "
                "comes back changed, so it cannot write proposals"
            )
        return kind.server.writing

    async def complete(
        self, prompt: Sequence[int], *, temperature: float, seed: int, limit: int
    ) -> replies.Continuation:
        """Return the tokens that follow a prompt of token ids: at most `limit`.

        Raises:
            EndpointError: there are none; `Unable` where the server takes or returns no token ids, samples
                otherwise than it was told to, or has no room for `limit` tokens.
        """
        writing = self.writing
        body = writing.body(self.target.model, prompt, limit) | self._server.sampling(temperature, seed)
        return await self._post_to(writing.path, body, lambda reply: writing.read(reply, prompt, limit, temperature))

    async def post(self, path: str, body: dict[str, Any], read: Callable[[dict[str, Any]], Answer]) -> Answer:
        """Send JSON to a path below the base URL, and return what `read` makes of the JSON it answers.

        Raises:
            EndpointError: there was no answer, or `read` could not take it.
        """
        return await self._send("POST", self._api + path, read, body)

    async def post_beside(self, path: str, body: dict[str, Any], read: Callable[[dict[str, Any]], Answer]) -> Answer:
        """Do the same with a path beside /v1."""
        return await self._send("POST", self._root + path, read, body)

    async def get(self, path: str) -> dict[str, Any]:
        """Return the JSON at a path below the base URL.

        Raises:
            EndpointError: there is none.
        """
        return await self._send("GET", self._api + path, lambda reply: reply, None)

    async def get_beside(self, path: str) -> dict[str, Any]:
        """Return the JSON at a path beside /v1.

        Raises:
            EndpointError: there is none.
        """
        return await self._send("GET", self._root + path, lambda reply: reply, None)

    def without_key(self, text: str) -> str:
        """Return a text that came from the server with the key, should it repeat it, struck out."""
        return without_key(text, self.target.api_key_variable)

    def _signature(self, reply: dict[str, Any]) -> Identity:
        found = self._server.identity(reply)
        return Identity(self.without_key(found.model), self.without_key(found.system_fingerprint))

    async def _ask(
        self, server: Server, question: Question, read: Callable[[dict[str, Any]], Answer]
    ) -> tuple[Answer, Identity]:
        path, body = server.path(self.target.model), server.body(question)
        is_for_label = question.max_tokens <= LABEL_TOKENS
        return await self._post_to(
            path, body, lambda reply: (read(reply), self._signature(reply)), is_for_label=is_for_label
        )

    async def _post_to(
        self,
        path: Path,
        body: dict[str, Any],
        read: Callable[[dict[str, Any]], Answer],
        *,
        is_for_label: bool = False,
    ) -> Answer:
        base = self._root if path.is_beside else self._api
        return await self._send("POST", base + path.text, read, body, is_for_label=is_for_label)

    async def _send(
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
        settle = None if self._permits is None else await self._permits.permit(estimated(body))
        began = time.monotonic()
        tokens = 0, 0
        try:
            reply = await self._exchange(method, url, body)
            # What a reply that cannot be read has cost counts, too.
            tokens = self._server.tokens_used(reply)
            answer = read(reply)
        except EndpointError as error:
            self._note(Call(error.kind, time.monotonic() - began, *tokens, is_for_label=is_for_label))
            # A reader's words may quote what the server sent.
            error.reason = self.without_key(error.reason)
            error.args = (error.reason,)
            raise
        self._note(Call(None, time.monotonic() - began, *tokens, is_for_label=is_for_label))
        if settle is not None and any(tokens):
            settle(sum(tokens))
        return answer

    def _note(self, call: Call) -> None:
        self.calls.append(call)
        if self._watch is not None:
            self._watch.note()

    async def _exchange(self, method: str, url: str, body: dict[str, Any] | None) -> dict[str, Any]:
        server, host = self._server, URL(url).host or ""
        key = key_header(self.target.api_key_variable, host, server.key_header, server.key_prefix)
        answer = await wire.exchange(method, url, body, key, self.target.timeout_s)
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            raise self._error_of(answer)
        if answer.why_unread:
            raise BadReply(answer.why_unread)
        try:
            reply = replies.parsed(answer.content)
        except ValueError:
            raise BadReply(f"the reply is not JSON: {self._excerpt(answer.content)}") from None
        if not isinstance(reply, dict):
            raise BadReply("the reply is not a JSON object")
        return reply

    def _error_of(self, answer: wire.Answer) -> EndpointError:
        words = self._excerpt(answer.content)
        if answer.why_unread:
            words = "what it says is compressed, and cannot be read"
        if HTTPStatus.MULTIPLE_CHOICES <= answer.status < HTTPStatus.BAD_REQUEST:
            return Refused("the server answered with a redirect, which is not followed; give its final address")
        return self._server.failure(answer.status, answer.headers, _parsed_or_none(answer.content), words)

    def _excerpt(self, content: bytes) -> str:
        # Struck out before it is cut, or half a key could stay.
        text = self.without_key(content.decode("utf-8", "replace"))[:_LOOKED_AT]
        words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return repr(words if len(words) <= _LONGEST_EXCERPT else words[:_LONGEST_EXCERPT] + "…")


def _parsed_or_none(content: bytes) -> Any:
    try:
        return replies.parsed(content)
    except ValueError:
        return None
