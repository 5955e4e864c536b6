"""How model servers are asked and read: chat completions, by the facts of each kind of server (`servers.toml`).

All of them speak OpenAI's chat completions,
but for Ollama, whose path for these takes no top-k and no min-p, and for programs, which are sent the pair itself.

Every field that shapes the sampling is sent every time: servers fill in what is missing from the model's own
`generation_config.json`, or from defaults that truncate.

A reply counts only if it says that it ended by itself. Anything else comes back as a text that no parser takes for an
answer, so that a person can still read it.
"""

import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.db import models

from prefmh_web.endpoints import replies
from prefmh_web.endpoints.errors import NoDistribution, ServerError
from prefmh_web.endpoints.replies import Identity, identity_of
from sampler.judges import LABELS, NoDistributionError, distribution, shown

Body = dict[str, Any]
# What a model that cannot be kept from thinking may think, on top of the tokens of its answer.
THINKING_TOKENS = 2_048


@dataclass(frozen=True)
class ComparedPair:
    """A pair as a program is shown it: the question, and each object's text or the data URL of its picture."""

    question: str
    first: str
    second: str


@dataclass(frozen=True)
class ChatRequest:
    """One chat with a model, in the messages of the OpenAI protocol.

    Args:
        model: its name on the server.
        messages: system and user messages; a picture is a part of the kind `image_url` that holds a data URL.
        max_tokens: of the answer.
        temperature, seed: of the sampling.
        choices: texts that the answer is constrained to, where the server can do that.
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
    compared: ComparedPair | None = None


CHAT = "/chat/completions"
# One answer a request: vLLM gives the second of n the seed after the first one's.
NEUTRAL: Body = {"top_p": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "n": 1, "stream": False}
# What hosted models take for a picture of some size (`Server.picture_tokens`).
_BYTES_A_TOKEN, _A_PICTURE = 3, 1_000


@dataclass(frozen=True)
class Writing:
    """How a kind of server goes on from token ids, so that its models can write texts.

    Args:
        path, is_at_root: where a completion goes, below the base URL or beside its /v1.
        limit_field: that of the most new tokens.
        fields: those that let ids go in and come out.
        form: of its replies, a key of `CONTINUATIONS` in `replies.py`.
    """

    form: str
    path: str
    limit_field: str
    fields: Mapping[str, Any]
    is_at_root: bool = False

    def read(self, reply: Body, prompt: Sequence[int], limit: int, temperature: float) -> replies.Continuation:
        """Return what a reply continued a prompt with."""
        return replies.CONTINUATIONS[self.form](reply, prompt, limit, temperature)

    def body(self, model: str, prompt: Sequence[int], limit: int) -> Body:
        """Return the body of a completion with token ids in and out, but for its sampling."""
        return {"model": model, "prompt": list(prompt), self.limit_field: limit, **self.fields}


@dataclass(frozen=True)
class Server:
    """The facts of a kind of server, and how it is asked by them.

    Args:
        hosts: endings of the names of hosts that are known to be of this kind.
        key_header, key_prefix: the header that carries the key, and what stands before the key.
        chat_path, is_at_root: where a chat goes, below the base URL or beside its /v1; {model} is the model's name.
        limit_field: that of the most tokens.
        neutral: the fields that switch off all that changes probabilities but the temperature.
        sets_temperature: whether it takes another temperature than 1.
        hottest: the highest temperature that it takes.
        takes_seed: whether it has a field for the seed.
        constrained: the fields that constrain an answer to some texts; None where it knows none.
        max_log_probabilities: how many first tokens it tells; 0 where it tells none.
        ends: its words for an end that the model chose.
        has_detail: whether it has a field for how closely its model looks at pictures.
        not_thinking: the fields that switch thinking off, which would use up the few tokens.
        thinking: those that let a model think at most so many tokens; None where it cannot be told to think.
        least_thinking: how much at the least that must be.
        thinks_at_any_temperature: whether a model takes another temperature than 1 while it thinks.
        cannot_but_think: a regular expression that finds the names of models which think whatever they are told.
        least_effort: the fields that keep the thoughts of these short.
        names_its_provider: whether a reply says who answered in its place, which is a part of the identity.
        why_untruncated: why its sampling is known to be changed by the temperature alone; empty where it is not known.
        writing: how it goes on from token ids; None where it takes or returns none.
        picture_tokens: of one picture of up to 1024 by 1024 pixels at most, by the documentation; 0 where it does not
            say.
    """

    hosts: Sequence[str] = ()
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    chat_path: str = CHAT
    is_at_root: bool = False
    limit_field: str = "max_tokens"
    neutral: Mapping[str, Any] = field(default_factory=lambda: NEUTRAL)
    sets_temperature: bool = True
    hottest: float = 2.0
    takes_seed: bool = True
    constrained: Mapping[str, Any] | None = None
    max_log_probabilities: int = 20
    ends: Sequence[str] = ("stop",)
    has_detail: bool = False
    not_thinking: Mapping[str, Any] = field(default_factory=dict)
    thinking: Mapping[str, Any] | None = None
    least_thinking: int = 1
    thinks_at_any_temperature: bool = True
    cannot_but_think: str = r"(?!)"
    least_effort: Mapping[str, Any] = field(default_factory=dict)
    names_its_provider: bool = False
    why_untruncated: str = ""
    writing: Writing | None = None
    picture_tokens: int = 0

    @property
    def has_log_probabilities(self) -> bool:
        """Whether it has a field for those of the first tokens."""
        return self.max_log_probabilities > 0

    def path(self, model: str) -> str:
        """Return where a chat with a model goes."""
        return self.chat_path.format(model=quote(model, safe=""))

    def body(self, question: ChatRequest) -> Body:
        """Return the body of a request for one answer."""
        head = {"model": question.model, "messages": list(question.messages), self.limit_field: self.limit(question)}
        thinks = self.thinking_fields(question)
        return head | thinks | self.sampling(question.temperature, question.seed) | self.extras(question)

    def limit(self, question: ChatRequest) -> int:
        """Return the most tokens of an answer, with those of the thought before it."""
        if question.thinking is not None:
            return question.max_tokens + question.thinking
        return question.max_tokens + (THINKING_TOKENS if self._cannot_but_think(question) else 0)

    def estimate(self, question: ChatRequest) -> int:
        """Return about how many tokens a question reads and may write, before it is asked.

        On the safe side, since what the reply says counts instead: English has four characters a token, other scripts
        fewer.
        """
        contents = [message["content"] for message in question.messages]
        parts = [part for content in contents for part in ([content] if isinstance(content, str) else content)]
        texts = [part if isinstance(part, str) else part.get("text") for part in parts]
        read = (_A_PICTURE if text is None else len(text.encode(errors="replace")) / _BYTES_A_TOKEN for text in texts)
        return self.limit(question) + math.ceil(sum(read))

    def thinking_fields(self, question: ChatRequest) -> Body:
        """Return the fields that let a model think as much as the question says, or keep it from thinking."""
        if question.thinking is not None:
            return _filled(self.thinking or {}, {"{most}": question.thinking})
        return dict(self.least_effort if self._cannot_but_think(question) else self.not_thinking)

    def _cannot_but_think(self, question: ChatRequest) -> bool:
        return re.search(self.cannot_but_think, question.model) is not None

    def sampling(self, temperature: float, seed: int) -> Body:
        """Return the fields of plain temperature sampling."""
        heat = {"temperature": temperature} if self.sets_temperature else {}
        return heat | dict(self.neutral) | ({"seed": seed} if self.takes_seed else {})

    def extras(self, question: ChatRequest) -> Body:
        """Return the fields that constrain the answer, or ask for log-probabilities, where the question wants that."""
        fields: Body = {}
        if self.constrained is not None and self.is_constrained(question):
            rule = "root ::= " + " | ".join(json.dumps(choice) for choice in question.choices)
            fields = _filled(self.constrained, {"{choices}": list(question.choices), "{grammar}": rule})
        if question.log_probabilities:
            fields = fields | {"logprobs": True, "top_logprobs": self.max_log_probabilities}
        return fields

    def is_constrained(self, question: ChatRequest) -> bool:
        """Say whether an answer is constrained to the question's choices; a thought could not be."""
        return self.constrained is not None and bool(question.choices) and question.thinking is None

    def settled(self, question: ChatRequest) -> Body:
        """Return the body without what differs from request to request."""
        return _settled(self.body(question))

    def as_chat(self, reply: Body) -> Body:
        """Return a reply in the form of a chat completion, whatever it holds."""
        return reply

    def text(self, reply: Body, question: ChatRequest) -> str | None:
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
            return f"{said.text} [finish_reason: {shown(said.finish)}]"
        return said.text if self._is_whole(said, question) else f"{said.text}…"

    def first_token(self, reply: Body, question: ChatRequest) -> list[tuple[str, float]]:
        """Return the most probable first tokens with their log-probabilities.

        Raises:
            Unable: the server returns none.
            NoDistribution: they are no distribution over the first token of an answer.
            TryLater: as `text` does.
        """
        said = self._said(reply)
        first = replies.first_token(self.as_chat(reply))
        text, token = (said.text or "").strip(), first.token.strip()
        if said.has_thought:
            raise NoDistribution("the reply holds a thought, whose tokens the log-probabilities may be those of")
        if said.finish != "length" and said.finish not in self.ends:
            raise NoDistribution(f"the reply ended for the reason {shown(said.finish)}")
        # A token that ends the answer leaves no text; a label would be one.
        if text != token and (text or said.finish == "length" or token in LABELS):
            raise NoDistribution(f"the reply is {shown(text)}, and its first token {shown(token)}")
        constrained_to = question.choices if self.is_constrained(question) else ()
        try:
            return distribution(first.entries, (first.token, first.log_probability), constrained_to)
        except NoDistributionError as error:
            raise NoDistribution(str(error)) from None

    def identity(self, reply: Body) -> Identity:
        """Return which model a reply says that it is from."""
        found = identity_of(self.as_chat(reply))
        if not self.names_its_provider:
            return found
        provider = identity_of({"model": reply.get("provider")}).model
        named = " ".join(filter(None, (provider, found.system_fingerprint)))
        return identity_of({"model": found.model, "system_fingerprint": named})

    def _said(self, reply: Body) -> replies.ReplyContent:
        said = replies.said(self.as_chat(reply))
        if said.finish in ("error", "abort"):
            raise ServerError(f"the server ended its reply with {said.finish}")
        return said

    def _is_whole(self, said: replies.ReplyContent, question: ChatRequest) -> bool:
        """Say whether a text that reached the limit is the whole answer all the same."""
        text = said.text or ""
        if said.has_thought or question.thinking is not None:
            return False
        if self.is_constrained(question) and text in question.choices:
            # A rating of 1 may be the beginning of a 10.
            return sum(choice.startswith(text) for choice in question.choices) == 1
        # One token was asked for, to see which comes first.
        return question.max_tokens == 1


