"""How a model server is asked and read: chat completions, by the facts of its kind (`servers.py` has a row for each).

Every field that shapes the sampling is sent every time: servers fill in what is missing from the model's own
`generation_config.json`, or from defaults that truncate.

A reply counts only if it says that it ended by itself. Anything else comes back as a text that no parser takes for an
answer, so that a person can still read it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from prefmh_web.endpoints import replies, waits
from prefmh_web.endpoints.errors import (
    EndpointError,
    NoDistribution,
    Refused,
    ServerError,
    Unable,
    Unparsable,
    by_status,
)
from prefmh_web.endpoints.identity import Identity, identity_of
from sampler.judges import NoDistributionError, distribution, raw_text

Body = dict[str, Any]
# What a model that cannot be kept from thinking may think, on top of the tokens of its answer.
THINKING_TOKENS = 2_048


@dataclass(frozen=True)
class Compared:
    """A pair as a program is shown it: the question, and each object's text or the data URL of its picture."""

    question: str
    first: str
    second: str


@dataclass(frozen=True)
class Question:
    """One chat with a model, in the messages of the OpenAI protocol.

    Args:
        model: its name on the server.
        messages: system and user messages; a picture is a part of the kind `image_url` that holds a data URL.
        max_tokens: of the answer.
        temperature, seed: of the sampling.
        choices: texts that the answer is confined to, where the server can do that.
        log_probabilities: whether those of the most probable first tokens are asked for.
        thinking: how many tokens the model may think before its answer; None where it is not to think.
        compared: the pair that the messages show; only a program reads it.
    """

    model: str
    messages: Sequence[Body] = ()
    max_tokens: int = 1
    temperature: float = 1.0
    seed: int = 0
    choices: Sequence[str] = ()
    log_probabilities: bool = False
    thinking: int | None = None
    compared: Compared | None = None


@dataclass(frozen=True)
class Path:
    """Where a request goes: below the base URL, or beside its `/v1`."""

    text: str
    is_beside: bool = False


CHAT = Path("/chat/completions")
_COMPLETIONS = Path("/completions")
# One answer a request: vLLM gives the second of n the seed after the first one's.
NEUTRAL: Body = {"top_p": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "n": 1, "stream": False}
# How a server shows that it reads a field, by its usual name: what is changed in the body (`abilities.py`).
TRIALS: dict[str, Body] = {
    "temperature": {"temperature": 0.01},
    "top_p": {"top_p": 0.0001},
    "seed": {},
    "penalties": {"frequency_penalty": 2.0},
}
_NOBODY = re.compile(r"(?!)")


@dataclass(frozen=True)
class Writing:
    """How a kind of server goes on from token ids, so that its models can write texts.

    Args:
        path: where a completion goes.
        limit_field: that of the most new tokens.
        fields: those that let ids go in and come out.
        read: what a reply continued the prompt with, from reply, prompt, limit and temperature.
    """

    path: Path
    limit_field: str
    fields: Mapping[str, Any]
    read: Callable[[Body, Sequence[int], int, float], replies.Continuation]

    def body(self, model: str, prompt: Sequence[int], limit: int) -> Body:
        """Return the body of a completion with token ids in and out, but for its sampling."""
        return {"model": model, "prompt": list(prompt), self.limit_field: limit, **self.fields}


