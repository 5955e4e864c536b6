"""What servers answer: pydantic reads its shape, and what is said here tells a bad reply from a server that is unable.

Each function takes the JSON of a reply with status 200 and returns what was asked for, or raises `BadReply` when it is
not what the protocol says, `Unable` when it shows that the server did something else than it was asked to, or what an
error in its place means. A value may be anything that JSON can hold: nested deeply, a number of four thousand digits,
half of a surrogate pair.
"""

import json
import re
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeGuard, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from prefmh_web.endpoints import waits
from prefmh_web.endpoints.errors import BadReply, NoDistribution, Refused, Unable, by_status

# llama.cpp's settings of plain temperature sampling, as it repeats them.
_LLAMA_CPP_PLAIN = {"samplers": ["temperature"], "grammar": "", "logit_bias": [], "mirostat": 0}
# More than any model reads or writes in one request, or has in its vocabulary; what is larger is no count and no id.
_LARGEST_COUNT = 2**31 - 1
# No token says more; the longest ones are runs of white space.
_LONGEST_TOKEN = 1000
_LONGEST_SHOWN = 40
# What a database cannot store in a text.
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")


@dataclass(frozen=True)
class Continuation:
    """New tokens; the end-of-sequence token is the last of them if `ended`."""

    tokens: tuple[int, ...]
    ended: bool