def _filled(fields: Mapping[str, Any], holes: Mapping[str, object]) -> Body:
    """Return fields of a request with what stands in their holes, such as {most}."""
    return {
        name: _filled(value, holes) if isinstance(value, Mapping) else holes.get(str(value), value)
        for name, value in fields.items()
    }


# Fields of a body that differ from request to request.
_VARIES = frozenset({"messages", "prompt", "seed", "question", "first", "second"})


def _settled(body: Body) -> Body:
    return {
        name: _settled(value) if isinstance(value, dict) else value
        for name, value in body.items()
        if name not in _VARIES
    }


class Dialect(models.TextChoices):
    """The kind of server."""

    OPENAI = "openai", "OpenAI or alike"
    VLLM = "vllm", "vLLM"
    LLAMA_CPP = "llama.cpp", "llama.cpp"
    SGLANG = "sglang", "SGLang"
    OLLAMA = "ollama", "Ollama"
    OPENAI_REASONING = "openai-reasoning", "OpenAI, models that reason"
    AZURE = "azure", "Azure OpenAI"
    AZURE_REASONING = "azure-reasoning", "Azure OpenAI, models that reason"
    OPENROUTER = "openrouter", "OpenRouter"
    ANTHROPIC = "anthropic", "Anthropic"
    GEMINI = "gemini", "Gemini"
    PROGRAM = "program", "A program of your own"

    @property
    def server(self) -> Server:
        """How such a server is spoken to."""
        return _SERVERS[self]


