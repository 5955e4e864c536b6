"""What every kind of server has to say for itself: how a chat is asked of it, and where its answer stands.

`Server` speaks the OpenAI protocol as far as servers share it. A file beside this one changes what is different.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from prefmh_web.endpoints import replies, waits
from prefmh_web.endpoints.errors import Unable
from prefmh_web.endpoints.identity import Identity, identity_of
from sampler.judges import raw_text

Body = dict[str, Any]
# What a model that cannot be kept from thinking may think, on top of the tokens of its answer.
THINKING_TOKENS = 2_048


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
    """

    model: str
    messages: Sequence[Body] = ()
    max_tokens: int = 1
    temperature: float = 1.0
    seed: int = 0
    choices: Sequence[str] = ()
    log_probabilities: bool = False
    thinking: int | None = None


@dataclass(frozen=True)
class Path:
    """Where a request goes: below the base URL, or beside its `/v1`."""

    text: str
    is_beside: bool = False


class Server:
    """A kind of server that speaks the OpenAI protocol.

    Attributes:
        hosts: endings of the names of hosts that are known to be of this kind.
        has_token_ids: whether token ids can go in and come out.
        has_confinement: whether an answer can be confined to some texts.
        has_detail: whether it has a field for how closely its model looks at pictures.
        has_log_probabilities: whether it has a field for those of the first tokens.
        most_log_probabilities: how many first tokens it tells; the labels are among the first few where the model is
            willing to answer.
        hottest: the highest temperature that it takes.
        sets_temperature: whether it takes another temperature than 1.
        key_header, key_prefix: the header that carries the key, and what stands before the key.
        headers: sent with every request.
        varies: fields of the body that differ from request to request, with dots where they are nested.
        why_plain: why its sampling is known to be changed by nothing but the temperature; empty where it is not known.
    """

    hosts: ClassVar[tuple[str, ...]] = ()
    has_token_ids: ClassVar[bool] = False
    has_confinement: ClassVar[bool] = False
    has_detail: ClassVar[bool] = False
    has_log_probabilities: ClassVar[bool] = True
    most_log_probabilities: ClassVar[int] = 20
    hottest: ClassVar[float] = 2.0
    sets_temperature: ClassVar[bool] = True
    key_header: ClassVar[str] = "Authorization"
    key_prefix: ClassVar[str] = "Bearer "
    headers: ClassVar[Mapping[str, str]] = {}
    varies: ClassVar[tuple[str, ...]] = ("messages", "seed")
    why_plain: ClassVar[str] = ""
    # How a server shows that it reads a field, by its usual name: what is changed in the body (`negotiation.py`).
    trials: ClassVar[Mapping[str, Body]] = {
        "temperature": {"temperature": 0.01},
        "top_p": {"top_p": 0.0001},
        "seed": {},
        "penalties": {"frequency_penalty": 2.0},
    }
    limit_field: ClassVar[str] = "max_tokens"
    # Whether the limit is that of the answer, and not of thinking and answer together.
    bounds_the_answer_alone: ClassVar[bool] = True
    # Top-k, min-p and all else that changes probabilities, off; and thinking, which would use up the few tokens.
    plain: ClassVar[Body] = {}
    not_thinking: ClassVar[Body] = {}
    # Whether it can be told to think, and how much at the least that must be.
    can_think: ClassVar[bool] = False
    least_thinking: ClassVar[int] = 1
    # Whether a model takes another temperature than 1 while it thinks.
    thinks_at_any_temperature: ClassVar[bool] = True

    def completing(self) -> "Server | None":
        """Return how it is asked to go on from a text; None where a server of this kind takes chats only."""
        return None

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
        return Path("/chat/completions")

    def body(self, question: Question) -> Body:
        """Return the body of a request for one answer."""
        limit = {"max_tokens": question.max_tokens + (question.thinking or 0)}
        thinks = self.not_thinking if question.thinking is None else self.thinking(question.thinking)
        head = {"model": question.model, "messages": list(question.messages), **limit, **thinks}
        return head | self.sampling(question.temperature, question.seed) | self.extras(question)

    def sampling(self, temperature: float, seed: int) -> Body:
        """Return the fields of plain temperature sampling."""
        return {
            "temperature": temperature,
            "top_p": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            # One answer a request: vLLM gives the second of n the seed after the first one's.
            "n": 1,
            "seed": seed,
            "stream": False,
            **self.plain,
        }

    def thinking(self, most: int) -> Body:
        """Return the fields that let a model think at most so many tokens; the limit has room for them."""
        return {}

    def extras(self, question: Question) -> Body:
        """Return the fields that confine the answer, or ask for log-probabilities, where the question wants that."""
        # A thought could not be confined to the answers.
        fields = self.confined(question.choices) if question.choices and question.thinking is None else {}
        if question.log_probabilities:
            fields = fields | {"logprobs": True, "top_logprobs": self.most_log_probabilities}
        return fields

    def confined(self, choices: Sequence[str]) -> Body:
        """Return the fields that confine an answer to some texts; none where the server knows no such field."""
        return {}

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

    def text(self, reply: Body) -> str | None:
        """Return the text of the one answer; None where there is none, or a filter or a refusal stands in its place.

        Raises:
            BadReply: the reply is not what the protocol says.
        """
        return replies.chat_text(reply)

    def first_token(self, reply: Body) -> list[tuple[str, float]]:
        """Return the most probable first tokens with their log-probabilities.

        Raises:
            Unable: the server returns none.
            BadReply: the reply is not what the protocol says.
        """
        return replies.first_token(reply)

    def reasoning(self, reply: Body) -> str:
        """Return what the model thought, where the reply says it; empty where it does not. Never the answer."""
        return replies.reasoning(reply)

    def tokens_used(self, reply: Body) -> tuple[int, int]:
        """Return the tokens read and written, those of thinking included; 0 where the server does not count them."""
        return replies.tokens_used(reply)

    def identity(self, reply: Body) -> Identity:
        """Return which model a reply says that it is from."""
        return identity_of(reply)

    def wait(self, headers: Mapping[str, str], reply: Any) -> float | None:
        """Return how many seconds a reply that is an error asks to wait; None where it does not say.

        Args:
            headers: of the reply.
            reply: its JSON; None if it is none.
        """
        return waits.retry_after(headers)

    def is_filtered(self, status: int, reply: Any) -> bool:
        """Say whether a reply that is an error says that a filter has refused the prompt."""
        return False


def parts_of(message: Body) -> list[Body]:
    """Return the parts of a message's content, of the kinds `text` and `image_url`."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def picture_of(part: Body) -> tuple[str, str]:
    """Return the media type and the base64 text of a part that is a picture."""
    media_type, _, data = part["image_url"]["url"].removeprefix("data:").partition(";base64,")
    return media_type, data


def words_of(messages: Sequence[Body], role: str) -> str:
    """Return the texts of all messages of a role."""
    parts = [part for message in messages if message["role"] == role for part in parts_of(message)]
    return "\n\n".join(part["text"] for part in parts)


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