@dataclass(frozen=True)
class Server:
    """The facts of a kind of server, and how it is asked by them.

    Args:
        hosts: endings of the names of hosts that are known to be of this kind.
        key_header, key_prefix: the header that carries the key, and what stands before the key.
        chat_path, is_beside: where a chat goes; {model} is the model's name.
        limit_field: that of the most tokens.
        bounds_the_answer_alone: whether that limit is the answer's, and not that of thinking and answer together.
        neutral: the fields that switch off all that changes probabilities but the temperature.
        sets_temperature: whether it takes another temperature than 1.
        hottest: the highest temperature that it takes.
        takes_seed: whether it has a field for the seed.
        confined: the fields that confine an answer to some texts; None where it knows none.
        most_log_probabilities: how many first tokens it tells; 0 where it tells none.
        ends: its words for an end that the model chose.
        has_detail: whether it has a field for how closely its model looks at pictures.
        not_thinking: the fields that switch thinking off, which would use up the few tokens.
        thinking: those that let a model think at most so many tokens; None where it cannot be told to think.
        least_thinking: how much at the least that must be.
        thinks_at_any_temperature: whether a model takes another temperature than 1 while it thinks.
        cannot_but_think: names of the models that think whatever they are told.
        least_effort: the fields that keep the thoughts of these short.
        names_its_provider: whether a reply says who answered in its place, which is a part of the identity.
        why_plain: why its sampling is known to be changed by nothing but the temperature; empty where it is not known.
        trials: how it shows that it reads a field.
        completes: whether it goes on from a text, without a chat template.
        writing: how it goes on from token ids; None where it takes or returns none.
        varies: fields of the body that differ from request to request, with dots where they are nested.
    """

    hosts: tuple[str, ...] = ()
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    chat_path: str = CHAT.text
    is_beside: bool = False
    limit_field: str = "max_tokens"
    bounds_the_answer_alone: bool = True
    neutral: Mapping[str, Any] = field(default_factory=lambda: NEUTRAL)
    sets_temperature: bool = True
    hottest: float = 2.0
    takes_seed: bool = True
    confined: Callable[[Sequence[str]], Body] | None = None
    most_log_probabilities: int = 20
    ends: tuple[str, ...] = ("stop",)
    has_detail: bool = False
    not_thinking: Mapping[str, Any] = field(default_factory=dict)
    thinking: Callable[[int], Body] | None = None
    least_thinking: int = 1
    thinks_at_any_temperature: bool = True
    cannot_but_think: re.Pattern[str] = _NOBODY
    least_effort: Mapping[str, Any] = field(default_factory=dict)
    names_its_provider: bool = False
    why_plain: str = ""
    trials: Mapping[str, Body] = field(default_factory=lambda: TRIALS)
    completes: bool = False
    writing: Writing | None = None
    varies: tuple[str, ...] = ("messages", "seed")

    @property
    def has_confinement(self) -> bool:
        """Whether an answer can be confined to some texts."""
        return self.confined is not None

    @property
    def has_log_probabilities(self) -> bool:
        """Whether it has a field for those of the first tokens."""
        return self.most_log_probabilities > 0

    @property
    def can_think(self) -> bool:
        """Whether it can be told to think."""
        return self.thinking is not None

    @property
    def has_token_ids(self) -> bool:
        """Whether token ids can go in and come out."""
        return self.writing is not None

    def completing(self) -> "Server | None":
        """Return how it is asked to go on from a text; None where a server of this kind takes chats only."""
        return Completing(**vars(self) | {"varies": ("prompt", "seed")}) if self.completes else None

    def taking(self, messages: Sequence[Body]) -> "Server":
        """Return how it is asked: for a chat, or for what follows a text (`raw_text`).

        Raises:
            Unable: it takes chats only.
        """
        if raw_text(messages) is None:
            return self
        if (found := self.completing()) is None:
            raise Unable("a server of this kind takes chats only, and completes no text")
        return found

    def path(self, model: str) -> Path:
        """Return where a chat with a model goes."""
        return Path(self.chat_path.format(model=quote(model, safe="")), self.is_beside)

    def body(self, question: Question) -> Body:
        """Return the body of a request for one answer."""
        head = {"model": question.model, "messages": list(question.messages), self.limit_field: self.limit(question)}
        thinks = self.thinking_fields(question)
        return head | thinks | self.sampling(question.temperature, question.seed) | self.extras(question)

    def limit(self, question: Question) -> int:
        """Return the most tokens of an answer, with those of the thought before it."""
        if question.thinking is not None:
            return question.max_tokens + question.thinking
        return question.max_tokens + (THINKING_TOKENS if self.cannot_but_think.search(question.model) else 0)

    def thinking_fields(self, question: Question) -> Body:
        """Return the fields that let a model think as much as the question says, or keep it from thinking."""
        if question.thinking is not None:
            return self.thinking(question.thinking) if self.thinking else {}
        return dict(self.least_effort if self.cannot_but_think.search(question.model) else self.not_thinking)

    def sampling(self, temperature: float, seed: int) -> Body:
        """Return the fields of plain temperature sampling."""
        heat = {"temperature": temperature} if self.sets_temperature else {}
        return heat | dict(self.neutral) | ({"seed": seed} if self.takes_seed else {})

    def extras(self, question: Question) -> Body:
        """Return the fields that confine the answer, or ask for log-probabilities, where the question wants that."""
        fields = self.confined(question.choices) if self.confined and self.is_confined(question) else {}
        if question.log_probabilities:
            fields = fields | {"logprobs": True, "top_logprobs": self.most_log_probabilities}
        return fields

    def is_confined(self, question: Question) -> bool:
        """Say whether an answer is confined to the question's choices; a thought could not be."""
        return self.confined is not None and bool(question.choices) and question.thinking is None

    def changed(self, question: Question, changes: Mapping[str, Any]) -> Body:
        """Return the body with some fields, named as in `varies`, set to other values."""
        body = self.body(question)
        for name, value in changes.items():
            outer, _, inner = name.partition(".")
            body[outer] = body[outer] | {inner: value} if inner else value
        return body

    def settled(self, question: Question) -> Body:
        """Return the body without what differs from request to request."""
        return _without(self.body(question), self.varies)

    def as_chat(self, reply: Body) -> Body:
        """Return a reply in the form of a chat completion, whatever it holds."""
        return reply

    def text(self, reply: Body, question: Question) -> str | None:
        """Return the text of the one answer; None where there is none, or a filter or a refusal stands in its place.

        A text that may not count comes with a mark at its end, which makes it no answer to any parser: it was cut
        off, or the server says for its end what a server of this kind is not known to say.

        Raises:
            Unable, Refused: it is no text, or an error that asking again does not change.
            TryLater: the server failed, or the reply is not what the protocol says.
        """
        said = self._said(reply)
        if not said.text or not said.text.strip() or said.finish in self.ends:
            return said.text
        if said.finish != "length":
            return f"{said.text} [finish_reason: {replies.shown(said.finish)}]"
        return said.text if self._is_whole(said, question) else f"{said.text}…"

    def first_token(self, reply: Body, question: Question) -> list[tuple[str, float]]:
        """Return the most probable first tokens with their log-probabilities.

        Raises:
            Unable: the server returns none.
            NoDistribution: they are no distribution over the first token of an answer.
            TryLater: as `text` does.
        """
        said = self._said(reply)
        first = replies.first_token(self.as_chat(reply))
        text, token = (said.text or "").strip(), first.token.strip()
        if said.thought:
            raise NoDistribution("the reply holds a thought, whose tokens the log-probabilities may be those of")
        if said.finish != "length" and said.finish not in self.ends:
            raise NoDistribution(f"the reply ended for the reason {replies.shown(said.finish)}")
        # A token that ends the answer leaves no text.
        if text != token and (text or said.finish == "length"):
            raise NoDistribution(f"the reply is {replies.shown(text)}, and its first token {replies.shown(token)}")
        confined_to = question.choices if self.is_confined(question) else ()
        try:
            return distribution(first.entries, (first.token, first.log_probability), confined_to)
        except NoDistributionError as error:
            raise NoDistribution(str(error)) from None

    def reasoning(self, reply: Body) -> str:
        """Return what the model thought, where the reply says it; empty where it does not. Never the answer."""
        return replies.reasoning(self.as_chat(reply))

    def tokens_used(self, reply: Body) -> tuple[int, int]:
        """Return the tokens read and written, those of thinking included; 0 where the server does not count them."""
        return replies.tokens_used(self.as_chat(reply))

    def identity(self, reply: Body) -> Identity:
        """Return which model a reply says that it is from."""
        found = identity_of(self.as_chat(reply))
        if not self.names_its_provider:
            return found
        provider = identity_of({"model": reply.get("provider")}).model
        named = " ".join(filter(None, (provider, found.system_fingerprint)))
        return identity_of({"model": found.model, "system_fingerprint": named})

    def wait(self, headers: Mapping[str, str], reply: Any) -> float | None:
        """Return how many seconds a reply that is an error asks to wait; None where it does not say.

        Args:
            headers: of the reply.
            reply: its JSON; None if it is none.
        """
        return waits.asked(headers, replies.error_in(reply))

    def is_filtered(self, status: int, reply: Any) -> bool:
        """Say whether a reply that is an error says that a filter has refused the prompt."""
        error = replies.error_in(reply)
        metadata = error.get("metadata")
        is_moderated = status == 403 and isinstance(metadata, dict) and "reasons" in metadata
        return is_moderated or (status == 400 and error.get("code") in ("content_filter", "content_policy_violation"))

    def failure(self, status: int, headers: Mapping[str, str], reply: Any, words: str) -> EndpointError:
        """Return what a reply with the status of an error means for whoever asked.

        Args:
            words: of the server, for a person to read.
        """
        reason = f"the server answered {status}: {words}"
        if self.is_filtered(status, reply):
            return Unparsable(f"a content filter of the server refused the prompt: {words}")
        if replies.is_spent(replies.error_in(reply)):
            return Refused(reason)
        return by_status(status, reason, self.wait(headers, reply))

    def _said(self, reply: Body) -> replies.Said:
        said = replies.said(self.as_chat(reply))
        if said.finish in ("error", "abort"):
            raise ServerError(f"the server ended its reply with {said.finish}")
        return said

    def _is_whole(self, said: replies.Said, question: Question) -> bool:
        """Say whether a text that reached the limit is the whole answer all the same."""
        text = said.text or ""
        if said.thought or question.thinking is not None:
            return False
        if self.is_confined(question) and text in question.choices:
            # A rating of 1 may be the beginning of a 10.
            return sum(choice.startswith(text) for choice in question.choices) == 1
        # One token was asked for, to see which comes first.
        return question.max_tokens == 1