def dialect_of_host(host: str) -> Dialect | None:
    """Return the kind of server that is known to answer under a host's name; None where none is."""
    for dialect, server in _SERVERS.items():
        if any(host == name or (name.startswith(".") and host.endswith(name)) for name in server.hosts):
            return dialect
    return None


class _Ollama(Server):
    """Ollama's own path, since the one that speaks as OpenAI does takes no top-k and no min-p.

    https://docs.ollama.com/api/chat with https://docs.ollama.com/openapi.yaml (2026-11-23). Fields that are missing
    come from the model's Modelfile, or from defaults that truncate (top-k 40, top-p 0.9). In `sample/samplers.go` of
    ollama/ollama (2026-11-23) a top-k of no less than the vocabulary, a top-p of 1 and a min-p of 0 change nothing.
    Prompts that do not fit are cut without a word unless `truncate` is false. Thoughts come in a field of their own;
    the limit, which counts them as well, is what bounds them. Log-probabilities came with version 0.12.11.
    """

    def body(self, question: ChatRequest) -> Body:
        """Return the body of a request for one answer."""
        options = self.sampling(question.temperature, question.seed) | {self.limit_field: self.limit(question)}
        return {
            "model": question.model,
            "messages": [each for message in question.messages for each in _pictures_apart(message)],
            "stream": False,
            "think": question.thinking is not None,
            "truncate": False,
            "shift": False,
            "options": options,
            **self.extras(question),
        }

    def as_chat(self, reply: Body) -> Body:
        """Return a reply in the form of a chat completion."""
        choice = {"finish_reason": reply.get("done_reason"), "logprobs": {"content": reply.get("logprobs")}}
        choice |= {"message": reply["message"]} if "message" in reply else {}
        usage = {"prompt_tokens": reply.get("prompt_eval_count"), "completion_tokens": reply.get("eval_count")}
        return {**reply, "choices": [choice], "usage": usage}


