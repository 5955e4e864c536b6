"""What servers answer, checked field by field.

Each function takes the JSON of a reply with status 200 and returns what was asked for, or raises `BadReply` when it is
not what the protocol says, `Unable` when it shows that the server did something else than it was asked to. A value may
be anything that JSON can hold: nested deeply, a number of four thousand digits, half of a surrogate pair.
"""

import json
import re
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

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


def tokens_used(reply: dict[str, Any]) -> tuple[int, int]:
    """Return the tokens read and written, as the server counts them; 0 where it does not, or says what cannot be."""
    usage = reply.get("usage")
    if isinstance(usage, dict):
        counts = usage.get("prompt_tokens"), usage.get("completion_tokens")
    else:
        counts = reply.get("tokens_evaluated"), reply.get("tokens_predicted")
    return tuple(count if _is_count(count) else 0 for count in counts)  # type: ignore[return-value]


def chat_text(reply: dict[str, Any]) -> str | None:
    """Return the text of the one answer; None where the server sent none."""
    message = _only_choice(reply).get("message")
    if not isinstance(message, dict):
        raise BadReply("the reply holds no message")
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        raise BadReply("the message's content is not a text")
    return content


def first_token(reply: dict[str, Any]) -> list[tuple[str, float]]:
    """Return the most probable first tokens with their log-probabilities."""
    found = _only_choice(reply).get("logprobs")
    if not isinstance(found, dict) or not isinstance(found.get("content"), list):
        raise Unable("the server returns no log-probabilities")
    if not found["content"]:
        raise BadReply("the reply holds no token, so no log-probabilities either")
    first = found["content"][0]
    top = first.get("top_logprobs") if isinstance(first, dict) else None
    if not isinstance(top, list) or not all(_is_log_probability(entry) for entry in top):
        raise BadReply("the log-probabilities are not in the form of the protocol")
    return [(entry["token"], float(entry["logprob"])) for entry in top]


def llama_cpp_continuation(
    reply: dict[str, Any], prompt: Sequence[int], limit: int, temperature: float
) -> Continuation:
    """Return what llama.cpp continued with, having checked that it sampled as it was told to."""
    used = reply.get("generation_settings")
    if not isinstance(used, dict):
        raise BadReply("the reply does not say how it was sampled")
    wanted = _LLAMA_CPP_PLAIN | {"temperature": float(temperature), "n_predict": limit}
    for name, value in wanted.items():
        if not _same(used.get(name), value):
            raise Unable(f"the server sampled with {name} = {_shown(used.get(name))}, not {value!r}")
    tokens = _token_ids(reply.get("tokens"))
    if reply.get("truncated"):
        raise Unable(f"prompt and {limit} more tokens do not fit into the server's context")
    if reply.get("tokens_evaluated") != len(prompt):
        read = _shown(reply.get("tokens_evaluated"))
        raise Unable(f"the server read {read} tokens of a prompt of {len(prompt)}")
    return _whole(tokens, limit, ended=reply.get("stop_type") == "eos", predicted=reply.get("tokens_predicted"))


def completions_continuation(reply: dict[str, Any], prompt: Sequence[int], limit: int) -> Continuation:
    """Return what a completions server continued with."""
    choice = _only_choice(reply)
    tokens = _token_ids(choice.get("token_ids"))
    usage = reply.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    echoed = choice.get("prompt_token_ids")
    read = len(echoed) if isinstance(echoed, list) else usage.get("prompt_tokens", len(prompt))
    if read != len(prompt) or (isinstance(echoed, list) and list(prompt) != echoed):
        raise Unable(f"the server read {_shown(read)} tokens of a prompt of {len(prompt)}, or others than it was sent")
    ended = choice.get("finish_reason") == "stop"
    return _whole(tokens, limit, ended=ended, predicted=usage.get("completion_tokens", len(tokens)))


def _whole(tokens: tuple[int, ...], limit: int, *, ended: bool, predicted: Any) -> Continuation:
    if predicted != len(tokens) or not 1 <= len(tokens) <= limit:
        raise BadReply(
            f"the server says {_shown(predicted)} tokens, sends {len(tokens)}, and was asked for at most {limit}"
        )
    if not ended and len(tokens) < limit:
        # vLLM shortens max_tokens without a word when prompt and limit do not fit into the context.
        raise Unable(f"the server stopped after {len(tokens)} tokens of {limit}: its context is too small")
    return Continuation(tokens, ended)


def _only_choice(reply: dict[str, Any]) -> dict[str, Any]:
    choices = reply.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise BadReply("the reply does not hold one choice")
    return choices[0]


def _token_ids(found: Any) -> tuple[int, ...]:
    if found is None:
        raise Unable(
            "the server returns no token ids; a text tokenised again comes back changed, so it cannot write proposals"
        )
    if not isinstance(found, list) or not all(_is_count(token) for token in found):
        raise BadReply("the token ids are not whole numbers")
    return tuple(found)


def token_ids_of(reply: dict[str, Any]) -> tuple[int, ...]:
    """Return what a text was turned into; at least one token."""
    tokens = reply.get("tokens")
    if not isinstance(tokens, list) or not tokens or not all(_is_count(token) for token in tokens):
        raise BadReply("the server did not turn the prompt into token ids")
    return tuple(tokens)


def text_of(reply: dict[str, Any], name: str, tokens: int) -> str:
    """Return the text that some tokens were turned into, as it can be stored."""
    text = reply.get(name)
    if not isinstance(text, str):
        raise BadReply("the server did not turn the token ids into a text")
    if len(text) > tokens * _LONGEST_TOKEN:
        raise BadReply(f"the server turned {tokens} tokens into {len(text)} characters")
    return storable(text)


def prompt_of(reply: dict[str, Any]) -> str:
    """Return a chat with its template applied, ready to be sent back."""
    if not is_sendable(reply.get("prompt")):
        raise BadReply("the server did not apply its chat template")
    return reply["prompt"]


def is_sendable(value: Any) -> bool:
    """Say whether a value is a text that can be sent back to the server."""
    return isinstance(value, str) and not _UNSTORABLE.search(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_COUNT


def _is_log_probability(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("token"), str):
        return False
    value = entry.get("logprob")
    # Above 0 is refused where it is used; a whole number may be too large for a float.
    return isinstance(value, float) or (_is_whole(value) and abs(value) <= _LARGEST_COUNT)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _same(used: Any, wanted: Any) -> bool:
    if isinstance(wanted, float):
        # llama.cpp computes in single precision.
        is_number = isinstance(used, float) or (_is_whole(used) and abs(used) <= _LARGEST_COUNT)
        return is_number and abs(used - wanted) <= 1e-6 * max(1.0, abs(wanted))
    return used == wanted


class _Short(reprlib.Repr):
    def repr_str(self, x: str, level: int) -> str:
        # Whole or not at all: half a key, should the server repeat it, would not be known for one, and not struck out.
        return repr(x) if len(x) <= _LONGEST_SHOWN else f"({len(x)} characters)"


def _shown(value: Any) -> str:
    """Return a value for an error's text, however long or deep it is."""
    return _Short().repr(value)
