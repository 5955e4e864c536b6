"""What servers answer: pydantic reads its shape, and what is said here tells a bad reply from a server that is unable.

Each function takes the JSON of a reply with status 200 and returns what was asked for, or raises `BadReply` when it is
not what the protocol says, `Unable` when it shows that the server did something else than it was asked to. A value may
be anything that JSON can hold: nested deeply, a number of four thousand digits, half of a surrogate pair.
"""

import json
import re
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn, TypeGuard, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from prefmh_web.endpoints.errors import BadReply, Unable

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


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


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


class _LlamaCppCounts(Shape):
    tokens_evaluated: Annotated[Count | None, Told] = None
    tokens_predicted: Annotated[Count | None, Told] = None


class _Counted(_LlamaCppCounts):
    usage: Annotated[_Counts | None, Told] = None


class _Message(Shape):
    content: Text | None = None
    # OpenAI's words where it refuses. Fields with a model's thoughts, whatever they are called, are not read.
    refusal: Any = None


class _Chatted(Shape):
    message: _Message
    finish_reason: Any = None


class _Chat(Shape):
    choices: _Only[_Chatted]


class _LogProbability(Shape):
    token: Text
    # Above 0 is refused where it is used.
    logprob: float


class _Position(Shape):
    top_logprobs: list[_LogProbability]


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


def chat_text(reply: dict[str, Any]) -> str | None:
    """Return the text of the one answer; None where the server sent none, or a filter or a refusal in its place."""
    chat = read_as(
        _Chat,
        reply,
        _NOT_ONE_CHOICE,
        message="the reply holds no message",
        content="the message's content is not a text",
    )
    choice = chat.choices[0]
    is_answer = choice.finish_reason != "content_filter" and not choice.message.refusal
    return choice.message.content if is_answer else None


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


def first_token(reply: dict[str, Any]) -> list[tuple[str, float]]:
    """Return the most probable first tokens with their log-probabilities."""
    logged = read_as(_LoggedChat, reply, _NOT_ONE_CHOICE).choices[0].logprobs
    if logged is None:
        raise Unable("the server returns no log-probabilities")
    if not logged.content:
        raise BadReply("the reply holds no token, so no log-probabilities either")
    first = read_as(_Position, logged.content[0], "the log-probabilities are not in the form of the protocol")
    return [(entry.token, entry.logprob) for entry in first.top_logprobs]


def llama_cpp_continuation(
    reply: dict[str, Any], prompt: Sequence[int], limit: int, temperature: float
) -> Continuation:
    """Return what llama.cpp continued with, having checked that it sampled as it was told to."""
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
            raise Unable(f"the server sampled with {name} = {_shown(used)}, not {value!r}")
    tokens = _token_ids(found.tokens)
    if found.truncated:
        raise Unable(f"prompt and {limit} more tokens do not fit into the server's context")
    if found.tokens_evaluated != len(prompt):
        raise Unable(f"the server read {_shown(found.tokens_evaluated)} tokens of a prompt of {len(prompt)}")
    return _whole(tokens, limit, ended=found.stop_type == "eos", predicted=found.tokens_predicted)


def completions_continuation(reply: dict[str, Any], prompt: Sequence[int], limit: int) -> Continuation:
    """Return what a completions server continued with."""
    found = read_as(_Completion, reply, _NOT_ONE_CHOICE, token_ids=_NOT_WHOLE)
    choice, usage = found.choices[0], found.usage or {}
    tokens, echoed = _token_ids(choice.token_ids), choice.prompt_token_ids
    read = usage.get("prompt_tokens", len(prompt)) if echoed is None else len(echoed)
    if read != len(prompt) or (echoed is not None and echoed != list(prompt)):
        raise Unable(f"the server read {_shown(read)} tokens of a prompt of {len(prompt)}, or others than it was sent")
    predicted = usage.get("completion_tokens", len(tokens))
    return _whole(tokens, limit, ended=choice.finish_reason == "stop", predicted=predicted)


def _whole(tokens: tuple[int, ...], limit: int, *, ended: bool, predicted: Any) -> Continuation:
    if predicted != len(tokens) or not 1 <= len(tokens) <= limit:
        raise BadReply(
            f"the server says {_shown(predicted)} tokens, sends {len(tokens)}, and was asked for at most {limit}"
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


def _shown(value: Any) -> str:
    """Return a value for an error's text, however long or deep it is."""
    return _Short().repr(value)