def _pictures_apart(message: Body) -> list[Body]:
    """Return a message as one or more: each picture in one of its own, so that it stands where it stood.

    Ollama puts the pictures of a message before its text, and joins messages of one role.
    """
    role, content = message["role"], message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    found: list[Body] = []
    for kind, group in groupby(parts, key=lambda part: part["type"]):
        if kind == "text":
            found.append({"role": role, "content": "\n".join(part["text"] for part in group)})
        else:
            pictures = [part["image_url"]["url"].partition(";base64,")[2] for part in group]
            found.extend({"role": role, "content": "", "images": [picture]} for picture in pictures)
    return found


class _Program(Server):
    """A program of the researcher's, which compares two objects and is no language model.

    It is sent the question with both objects, each as its text or as the data URL of its picture, and answers
    {"choice": "A"} or {"choice": "B"}, with a "version" where it has one. It samples as it likes.
    """

    def body(self, question: ChatRequest) -> Body:
        """Return the pair; where there is none, as in a test of the endpoint, the words of the chat."""
        pair = question.compared
        if pair is None:
            pair = ComparedPair("\n".join(str(message["content"]) for message in question.messages), "A", "B")
        return {"question": pair.question, "first": pair.first, "second": pair.second}

    def as_chat(self, reply: Body) -> Body:
        """Return a reply in the form of a chat completion: a program's answer is whole, or an error."""
        choice = {"message": {"content": reply.get("choice")}, "finish_reason": "stop"}
        version = reply.get("version")
        named = str(version) if isinstance(version, str | int | float) else None
        return {"choices": [choice], "error": reply.get("error"), "model": "program", "system_fingerprint": named}


_FORMS: dict[str, type[Server]] = {Dialect.OLLAMA: _Ollama, Dialect.PROGRAM: _Program}


def _read() -> Iterator[tuple[Dialect, Server]]:
    text = Path(__file__).with_name("servers.toml").read_text(encoding="utf-8")
    for name, facts in tomllib.loads(text).items():
        writing = {"writing": Writing(**facts["writing"])} if "writing" in facts else {}
        yield Dialect(name), _FORMS.get(name, Server)(**facts | writing)


_SERVERS = dict(_read())