class Completing(Server):
    """A server of some kind, asked to go on from a text: the `/completions` of the OpenAI protocol.

    Path and fields are those of OpenAI's old completions, as vLLM, llama.cpp and SGLang share them; only llama.cpp has
    really been asked. An answer ends with its line. Log-probabilities come as a list of objects (`top_logprobs`), or in
    llama.cpp as those of a chat (`content`).
    """

    def path(self, model: str) -> Path:
        """Return where a completion goes."""
        return _COMPLETIONS

    def body(self, question: Question) -> Body:
        """Return the body of a request for what follows a text."""
        head = {"model": question.model, "prompt": raw_text(question.messages), "max_tokens": question.max_tokens}
        return head | self.sampling(question.temperature, question.seed) | {"stop": ["\n"]} | self.extras(question)

    def extras(self, question: Question) -> Body:
        """Return the fields that confine the answer, or ask for log-probabilities: here by their number."""
        fields = self.confined(question.choices) if self.confined and question.choices else {}
        return fields | ({"logprobs": self.most_log_probabilities} if question.log_probabilities else {})

    def is_confined(self, question: Question) -> bool:
        """Say whether an answer is confined; what follows a text is never a thought."""
        return self.confined is not None and bool(question.choices)

    def as_chat(self, reply: Body) -> Body:
        """Return a completion in the form of a chat completion."""
        return replies.completion_as_chat(reply)


def _without(body: Body, names: Sequence[str]) -> Body:
    """Return a body without some of its fields."""
    left = dict(body)
    for name in names:
        outer, _, inner = name.partition(".")
        if not inner:
            left.pop(outer, None)
        elif outer in left:
            left[outer] = _without(left[outer], (inner,))
    return left