def parsed(content: bytes) -> Any:
    """Return the value of a JSON text in UTF-8.

    Raises:
        ValueError: it is none, or one that nests too deeply, or has a number too long to be read.
    """
    try:
        return json.loads(content.decode("utf-8-sig"), parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it nests too deeply") from None


def _no_number(name: str) -> None:
    """Read NaN and infinities, which are no JSON, as null, in which other servers put them."""


def storable(text: str) -> str:
    """Return a text with U+FFFD for what no database takes: NUL, and halves of surrogate pairs."""
    return _UNSTORABLE.sub("\ufffd", text)


def _or_none(value: object, validate: ValidatorFunctionWrapHandler) -> object:
    try:
        return validate(value)
    except ValidationError:
        return None


# A text may hold halves of surrogate pairs, which pydantic's own texts may not.
Text = InstanceOf[str]
Count = Annotated[int, Field(ge=0, le=_LARGEST_COUNT)]
# What a server says beside its answer: of another shape, it is as good as not said.
Told = WrapValidator(_or_none)


class Shape(BaseModel):
    """What a reply must hold to be read: nothing is converted, and what is not named here is left alone."""

    model_config = ConfigDict(strict=True)


AnyShape = TypeVar("AnyShape", bound=Shape)
_Item = TypeVar("_Item")
_Only = Annotated[list[_Item], Field(min_length=1, max_length=1)]
_NOT_ONE_CHOICE = "the reply does not hold one choice"
_NOT_WHOLE = "the token ids are not whole numbers"


class _Counts(Shape):
    prompt_tokens: Annotated[Count | None, Told] = None
    completion_tokens: Annotated[Count | None, Told] = None


class _Counted(Shape):
    usage: Annotated[_Counts | None, Told] = None
    # llama.cpp's own path.
    tokens_evaluated: Annotated[Count | None, Told] = None
    tokens_predicted: Annotated[Count | None, Told] = None


class _Message(Shape):
    content: Any = None
    # OpenAI's words where it refuses.
    refusal: Any = None


class _Chatted(Shape):
    message: _Message
    finish_reason: Any = None


class _Chat(Shape):
    choices: _Only[_Chatted]


class _Entry(Shape):
    token: Text
    # Whatever it is: what is no log-probability is refused with the others.
    logprob: Any = None


class _Position(_Entry):
    top_logprobs: list[_Entry]


class _LogProbabilities(Shape):
    # Of all positions but the first nothing is used.
    content: list[Any]


class _Logged(Shape):
    logprobs: Annotated[_LogProbabilities | None, Told] = None


class _LoggedChat(Shape):
    choices: _Only[_Logged]


class _LlamaCppCompletion(Shape):
    generation_settings: dict[Text, Any]
    tokens: list[Count] | None = None
    # Compared with what was sent, whatever they are.
    truncated: Any = None
    stop_type: Any = None
    tokens_evaluated: Any = None
    tokens_predicted: Any = None


class _Completed(Shape):
    token_ids: list[Count] | None = None
    prompt_token_ids: Annotated[list[Any] | None, Told] = None
    finish_reason: Any = None


class _Completion(Shape):
    choices: _Only[_Completed]
    usage: Annotated[dict[Text, Any] | None, Told] = None


class _Tokenised(Shape):
    tokens: Annotated[list[Count], Field(min_length=1)]


def read_as(shape: type[AnyShape], found: object, wrong: str, **fields: str) -> AnyShape:
    """Return a value in its shape.

    Args:
        wrong: the error's words.
        fields: others for some fields, by name, where such a field is what is wrong.

    Raises:
        BadReply: it has another shape.
    """
    try:
        return shape.model_validate(found)
    except ValidationError as error:
        place = error.errors(include_url=False, include_context=False, include_input=False)[0]["loc"]
    raise BadReply(next((fields[name] for name in reversed(place) if name in fields), wrong))


def tokens_used(reply: dict[str, Any]) -> tuple[int, int]:
    """Return the tokens read and written, as the server counts them; 0 where it does not, or says what cannot be."""
    counted = _Counted.model_validate(reply)
    if counted.usage is not None:
        return counted.usage.prompt_tokens or 0, counted.usage.completion_tokens or 0
    return counted.tokens_evaluated or 0, counted.tokens_predicted or 0


@dataclass(frozen=True)
class Said:
    """One answer as it came.

    Args:
        text: None where the server sent none, or a filter or a refusal stands in its place.
        thought: what the model thought before it, in a field or a part of its own; empty where nothing came.
        finish: the server's word for why it ended, whatever that is.
    """

    text: str | None
    thought: str
    finish: Any


# What a server's template writes where the model is not to think.
_EMPTY_THOUGHT = re.compile(r"\s*<(think|thinking)>\s*</\1>\s*")


def said(reply: dict[str, Any]) -> Said:
    """Return the one answer of a chat completion."""
    _raise_error_in(reply)
    chat = read_as(_Chat, reply, _NOT_ONE_CHOICE, message="the reply holds no message")
    choice = chat.choices[0]
    text, thoughts = _words_of(choice.message.content)
    thought = reasoning(reply) or thoughts_of(thoughts)
    if choice.finish_reason == "content_filter" or choice.message.refusal:
        return Said(None, thought, choice.finish_reason)
    if text is not None and (empty := _EMPTY_THOUGHT.match(text)):
        text = text[empty.end() :]
    return Said(text, thought, choice.finish_reason)


def _words_of(content: object) -> tuple[str | None, list[object]]:
    """Return the text of a message's content, and the thoughts among its parts."""
    if content is None or isinstance(content, str):
        return content, []
    parts = content if isinstance(content, list) else [None]
    texts, thoughts = [], list[object]()
    for part in parts:
        kind, words = (part.get("type"), part.get("text")) if isinstance(part, dict) else (None, None)
        if kind == "text" and isinstance(words, str):
            texts.append(words)
        elif kind in ("thinking", "reasoning"):
            thoughts.append(words or shown(part))
        else:
            raise Unable("the message's content is neither a text nor a list of texts")
    return "".join(texts), thoughts


# What OpenAI's and Anthropic's errors are called that come with 4xx, for those that come without their status.
_REFUSING = ("invalid_request_error", "authentication_error", "permission_error", "not_found_error", "billing_error")
_LONGEST_MESSAGE = 300


def error_in(reply: Any) -> dict[str, Any]:
    """Return the object with which a reply describes an error; empty where there is none."""
    # Google's comes in a list of one.
    reply = reply[0] if isinstance(reply, list) and len(reply) == 1 else reply
    if not isinstance(reply, dict):
        return {}
    # SGLang's, and that of older vLLM.
    found = reply if reply.get("object") == "error" else reply.get("error")
    return found if isinstance(found, dict) else {"message": found} if found else {}


def is_spent(error: dict[str, Any]) -> bool:
    """Say whether an error says that there is no money left, which waiting does not change."""
    return "insufficient_quota" in (error.get("code"), error.get("type"))


def _raise_error_in(reply: dict[str, Any]) -> None:
    choices = reply.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not (error := error_in(reply) or error_in(first)):
        return
    message = error.get("message")
    words = message if isinstance(message, str) else shown(message)
    if len(words) > _LONGEST_MESSAGE:
        # At a space: half a key, should the server repeat it, would not be known for one.
        words = words[:_LONGEST_MESSAGE].rpartition(" ")[0] + "…"
    name = error.get("code") or error.get("type")
    reason = f"the server answered with the error {shown(name)}: {words}" if name else f"the server failed: {words}"
    raise Refused(reason) if is_spent(error) else by_status(_status_of(error), reason, waits.asked({}, error))


def _status_of(error: dict[str, Any]) -> int:
    """Return the status that an error names, in whichever field; 500 where it names none."""
    for value in (error.get("code"), error.get("status")):
        digits = str(value) if type(value) in (int, str) and len(str(value)[:4]) == 3 else ""
        if digits.isascii() and digits.isdigit() and digits[0] in "45":
            return int(digits)
    return 400 if error.get("type") in _REFUSING else 500


# A model may think for long; whoever looks at its reasons reads the beginning.
LONGEST_REASONING = 8_000
# Servers that speak as OpenAI does have no common name for it.
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")


def reasoning(reply: dict[str, Any]) -> str:
    """Return the thoughts beside the one answer, as they can be stored; empty where the server sends none."""
    choices = reply.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else reply.get("message")
    # Only one of them: a server may send the same thoughts under two names.
    return thoughts_of([message.get(name) for name in _THOUGHTS], most=1) if isinstance(message, dict) else ""


def thoughts_of(found: Sequence[object], most: int | None = None) -> str:
    """Return the first texts of these, up to `LONGEST_REASONING`, as they can be stored."""
    texts = [each for each in found if isinstance(each, str) and each.strip()][:most]
    return storable("\n\n".join(texts)[:LONGEST_REASONING])


@dataclass(frozen=True)
class First:
    """The first token of an answer, its log-probability, and those of the most probable tokens, as they came."""

    token: str
    log_probability: Any
    entries: tuple[tuple[str, Any], ...]


def first_token(reply: dict[str, Any]) -> First:
    """Return what a chat completion says of its first token."""
    logged = read_as(_LoggedChat, reply, _NOT_ONE_CHOICE).choices[0].logprobs
    if logged is None:
        raise Unable("the server returns no log-probabilities")
    if not logged.content:
        raise BadReply("the reply holds no token, so no log-probabilities either")
    try:
        first = _Position.model_validate(logged.content[0])
    except ValidationError:
        raise NoDistribution("the log-probabilities are not in the form of the protocol") from None
    return First(first.token, first.logprob, tuple((entry.token, entry.logprob) for entry in first.top_logprobs))


def completion_as_chat(reply: dict[str, Any]) -> dict[str, Any]:
    """Return a reply of OpenAI's old completions in the form of a chat completion, whatever it holds."""
    choices = reply.get("choices")
    chats = [_as_chatted(choice) for choice in choices] if isinstance(choices, list) else choices
    return reply | {"choices": chats}


def _as_chatted(choice: Any) -> Any:
    if not isinstance(choice, dict):
        return choice
    message = {"message": {"content": choice["text"]}} if "text" in choice else {}
    return choice | message | {"logprobs": _as_positions(choice.get("logprobs"))}


def _as_positions(logged: Any) -> Any:
    """Return the log-probabilities of a completion as those of a chat: the first token's."""
    if not isinstance(logged, dict) or logged.get("content") is not None:
        return logged
    tops, tokens, values = (logged.get(name) for name in ("top_logprobs", "tokens", "token_logprobs"))
    if not isinstance(tops, list):
        return None
    firsts = [each[0] if isinstance(each, list) and each else None for each in (tops, tokens, values)]
    listed = firsts[0].items() if isinstance(firsts[0], dict) else ()
    entries = [{"token": token, "logprob": value} for token, value in listed]
    return {"content": [{"token": firsts[1], "logprob": firsts[2], "top_logprobs": entries}] if tops else []}


def llama_cpp_continuation(
    reply: dict[str, Any], prompt: Sequence[int], limit: int, temperature: float
) -> Continuation:
    """Return what llama.cpp continued with, having checked that it sampled as it was told to."""
    _raise_error_in(reply)
    found = read_as(
        _LlamaCppCompletion,
        reply,
        "the reply does not say how it was sampled",
        tokens=_NOT_WHOLE,
    )
    wanted = _LLAMA_CPP_PLAIN | {"temperature": float(temperature), "n_predict": limit}
    for name, value in wanted.items():
        used = found.generation_settings.get(name)
        if not _same(used, value):
            raise Unable(f"the server sampled with {name} = {shown(used)}, not {value!r}")
    tokens = _token_ids(found.tokens)
    if found.truncated:
        raise Unable(f"prompt and {limit} more tokens do not fit into the server's context")
    if found.tokens_evaluated != len(prompt):
        raise Unable(f"the server read {shown(found.tokens_evaluated)} tokens of a prompt of {len(prompt)}")
    return _whole(tokens, limit, ended=found.stop_type == "eos", predicted=found.tokens_predicted)


def completions_continuation(
    reply: dict[str, Any], prompt: Sequence[int], limit: int, temperature: float
) -> Continuation:
    """Return what a completions server continued with; it does not say at which temperature."""
    _raise_error_in(reply)
    found = read_as(_Completion, reply, _NOT_ONE_CHOICE, token_ids=_NOT_WHOLE)
    choice, usage = found.choices[0], found.usage or {}
    tokens, echoed = _token_ids(choice.token_ids), choice.prompt_token_ids
    read = usage.get("prompt_tokens", len(prompt)) if echoed is None else len(echoed)
    if read != len(prompt) or (echoed is not None and echoed != list(prompt)):
        raise Unable(f"the server read {shown(read)} tokens of a prompt of {len(prompt)}, or others than it was sent")
    predicted = usage.get("completion_tokens", len(tokens))
    return _whole(tokens, limit, ended=choice.finish_reason == "stop", predicted=predicted)


def _whole(tokens: tuple[int, ...], limit: int, *, ended: bool, predicted: Any) -> Continuation:
    if predicted != len(tokens) or not 1 <= len(tokens) <= limit:
        raise BadReply(
            f"the server says {shown(predicted)} tokens, sends {len(tokens)}, and was asked for at most {limit}"
        )
    if not ended and len(tokens) < limit:
        # vLLM shortens max_tokens without a word when prompt and limit do not fit into the context.
        raise Unable(f"the server stopped after {len(tokens)} tokens of {limit}: its context is too small")
    return Continuation(tokens, ended)


def _token_ids(found: Sequence[int] | None) -> tuple[int, ...]:
    if found is None:
        raise Unable(
            "the server returns no token ids; a text tokenised again comes back changed, so it cannot write proposals"
        )
    return tuple(found)


def token_ids_of(reply: dict[str, Any]) -> tuple[int, ...]:
    """Return what a text was turned into; at least one token."""
    return tuple(read_as(_Tokenised, reply, "the server did not turn the prompt into token ids").tokens)


def text_of(reply: dict[str, Any], name: str, tokens: int) -> str:
    """Return the text that some tokens were turned into, as it can be stored.

    Args:
        name: of the field that holds it.
        tokens: how many there were.
    """
    text = reply.get(name)
    if not isinstance(text, str):
        raise BadReply("the server did not turn the token ids into a text")
    if len(text) > tokens * _LONGEST_TOKEN:
        raise BadReply(f"the server turned {tokens} tokens into {len(text)} characters")
    return storable(text)


def prompt_of(reply: dict[str, Any]) -> str:
    """Return a chat with its template applied, ready to be sent back."""
    prompt = reply.get("prompt")
    if not is_sendable(prompt):
        raise BadReply("the server did not apply its chat template")
    return prompt


def is_sendable(value: object) -> TypeGuard[str]:
    """Say whether a value is a text that can be sent back to the server."""
    return isinstance(value, str) and not _UNSTORABLE.search(value)


def _same(used: object, wanted: object) -> bool:
    if not isinstance(wanted, float):
        return used == wanted
    if isinstance(used, bool) or not isinstance(used, int | float):
        return False
    # llama.cpp computes in single precision. A whole number may be too large for a float.
    return abs(used) <= _LARGEST_COUNT and abs(used - wanted) <= 1e-6 * max(1.0, abs(wanted))


class _Short(reprlib.Repr):
    def repr_str(self, x: str, level: int) -> str:
        # Whole or not at all: half a key, should the server repeat it, would not be known for one, and not struck out.
        return repr(x) if len(x) <= _LONGEST_SHOWN else f"({len(x)} characters)"


def shown(value: Any) -> str:
    """Return a value for an error's text, however long or deep it is."""
    return _Short().repr(value)
